// gather_rows, write_rows and feed.
#include <algorithm>
#include <cstdlib>

#include "base/check.h"
#include "device/vulkan/kernels/walk.h"

namespace heddle::vulkan {

namespace {

constexpr std::uint64_t kMostElements = 0xffff'ffff;  // which shaders count in 32 bits

std::string count_refusal(const PrepareArgs& args, const Walk& walk) {
  if (walk.count() <= kMostElements) return {};
  return fmt::format("{}: {} elements; at most {}", name(args.op), walk.count(), kMostElements);
}

std::string f64_refusal(const PrepareArgs& args) {
  if (args.limits.float64) return {};
  return fmt::format("{}: f64 on a device without 64-bit floats", name(args.op));
}

// ---- Gather

constexpr std::size_t kGatherNumbers = 11;

struct GatherParams {
  std::uint32_t rows = 0, per_row = 0, row_elements = 0, table_rows = 0;
  std::int32_t row_stride = 0;
  std::array<std::int32_t, kGatherNumbers> axes{};
};

/// A table's row as a walk, and how rows lie.
struct Table {
  Walk row;
  std::uint64_t first = 0;  // items to row 0
  std::int64_t stride = 0;  // items from a row to the next
  std::uint32_t per_item = 1;
  std::size_t bytes = 0;  // of an item

