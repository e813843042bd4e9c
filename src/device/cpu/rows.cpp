// gather_rows, write_rows and feed.
#include "device/cpu/rows.h"

#include <cstring>
#include <optional>

#include "base/check.h"
#include "device/cpu/elementwise.h"
#include "device/cpu/indices.h"
#include "device/cpu/isa.h"
#include "device/cpu/parallel.h"
#include "device/cpu/quant.h"
#include "device/cpu/slices.h"
#include "device/cpu/types.h"
#include "tensor/block_panels.h"
#include "tensor/blocks.h"
#include "tensor/quantize.h"

namespace heddle::cpu {

namespace {

/// What a tensor holds in one index of axis 0.
OperandSpec row_of(const OperandSpec& operand) {
  OperandSpec row = operand;
  row.spec.shape.erase(0);
  row.layout.strides.erase(0);
  return row;
}

constexpr std::int64_t kPanelRows = 16;

}  // namespace

// ---- Rows of states

StateRows::StateRows(const OperandSpec& state)
    : dtype_(state.spec.dtype),
      state_rows_(state.spec.shape[0]),
      row_elements_(elements(row_of(state).spec.shape)),
      row_bytes_(heddle::row_bytes(dtype_, row_elements_)),
      block_elements_(info(dtype_).block_elements),
      block_bytes_(info(dtype_).block_bytes),
      narrow_(dtype_ == DType::q8_0   ? quant_loops(isa()).encode_q8_0
              : is_float_like(dtype_) ? narrow_function(dtype_)
                                      : nullptr) {}

std::byte* StateRows::at(const Operand& state, std::int64_t row) const {
  const std::int64_t rows = count(state);
  require(row >= 0 && row < rows, ErrorCode::invalid_argument,
          "row {} is outside the state, which has {} rows", row, rows);
  return state.data + static_cast<std::size_t>(row) * row_bytes_;
}

void StateRows::store(const float* x, std::byte* row, std::int64_t begin, std::int64_t n) const {
  std::byte* to = row + begin / block_elements_ * block_bytes_;
  if (narrow_) {
    narrow_(x, to, n);
  } else {
    quantize_row(dtype_, x, to, n);
  }
}

KernelTraits state_traits(const PrepareArgs& args) {
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.aliases.push_back({0, 0, true});
  return traits;
}

namespace {

// ---- Gather

/// Rows of a table, wherever its layout puts them, converted to another dtype.
struct GatherTable {
  TensorSpec spec;
  bool panels = false;
  std::int64_t row_elements = 0;
  std::int64_t row_stride = 0;  // bytes from a row to the next, unless in panels
  BlockSource row;              // of plain types
  BlockFunction convert;        // from what is loaded to what is stored; empty if they are one
  BlockSink sink;
  std::optional<Slices> unchanged;  // of plain types that stay what they are

  /// Rows ids[0], ids[1], ..., n <= kBlock, to row `first` of `out` and the next ones.
  void copy(const std::byte* table, const std::int64_t* ids, std::int64_t n, std::byte* out,
            std::int64_t first) const {
    if (!unchanged) {
      for (std::int64_t i = 0; i < n; ++i)
        convert_row(table, ids[i], out, (first + i) * row_elements);
      return;
    }
    std::int64_t offsets[kBlock];
    for (std::int64_t i = 0; i < n; ++i) offsets[i] = ids[i] * row_stride;
    const auto bytes = static_cast<std::int64_t>(unchanged->item());
    unchanged->copy(table, offsets, n, out + first * row_elements * bytes);
  }

  std::size_t item = 0;  // bytes of a computed element of the output

 private:
  void convert_row(const std::byte* table, std::int64_t id, std::byte* out, std::int64_t to) const {
    const std::byte* from = table + (is_block(spec.dtype) ? 0 : offset_of(id));
    alignas(64) float dequantized[kBlock];
    BlockBuffer scratch, out_scratch;
    for (std::int64_t i = 0; i < row_elements; i += kBlock) {
      const std::int64_t n = std::min(kBlock, row_elements - i);
      const void* loaded = dequantized;
      if (is_block(spec.dtype)) {
        dequantize(table, id, i, n, dequantized);
      } else {
        loaded = row.load(from, i, n, scratch);
      }
      void* target = sink.target(out, to + i, out_scratch);
      if (convert) {
        convert(&loaded, target, n);
        sink.store(target, out, to + i, n);
      } else if (sink.in_place()) {
        std::memcpy(target, loaded, static_cast<std::size_t>(n) * item);
      } else {
        sink.store(loaded, out, to + i, n);
      }
    }
  }

