// Moving elements as they are: contiguous, view, concatenate, slice_update; and arange.
#include <cstdlib>
#include <cstring>
#include <optional>

#include "base/check.h"
#include "device/cpu/block_io.h"
#include "device/cpu/kernel.h"
#include "device/cpu/parallel.h"
#include "device/cpu/strided.h"
#include "device/cpu/types.h"
#include "tensor/block_panels.h"

namespace heddle::cpu {

namespace {

constexpr std::int64_t kPanelRows = 16;

// ---- Contiguous, and view as another dtype

/// A walk whose innermost axis strides through memory while another axis lies densely: a transpose.
/// It is copied in square tiles of the two, so that each cache line is read once.
struct Tiles {
  static constexpr std::int64_t kSide = 16;
  Walk walk;
  std::size_t dense = 0;  // the axis of stride 1

  std::size_t last() const { return static_cast<std::size_t>(walk.rank) - 1; }
  /// Strips are kSide indices of the dense axis with all of the last.
  std::int64_t strips() const { return (walk.extents[dense] + kSide - 1) / kSide; }
  std::int64_t planes() const { return walk.count / (walk.extents[dense] * walk.extents[last()]); }

  template <class T>
  void copy(const std::byte* from, std::byte* to, std::int64_t begin, std::int64_t end) const {
    for (std::int64_t s = begin; s < end; ++s) {
      const Corner corner = corner_of(s / strips());
      const std::int64_t first = s % strips() * kSide;
      const std::int64_t rows = std::min(kSide, walk.extents[dense] - first);
      const T* in = reinterpret_cast<const T*>(from) + corner.in + first;
      T* out = reinterpret_cast<T*>(to) + corner.out + first * corner.dense_stride;
      for (std::int64_t c = 0; c < walk.extents[last()]; c += kSide) {
        const std::int64_t columns = std::min(kSide, walk.extents[last()] - c);
        for (std::int64_t r = 0; r < rows; ++r) {
          for (std::int64_t k = c; k < c + columns; ++k) {
            out[r * corner.dense_stride + k] = in[r + k * walk.strides[last()]];
          }
        }
      }
    }
  }

 private:
  /// Where a plane of the two axes begins, in elements, and the dense axis' stride in the output.
  struct Corner {
    std::int64_t in = 0, out = 0, dense_stride = 1;
  };
  Corner corner_of(std::int64_t plane) const {
    Corner corner{walk.first};
    std::int64_t out_stride = 1;
    for (int i = walk.rank - 1; i >= 0; --i) {
      const auto axis = static_cast<std::size_t>(i);
      if (axis == dense) corner.dense_stride = out_stride;
      if (axis != dense && axis != last()) {
        const std::int64_t index = plane % walk.extents[axis];
        plane /= walk.extents[axis];
        corner.in += index * walk.strides[axis];
        corner.out += index * out_stride;
      }
      out_stride *= walk.extents[axis];
    }
    return corner;
  }
};

std::optional<Tiles> find_tiles(const Walk& walk, std::size_t item) {
  const bool sized = item == 1 || item == 2 || item == 4 || item == 8;
  if (!sized || walk.rank < 2 || walk.count == 0) return std::nullopt;
  Tiles tiles{walk};
  if (std::abs(walk.strides[tiles.last()]) <= 1 || walk.extents[tiles.last()] < Tiles::kSide)
    return std::nullopt;
  for (std::size_t axis = 0; axis < tiles.last(); ++axis) {
    tiles.dense = axis;
    if (walk.strides[axis] == 1 && walk.extents[axis] >= Tiles::kSide) return tiles;
  }
  return std::nullopt;
}

template <class T>
Run tiled_run(const Tiles& tiles) {
  return [tiles](const Launch& launch) {
    const std::int64_t strip = Tiles::kSide * tiles.walk.extents[tiles.last()];
    parallel(launch.team, tiles.strips() * tiles.planes(), row_grain(strip),
             [&](std::int64_t begin, std::int64_t end) {
               tiles.copy<T>(launch.inputs[0].data, launch.outputs[0].data, begin, end);
             });
  };
}

Run tiled_run(const Tiles& tiles, std::size_t item) {
  switch (item) {
    case 1:
      return tiled_run<std::uint8_t>(tiles);
    case 2:
      return tiled_run<std::uint16_t>(tiles);
    case 4:
      return tiled_run<std::uint32_t>(tiles);
    default:
      return tiled_run<std::uint64_t>(tiles);
  }
}

/// The first `count` elements of the walk over input 0, to output 0.
void copy_walk(const Walk& walk, std::size_t item, std::int64_t count, const Launch& launch) {
  parallel(launch.team, count, kGrainElements, [&](std::int64_t begin, std::int64_t end) {
    gather(walk, item, launch.inputs[0].data, begin, end - begin,
           launch.outputs[0].data + begin * static_cast<std::int64_t>(item));
  });
}

/// Rows of axis 0 hold the same bytes before and after: not where a view joins elements along it.
bool keeps_rows(const TensorSpec& from, const TensorSpec& to) {
  return !from.shape.empty() && from.shape[0] == to.shape[0];
}

/// The bytes of input 0, row-major: contiguous, and view as another dtype, which may leave them
/// where they are.
Prepared prepare_strided(const PrepareArgs& args) {
  const OperandSpec& x = args.inputs[0];
  const Items items = as_items(x);
  const Walk walk = make_walk(items.shape, items.strides);
  if (const auto tiles = find_tiles(walk, items.bytes)) {
    return make_kernel(whole_operand_traits(args.inputs, args.outputs),
                       tiled_run(*tiles, items.bytes));
  }
  const std::int64_t per_row =
      items.shape.empty() || items.shape[0] == 0 ? 0 : walk.count / items.shape[0];
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.honours_extent = keeps_rows(x.spec, args.outputs[0].spec);
  const bool may_stay = std::holds_alternative<Reinterpret>(args.op) && is_contiguous(x);
  if (may_stay) traits.aliases.push_back({0, 0, false});
  auto run = [walk, per_row, may_stay, item = items.bytes](const Launch& launch) {
    if (may_stay && launch.inputs[0].data == launch.outputs[0].data) return;
    const std::int64_t count =
        launch.extent < 0 ? walk.count : std::min(walk.count, launch.extent * per_row);
    copy_walk(walk, item, count, launch);
  };
  return make_kernel(std::move(traits), std::move(run));
}

Prepared prepare_unpack_blocks(const PrepareArgs& args) {
  auto run = [spec = args.inputs[0].spec](const Launch& launch) {
    const std::size_t row = row_bytes(spec.dtype, spec.shape[1]);
    const std::int64_t blocks = spec.shape[1] / info(spec.dtype).block_elements;
    const auto body = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        const auto panel = static_cast<std::size_t>(r / kPanelRows * kPanelRows) * row;
        unpack_block_row(spec.dtype, launch.inputs[0].data + panel, r % kPanelRows, 0, blocks,
                         launch.outputs[0].data + static_cast<std::size_t>(r) * row);
      }
    };
    parallel(launch.team, spec.shape[0], row_grain(spec.shape[1]), body);
  };
  return make_kernel(whole_operand_traits(args.inputs, args.outputs), std::move(run));
}

