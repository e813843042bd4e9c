// Moving elements as they are: contiguous, concatenate; and arange.
#include <cstring>

#include "base/check.h"
#include "device/cpu/block_io.h"
#include "device/cpu/kernel.h"
#include "device/cpu/parallel.h"
#include "device/cpu/strided.h"
#include "device/cpu/types.h"

namespace heddle::cpu {

namespace {

constexpr std::int64_t kPanelRows = 16;

// ---- Contiguous

Prepared prepare_strided(const PrepareArgs& args) {
  const Items items = as_items(args.inputs[0]);
  const Walk walk = make_walk(items.shape, items.strides);
  const std::int64_t per_row =
      items.shape.empty() || items.shape[0] == 0 ? 0 : walk.count / items.shape[0];
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.honours_extent = !items.shape.empty();
  auto run = [walk, per_row, item = items.bytes](const Launch& launch) {
    const std::int64_t count =
        launch.extent < 0 ? walk.count : std::min(walk.count, launch.extent * per_row);
    parallel(launch.team, count, kGrainElements, [&](std::int64_t begin, std::int64_t end) {
      gather(walk, item, launch.inputs[0].data, begin, end - begin,
             launch.outputs[0].data + begin * static_cast<std::int64_t>(item));
    });
  };
  return make_kernel(std::move(traits), std::move(run));
}

Prepared prepare_unpack(const PrepareArgs& args) {
  const TensorSpec& spec = args.inputs[0].spec;
  const std::int64_t rows = spec.shape[0], columns = spec.shape[1];
  auto run = [rows, columns, item = item_size(spec.dtype)](const Launch& launch) {
    const auto body = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        const std::int64_t at = r / kPanelRows * kPanelRows * columns + r % kPanelRows;
        Walk row;
        row.rank = 1;
        row.extents[0] = row.count = columns;
        row.strides[0] = kPanelRows;
        gather(row, item, launch.inputs[0].data + at * static_cast<std::int64_t>(item), 0, columns,
               launch.outputs[0].data + r * columns * static_cast<std::int64_t>(item));
      }
    };
    parallel(launch.team, rows, row_grain(columns), body);
  };
  return make_kernel(whole_operand_traits(args.inputs, args.outputs), std::move(run));
}

Prepared prepare_contiguous(const PrepareArgs& args) {
  switch (args.inputs[0].layout.kind) {
    case LayoutKind::strided:
      return prepare_strided(args);
    case LayoutKind::panel16:
      return prepare_unpack(args);
  }
  return refuse("contiguous: a layout that the cpu does not know");
}

// ---- Concatenate

/// An input's part: for each outer index, `piece` items in a row of the output.
struct Part {
  Walk walk;
  std::int64_t piece = 0;
  std::int64_t offset = 0;   // of the piece within the output's row, in items
  std::int64_t leading = 0;  // items of one index of axis 0
};

struct Joined {
  std::vector<Part> parts;
  std::int64_t row = 0;  // items of one outer index
  std::size_t item = 0;

  void chunk(const Part& part, const std::byte* in, std::byte* out, std::int64_t begin,
             std::int64_t end) const {
    while (begin < end) {
      const std::int64_t outer = begin / part.piece, within = begin % part.piece;
      const std::int64_t n = std::min(end - begin, part.piece - within);
      const std::int64_t to = outer * row + part.offset + within;
      gather(part.walk, item, in, begin, n, out + to * static_cast<std::int64_t>(item));
      begin += n;
    }
  }
};

Prepared prepare_concatenate(const PrepareArgs& args, const Concatenate& op) {
  Joined joined;
  joined.item = as_items(args.outputs[0]).bytes;
  const auto axis = static_cast<std::size_t>(op.axis);
  for (const OperandSpec& input : args.inputs) {
    if (input.layout.kind != LayoutKind::strided) {
      return refuse(
          fmt::format("concatenate: operands must be strided, one is {}", to_string(input)));
    }
    const Items items = as_items(input);
    Part part{make_walk(items.shape, items.strides), 1, joined.row};
    if (items.shape[0] > 0) part.leading = part.walk.count / items.shape[0];
    for (std::size_t i = axis; i < items.shape.size(); ++i) part.piece *= items.shape[i];
    joined.row += part.piece;
    joined.parts.push_back(part);
  }
  auto run = [joined = std::move(joined)](const Launch& launch) {
    for (std::size_t i = 0; i < joined.parts.size(); ++i) {
      const Part& part = joined.parts[i];
      const std::int64_t count = launch.extent < 0
                                     ? part.walk.count
                                     : std::min(part.walk.count, launch.extent * part.leading);
      parallel(launch.team, count, kGrainElements, [&](std::int64_t begin, std::int64_t end) {
        joined.chunk(part, launch.inputs[i].data, launch.outputs[0].data, begin, end);
      });
    }
  };
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.honours_extent = axis != 0;
  return make_kernel(std::move(traits), std::move(run));
}

// ---- Arange

Prepared prepare_arange(const PrepareArgs& args, const Arange& op) {
  const BlockSink sink(op.dtype);
  const auto fill = [op, sink](auto tag) -> Run {
    using T = typename decltype(tag)::type;
    return [op, sink](const Launch& launch) {
      std::byte* out = launch.outputs[0].data;
      BlockBuffer scratch;
      for (std::int64_t at = 0; at < op.size; at += kBlock) {
        const std::int64_t n = std::min(kBlock, op.size - at);
        auto* to = static_cast<T*>(sink.target(out, at, scratch));
        for (std::int64_t i = 0; i < n; ++i) {
          const double value = op.start + op.step * static_cast<double>(at + i);
          if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
            to[i] = static_cast<T>(static_cast<std::int64_t>(value));
          } else {
            to[i] = static_cast<T>(value);
          }
        }
        sink.store(to, out, at, n);
      }
    };
  };
  return make_kernel(whole_operand_traits(args.inputs, args.outputs),
                     with_compute_type(op.dtype, fill));
}

/// Whether every value can be held in 64 bits, so that converting it is defined.
bool integer_range(const Arange& op) {
  constexpr double kLimit = 9.2e18;
  const double last = op.start + op.step * static_cast<double>(op.size);
  return op.start > -kLimit && op.start < kLimit && last > -kLimit && last < kLimit;
}

}  // namespace

Prepared prepare_copy(const PrepareArgs& args) {
  if (std::holds_alternative<Contiguous>(args.op)) return prepare_contiguous(args);
  if (const auto* op = std::get_if<Concatenate>(&args.op)) return prepare_concatenate(args, *op);
  const auto& op = std::get<Arange>(args.op);
  if (is_block(op.dtype)) return refuse("arange: of a block type");
  if (is_integer(op.dtype) && !integer_range(op)) {
    return refuse("arange: its values must be within 9.2e18 of zero for an integer dtype");
  }
  return prepare_arange(args, op);
}

}  // namespace heddle::cpu