  /// Elements [first, first + n) of row `id`, of a block type.
  void dequantize(const std::byte* table, std::int64_t id, std::int64_t first, std::int64_t n,
                  float* to) const {
    if (!panels) {
      const std::byte* from = table + id * row_stride + heddle::row_bytes(spec.dtype, first);
      return dequantize_row(spec.dtype, from, to, n);
    }
    const std::int64_t block = info(spec.dtype).block_elements;
    const std::byte* panel = table + static_cast<std::size_t>(id / kPanelRows * kPanelRows) *
                                         heddle::row_bytes(spec.dtype, row_elements);
    std::byte blocks[kBlock * 2];  // no block type takes more than two bytes an element
    unpack_block_row(spec.dtype, panel, id % kPanelRows, first / block, n / block, blocks);
    dequantize_row(spec.dtype, blocks, to, n);
  }

  std::int64_t offset_of(std::int64_t id) const {
    if (!panels) return id * row_stride;
    const auto bytes = static_cast<std::int64_t>(item_size(spec.dtype));
    return (id / kPanelRows * kPanelRows * row_elements + id % kPanelRows) * bytes;
  }
};

GatherTable make_table(const OperandSpec& table, DType to) {
  GatherTable made;
  made.spec = table.spec;
  made.panels = table.layout.kind == LayoutKind::panel16;
  OperandSpec row;
  row.spec.dtype = table.spec.dtype;
  if (made.panels) {
    row.spec.shape = {table.spec.shape[1]};
    row.layout.strides = {kPanelRows};
  } else {
    row = row_of(table);
    const DTypeInfo& type = info(table.spec.dtype);
    made.row_stride = table.layout.strides[0] / type.block_elements * type.block_bytes;
  }
  made.row_elements = elements(row.spec.shape);
  const bool blocks = is_block(table.spec.dtype);
  if (!blocks) made.row = BlockSource(row);
  const DType loaded = blocks ? DType::f32 : table.spec.dtype;
  if (compute_dtype(loaded) != compute_dtype(to)) made.convert = conversion_block(loaded, to);
  made.sink = BlockSink(to);
  if (!made.panels && to == table.spec.dtype) {
    made.unchanged = Slices(row.spec.shape, row.layout.strides, item_size(to));
  }
  made.item = item_size(compute_dtype(to));
  return made;
}

std::string table_refusal(const OperandSpec& table) {
  if (table.layout.kind == LayoutKind::panel16 || !is_block(table.spec.dtype)) return {};
  if (table.spec.shape.size() < 2) {
    return fmt::format("gather_rows: rows of {} are no whole blocks", to_string(table));
  }
  if (!is_contiguous(row_of(table))) {
    return fmt::format("gather_rows: rows of {} must be contiguous", to_string(table));
  }
  return {};
}

Prepared prepare_gather(const PrepareArgs& args, const GatherRows& op) {
  const OperandSpec &table = args.inputs[0], &ids = args.inputs[1];
  if (std::string reason = table_refusal(table); !reason.empty()) return refuse(std::move(reason));
  const Shape& shape = ids.spec.shape;
  const std::int64_t count = elements(shape);
  const std::int64_t per_row = shape.empty() || shape[0] == 0 ? 0 : count / shape[0];
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.honours_extent = !shape.empty();
  auto run = [rows = make_table(table, op.dtype),
              indices = Indices(GatherRows::kName, ids, table.spec.shape[0], 1, op.wrap), count,
              per_row](const Launch& launch) {
    const auto body = [&](std::int64_t begin, std::int64_t end) {
      Indices::Scratch scratch;
      for (std::int64_t t = begin; t < end; t += kBlock) {
        const std::int64_t n = std::min(kBlock, end - t);
        rows.copy(launch.inputs[0].data, indices.load(launch.inputs[1], t, n, scratch), n,
                  launch.outputs[0].data, t);
      }
    };
    const std::int64_t wanted =
        launch.extent < 0 ? count : std::min(count, launch.extent * per_row);
    parallel(launch.team, wanted, row_grain(rows.row_elements), body);
  };
  return make_kernel(std::move(traits), std::move(run));
}

// ---- Write

/// Calls write(launch, token, row) for each live token, in any order.
template <class WriteRow>
Prepared for_live_tokens(const PrepareArgs& args, const StateRows& rows, const WriteRow& write) {
  KernelTraits traits = state_traits(args);
  traits.honours_extent = true;
  auto run = [rows, write, index = BlockSource(args.inputs[2]),
              tokens = args.inputs[1].spec.shape[0]](const Launch& launch) {
    const auto body = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin; t < end; ++t) {
        const std::int32_t number = index_at(index, launch.inputs[2], t);
        if (number >= 0) write(launch, t, rows.at(launch.outputs[0], number));
      }
    };
    parallel(launch.team, rows_that_count(tokens, launch.extent), row_grain(rows.row_elements()),
             body);
  };
  return make_kernel(std::move(traits), std::move(run));
}