  std::uint32_t row_elements() const { return static_cast<std::uint32_t>(row.count()); }
};

Table make_table(const OperandSpec& table) {
  Items items = as_items(table);
  Table made;
  made.stride = items.strides[0];
  made.bytes = items.bytes;
  made.per_item = static_cast<std::uint32_t>(info(table.spec.dtype).block_elements);
  if (made.stride < 0 && items.shape[0] > 0) {
    made.first = static_cast<std::uint64_t>((items.shape[0] - 1) * -made.stride);
  }
  items.shape.erase(0);
  items.strides.erase(0);
  made.row = make_walk("gather_rows", items.shape, std::span(&items.strides, 1), kGatherNumbers);
  made.row.share_items(made.per_item);
  made.first += made.row.first[0];
  return made;
}

std::string gather_refusal(const PrepareArgs& args, DType to) {
  const OperandSpec &table = args.inputs[0], &ids = args.inputs[1];
  if (!is_contiguous(ids)) {
    return fmt::format("gather_rows: ids must be contiguous, not {}", to_string(ids));
  }
  if (is_block(table.spec.dtype) && table.spec.shape.size() < 2) {
    return fmt::format("gather_rows: rows of {} are no whole blocks", to_string(table));
  }
  if (table.spec.dtype != to && (table.spec.dtype == DType::f64 || to == DType::f64)) {
    if (std::string reason = f64_refusal(args); !reason.empty()) return reason;
  }
  return narrow_refusal(args, to);
}

std::string table_refusal(const Table& table, std::int64_t rows) {
  constexpr std::int64_t kMostRows = 0xffff'ffff, kMostStride = 0x7fff'ffff;
  if (!table.row.refusal.empty()) return table.row.refusal;
  if (table.row.count() > kMostElements) {
    return fmt::format("gather_rows: rows of {} elements; at most {}", table.row.count(),
                       kMostElements);
  }
  if (rows > kMostRows || std::abs(table.stride) > kMostStride) {
    return fmt::format("gather_rows: a table of {} rows, {} items apart; at most {} and {}", rows,
                       table.stride, kMostRows, kMostStride);
  }
  return {};
}

Prepared prepare_gather(const PrepareArgs& args, const GatherRows& op) {
  const TensorSpec &spec = args.inputs[0].spec, &ids = args.inputs[1].spec;
  if (std::string reason = gather_refusal(args, op.dtype); !reason.empty()) return refuse(reason);
  const Table table = make_table(args.inputs[0]);
  if (std::string reason = table_refusal(table, spec.shape[0]); !reason.empty()) {
    return refuse(reason);
  }
  // Rows that an extent may cut are indices of the ids' axis 0.
  const std::array<Dims, 1> none{Dims(ids.shape.size(), 0)};
  Walk walk = make_walk("gather_rows", ids.shape, none, kGatherNumbers);
  walk.share_items(table.row_elements());
  if (!walk.refusal.empty()) return refuse(walk.refusal);
  if (std::string reason = count_refusal(args, walk); !reason.empty()) return refuse(reason);

  KernelMaker maker(args);
  const bool honours = maker.traits.honours_extent = !ids.shape.empty();
  if (walk.count() == 0) return maker.finish();
  GatherParams params{walk.rows, walk.per_row, table.row_elements(),
                      static_cast<std::uint32_t>(spec.shape[0]),
                      static_cast<std::int32_t>(table.stride)};
  fill_axes(table.row, params.axes);
  const bool doubles =
      spec.dtype != op.dtype && (spec.dtype == DType::f64 || op.dtype == DType::f64);
  maker.dispatch(
      {doubles ? "gather_rows_f64" : "gather_rows",
       walk_group(args.limits),
       {table.row.rank(), static_cast<std::uint32_t>(spec.dtype),
        static_cast<std::uint32_t>(op.dtype), table.per_item,
        static_cast<std::uint32_t>(table.bytes), static_cast<std::uint32_t>(ids.dtype),
        std::uint32_t{op.wrap && info(ids.dtype).kind == DTypeKind::signed_int}},
       grid_of(walk, honours, args.limits),
       {input(0, table.first * table.bytes), input(1), output(0), honours ? extent() : nothing()}},
      params);
  return maker.finish();
}

// ---- Write

constexpr std::size_t kWriteNumbers = 14;

/// What a row is written through: the shader and its constants after the rank.
struct Writer {
  std::string_view shader = "write_rows";
  std::uint32_t from_dtype = 0, to_dtype = 0, from_bytes = 0, to_bytes = 0;
  std::uint32_t per_item = 1;  // elements of x in an item of the state
  std::uint32_t group = 0;
};

Prepared write_through(const PrepareArgs& args, const Items& x, const Writer& writer) {
  Walk walk = make_walk("write_rows", x.shape, std::span(&x.strides, 1), kWriteNumbers);
  if (!walk.refusal.empty()) return refuse(walk.refusal);
  if (std::string reason = count_refusal(args, walk); !reason.empty()) return refuse(reason);
  KernelMaker maker(args);
  maker.traits.aliases.push_back({0, 0, true});
  maker.traits.honours_extent = true;
  if (walk.count() == 0) return maker.finish();
  walk.per_row /= writer.per_item;
  maker.dispatch(
      {writer.shader,
       walk_group(args.limits),
       {walk.rank(), writer.from_dtype, writer.to_dtype, writer.from_bytes, writer.to_bytes},
       grid_of(walk, true, writer.group),
       {input(1, walk.first[0] * x.bytes), input(2), output(0), extent()}},
      walk_params<kWriteNumbers>(walk));
  return maker.finish();
}

Prepared prepare_write(const PrepareArgs& args) {
  const OperandSpec &state = args.inputs[0], &x = args.inputs[1];
  const DType to = state.spec.dtype, from = x.spec.dtype;
  if (!is_contiguous(args.inputs[2])) {
    return refuse(
        fmt::format("write_rows: row must be contiguous, not {}", to_string(args.inputs[2])));
  }
  const Items items = to == from ? movable_items(x) : as_items(x);
  const auto bytes = static_cast<std::uint32_t>(items.bytes);
  Writer writer{"write_rows",
                static_cast<std::uint32_t>(from),
                static_cast<std::uint32_t>(to),
                bytes,
                bytes,
                1,
                walk_group(args.limits)};
  if (to == from) {
    if (std::string reason = item_refusal(args, items); !reason.empty()) return refuse(reason);
    return write_through(args, items, writer);
  }
  if (std::string reason = narrow_refusal(args, to); !reason.empty()) return refuse(reason);
  if (std::string reason = block_refusal(args, to); !reason.empty()) return refuse(reason);
  if (is_block(to)) {
    if (from == DType::f64) return refuse("write_rows: of f64 into q8_0");
    writer.shader = "write_rows_q8_0";
    writer.per_item = static_cast<std::uint32_t>(info(to).block_elements);
    writer.group = block_group(args.limits);
  } else if (to == DType::f64 || from == DType::f64) {
    if (std::string reason = f64_refusal(args); !reason.empty()) return refuse(reason);
    writer.shader = "write_rows_f64";
  }
  writer.to_bytes = static_cast<std::uint32_t>(info(to).block_bytes);
  return write_through(args, items, writer);
}

// ---- Feed

constexpr std::size_t kCopyNumbers = 17, kFeedNumbers = 15;

Prepared prepare_feed(const PrepareArgs& args, Feed::Kind kind) {
  const Items items = movable_items(args.inputs[1]);
  if (std::string reason = item_refusal(args, items); !reason.empty()) return refuse(reason);
  Walk walk = make_walk("feed", items.shape, std::span(&items.strides, 1), kFeedNumbers);
  if (!walk.refusal.empty()) return refuse(walk.refusal);
  KernelMaker maker(args);
  maker.traits.aliases.push_back({0, 0, true});
  const Address x = input(1, walk.first[0] * items.bytes);
  const auto bytes = static_cast<std::uint32_t>(items.bytes);
  if (kind == Feed::Kind::whole) {
    if (walk.count() == 0) return maker.finish();
    maker.dispatch({"copy",
                    walk_group(args.limits),
                    {walk.rank(), bytes},
                    grid_of(walk, false, args.limits),
                    {x, output(0), nothing()}},
                   walk_params<kCopyNumbers>(walk));
    return maker.finish();
  }
  const bool one_row = kind == Feed::Kind::row;
  const auto params = walk_params<kFeedNumbers>(walk);
  if (one_row) walk.rows = 1;
  // Without elements there is still an extent to check.
  Grid grid = grid_of(walk, false, args.limits);
  grid.groups = std::max<std::uint64_t>(grid.groups, 1);
  maker.dispatch({"feed",
                  walk_group(args.limits),
                  {walk.rank(), bytes, one_row},
                  grid,
                  {x, output(0), input(2)}},
                 params);
  return maker.finish();
}

}  // namespace

Prepared prepare_rows(const PrepareArgs& args) {
  if (std::string packed = packed_refusal(args); !packed.empty()) return refuse(packed);
  if (const auto* op = std::get_if<GatherRows>(&args.op)) return prepare_gather(args, *op);
  if (!is_contiguous(args.inputs[0])) {
    return refuse(fmt::format("{}: the state must be contiguous, not {}", name(args.op),
                              to_string(args.inputs[0])));
  }
  if (std::holds_alternative<WriteRows>(args.op)) return prepare_write(args);
  return prepare_feed(args, std::get<Feed>(args.op).kind);
}

}  // namespace heddle::vulkan