Prepared prepare_unpack(const PrepareArgs& args) {
  const TensorSpec& spec = args.inputs[0].spec;
  if (is_block(spec.dtype)) return prepare_unpack_blocks(args);
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

/// Contiguous, and view as another dtype.
Prepared prepare_contiguous(const PrepareArgs& args) {
  switch (args.inputs[0].layout.kind) {
    case LayoutKind::strided:
      return prepare_strided(args);
    case LayoutKind::panel16:
      return prepare_unpack(args);
  }
  return refuse(fmt::format("{}: a layout that the cpu does not know", name(args.op)));
}

// ---- Slice update

/// Where the slice's elements lie in the output, and where they come from.
struct SliceWriter {
  Walk target, update;
  std::size_t item = 0;

  void write(const std::byte* from, std::byte* to, std::int64_t begin, std::int64_t end) const {
    const auto bytes = static_cast<std::int64_t>(item);
    if (update.dense()) return scatter(target, item, from + begin * bytes, begin, end - begin, to);
    BlockBuffer scratch;
    for (std::int64_t at = begin; at < end; at += kBlock) {
      const std::int64_t n = std::min(kBlock, end - at);
      gather(update, item, from, at, n, scratch.bytes);
      scatter(target, item, scratch.bytes, at, n, to);
    }
  }
};

/// The slice of a contiguous operand, as a walk from the operand's start.
Walk slice_walk(const SliceUpdate& op, const OperandSpec& whole) {
  const Slice slice{op.start, op.stop, op.step};
  const Shape shape = infer(slice, std::span(&whole.spec, 1)).at(0).shape;
  const ViewOf view = view_of(slice, whole).value();
  Walk walk = make_walk(shape, view.layout.strides);
  walk.first += view.offset_bytes / static_cast<std::int64_t>(item_size(whole.spec.dtype));
  return walk;
}

Prepared prepare_slice_update(const PrepareArgs& args, const SliceUpdate& op) {
  const OperandSpec &base = args.inputs[0], &update = args.inputs[1];
  for (const OperandSpec& input : args.inputs) {
    if (input.layout.kind == LayoutKind::strided) continue;
    return refuse(
        fmt::format("slice_update: operands must be strided, one is {}", to_string(input)));
  }
  const SliceWriter writer{slice_walk(op, args.outputs[0]),
                           make_walk(update.spec.shape, update.layout.strides),
                           item_size(base.spec.dtype)};
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  const bool dense = is_contiguous(base);
  if (dense) traits.aliases.push_back({0, 0, false});
  auto run = [writer, dense,
              base_walk = make_walk(base.spec.shape, base.layout.strides)](const Launch& launch) {
    std::byte* to = launch.outputs[0].data;
    if (!dense || launch.inputs[0].data != to) {
      copy_walk(base_walk, writer.item, base_walk.count, launch);
    }
    parallel(launch.team, writer.target.count, kGrainElements,
             [&](std::int64_t begin, std::int64_t end) {
               writer.write(launch.inputs[1].data, to, begin, end);
             });
  };
  return make_kernel(std::move(traits), std::move(run));
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
  if (std::holds_alternative<Contiguous>(args.op) || std::holds_alternative<Reinterpret>(args.op)) {
    return prepare_contiguous(args);
  }
  if (const auto* op = std::get_if<Concatenate>(&args.op)) return prepare_concatenate(args, *op);
  if (const auto* op = std::get_if<SliceUpdate>(&args.op)) return prepare_slice_update(args, *op);
  const auto& op = std::get<Arange>(args.op);
  if (is_block(op.dtype)) return refuse("arange: of a block type");
  if (is_integer(op.dtype) && !integer_range(op)) {
    return refuse("arange: its values must be within 9.2e18 of zero for an integer dtype");
  }
  return prepare_arange(args, op);
}

}  // namespace heddle::cpu