Prepared prepare_move(const PrepareArgs& args, const StateRows& rows) {
  const Items items = as_items(args.inputs[1]);
  const Walk walk = make_walk(items.shape, items.strides);
  const std::int64_t row_items = items.shape[0] == 0 ? 0 : walk.count / items.shape[0];
  return for_live_tokens(
      args, rows, [=, item = items.bytes](const Launch& launch, std::int64_t t, std::byte* to) {
        gather(walk, item, launch.inputs[1].data, t * row_items, row_items, to);
      });
}

/// Through floats, or doubles for a state of f64.
struct ConvertedRows {
  StateRows rows;
  BlockSource x;
  BlockFunction convert;  // from what is loaded; empty where that is what is stored
  bool doubles = false;

  void write(const Launch& launch, std::int64_t t, std::byte* to) const {
    BlockBuffer scratch, converted;
    const std::int64_t length = rows.row_elements();
    for (std::int64_t i = 0; i < length; i += kBlock) {
      const std::int64_t n = std::min(kBlock, length - i);
      const void* values = x.load(launch.inputs[1].data, t * length + i, n, scratch);
      if (convert) {
        convert(&values, converted.bytes, n);
        values = converted.bytes;
      }
      if (doubles) {
        constexpr auto kBytes = static_cast<std::int64_t>(sizeof(double));
        std::memcpy(to + i * kBytes, values, static_cast<std::size_t>(n * kBytes));
      } else {
        rows.store(static_cast<const float*>(values), to, i, n);
      }
    }
  }
};

Prepared prepare_write(const PrepareArgs& args) {
  const OperandSpec &state = args.inputs[0], &x = args.inputs[1];
  const StateRows rows(state);
  const DType to = state.spec.dtype, from = x.spec.dtype;
  if (to == from) return prepare_move(args, rows);
  ConvertedRows kernel{rows, BlockSource(x), {}, to == DType::f64};
  if (!rows.takes_floats() && !kernel.doubles) {
    return refuse(fmt::format("write_rows: {} into {}", to_string(x), to_string(state)));
  }
  const DType stored = is_block(to) ? DType::f32 : to;
  if (compute_dtype(from) != compute_dtype(stored)) kernel.convert = conversion_block(from, stored);
  return for_live_tokens(args, rows,
                         [kernel](const Launch& launch, std::int64_t t, std::byte* row) {
                           kernel.write(launch, t, row);
                         });
}

// ---- Feed

std::int64_t read_extent(const Launch& launch, std::int64_t limit, const char* what) {
  std::int32_t extent;
  std::memcpy(&extent, launch.inputs[2].data, sizeof extent);
  require(extent >= 0 && extent <= limit, ErrorCode::invalid_argument,
          "feed: {} {} is outside [0, {}]", what, extent, limit);
  return extent;
}

Prepared prepare_feed(const PrepareArgs& args, Feed::Kind kind) {
  const OperandSpec& x = args.inputs[1];
  if (x.layout.kind != LayoutKind::strided) {
    return refuse(fmt::format("feed: x must be strided, not {}", to_string(x)));
  }
  const Items items = as_items(x);
  const Walk walk = make_walk(items.shape, items.strides);
  const std::int64_t rows = items.shape.empty() ? 1 : items.shape[0];
  const std::int64_t row_items = rows == 0 ? 0 : walk.count / rows;
  auto run = [=, item = items.bytes](const Launch& launch) {
    const Operand& state = launch.outputs[0];
    std::int64_t first = 0, count = walk.count;
    if (kind == Feed::Kind::prefix) {
      const auto row_bytes = static_cast<std::size_t>(row_items) * item;
      const auto capacity =
          row_bytes == 0 ? rows : static_cast<std::int64_t>(state.bytes / row_bytes);
      count = read_extent(launch, std::min(rows, capacity), "a prefix of rows") * row_items;
    } else if (kind == Feed::Kind::row) {
      first = read_extent(launch, rows - 1, "row") * row_items;
      count = row_items;
    }
    gather(walk, item, launch.inputs[1].data, first, count, state.data);
  };
  return make_kernel(state_traits(args), std::move(run));
}

}  // namespace

Prepared prepare_rows(const PrepareArgs& args) {
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    const bool table = i == 0 && std::holds_alternative<GatherRows>(args.op);
    if (!table && args.inputs[i].layout.kind != LayoutKind::strided) {
      return refuse(fmt::format("{}: operand {} must be strided, not {}", name(args.op), i,
                                to_string(args.inputs[i])));
    }
  }
  if (const auto* op = std::get_if<GatherRows>(&args.op)) return prepare_gather(args, *op);
  if (!is_contiguous(args.inputs[0])) {
    return refuse(fmt::format("{}: the state must be contiguous, not {}", name(args.op),
                              to_string(args.inputs[0])));
  }
  if (std::holds_alternative<WriteRows>(args.op)) return prepare_write(args);
  return prepare_feed(args, std::get<Feed>(args.op).kind);
}

}  // namespace heddle::cpu
