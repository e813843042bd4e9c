// gather_matmul and segmented_matmul: products whose operands are chosen by data, by the parts that
// matmul is made of.
#include <algorithm>

#include "base/check.h"
#include "device/cpu/group_rows.h"
#include "device/cpu/matmul.h"
#include "device/cpu/parallel.h"

namespace heddle::cpu {

namespace {

constexpr std::int64_t kChunkWork = std::int64_t{1} << 17;  // multiplications worth a task

/// A product of matrices for either kind of sums.
struct AnyMatmul {
  MatmulShape shape;  // of one matrix by another
  DType dtype;
  std::size_t item;

  void part(const MatmulShape& s, const MatmulOperands& operands, const MatmulPart& p,
            MatmulScratch& scratch) const {
    if (dtype == DType::f64) return multiply_part_f64(s, operands, p);
    multiply_part(FloatMatmul(s, dtype), operands, p, scratch);
  }
  std::int64_t groups() const { return (shape.columns + kGroupColumns - 1) / kGroupColumns; }
  std::int64_t width(std::int64_t column) const {
    return std::min(kGroupColumns, shape.columns - column);
  }
  std::int64_t bytes(std::int64_t count) const { return count * static_cast<std::int64_t>(item); }
};

/// Shares out `rows` blocks of rows times the groups of columns; body(row block, column, scratch).
template <class Body>
void for_each_block(const Launch& launch, const AnyMatmul& m, std::int64_t blocks,
                    std::int64_t block_rows, const Body& body) {
  const std::int64_t work = std::max<std::int64_t>(
      1, block_rows * std::min(m.shape.columns, kGroupColumns) * m.shape.depth);
  parallel(launch.team, blocks * m.groups(), std::max<std::int64_t>(1, kChunkWork / work),
           [&](std::int64_t begin, std::int64_t end) {
             MatmulScratch scratch;
             for (std::int64_t i = begin; i < end; ++i) {
               body(i % blocks, i / blocks * kGroupColumns, scratch);
             }
           });
}

AnyMatmul make_matmul(const PrepareArgs& args) {
  const OperandSpec &a = args.inputs[0], &b = args.inputs[1];
  const std::size_t ra = a.spec.shape.size(), rb = b.spec.shape.size();
  const auto stride = [](const OperandSpec& operand, std::size_t axis) {
    return operand.spec.shape[axis] <= 1 ? 1 : operand.layout.strides[axis];
  };
  MatmulShape s;
  s.rows = a.spec.shape[ra - 2], s.depth = a.spec.shape[ra - 1], s.columns = b.spec.shape[rb - 1];
  s.a_row = stride(a, ra - 2), s.a_depth = stride(a, ra - 1);
  s.b_depth = stride(b, rb - 2), s.b_column = stride(b, rb - 1);
  return {s, a.spec.dtype, item_size(a.spec.dtype)};
}

std::string refusal(const PrepareArgs& args) {
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    const OperandSpec& input = args.inputs[i];
    const bool chooses = input.spec.dtype == DType::u32;
    if (input.layout.kind != LayoutKind::strided || (chooses && !is_contiguous(input))) {
      return fmt::format("{}: operand {} must be {}, not {}", name(args.op), i,
                         chooses ? "contiguous" : "strided", to_string(input));
    }
  }
  const AnyMatmul m = make_matmul(args);
  const bool a_dense = m.shape.a_depth == 1 || m.shape.a_row == 1;
  const bool b_dense = m.shape.b_depth == 1 || m.shape.b_column == 1;
  if (a_dense && b_dense) return {};
  return fmt::format("{}: {} and {} must each have an axis of adjacent elements", name(args.op),
                     to_string(args.inputs[0]), to_string(args.inputs[1]));
}

// ---- gather_matmul

/// Products of few rows are computed together where neighbours choose one b; then rows of a are
/// gathered first.
struct GatherPlan {
  AnyMatmul m;
  LeadingRows products;
  std::int64_t a_matrices, b_matrices, a_stride, b_stride;  // in elements
  bool gathers_rows = false;

  std::size_t workspace_bytes() const {
    return gathers_rows
               ? static_cast<std::size_t>(m.bytes(products.rows * m.shape.rows * m.shape.depth))
               : 0;
  }
  std::int64_t together() const {
    return gathers_rows ? std::max<std::int64_t>(1, kRowBlock / m.shape.rows) : 1;
  }
};

const std::uint32_t* a_indices(const Launch& launch) {
  return launch.inputs[2].as<const std::uint32_t>();
}
const std::uint32_t* b_indices(const Launch& launch) {
  return launch.inputs[3].as<const std::uint32_t>();
}

void gather_rows(const GatherPlan& plan, const Launch& launch, std::int64_t count) {
  const MatmulShape& s = plan.m.shape;
  const std::int64_t matrix = plan.m.bytes(s.rows * s.depth), row = plan.m.bytes(s.depth);
  parallel(launch.team, count, row_grain(s.rows * s.depth),
           [&](std::int64_t begin, std::int64_t end) {
             for (std::int64_t p = begin; p < end; ++p) {
               const std::byte* from =
                   launch.inputs[0].data + plan.m.bytes(a_indices(launch)[p] * plan.a_stride);
               for (std::int64_t r = 0; r < s.rows; ++r) {
                 std::copy_n(from + plan.m.bytes(r * s.a_row), row,
                             launch.workspace + p * matrix + r * row);
               }
             }
           });
}

/// Columns from `column` on of products [begin, end), which have one b.
void multiply_run(const GatherPlan& plan, const Launch& launch, std::int64_t begin,
                  std::int64_t end, std::int64_t row, std::int64_t column, MatmulScratch& scratch) {
  const AnyMatmul& m = plan.m;
  MatmulShape s = m.shape;
  const std::byte* a = launch.inputs[0].data + m.bytes(a_indices(launch)[begin] * plan.a_stride);
  if (plan.gathers_rows) {
    a = launch.workspace + m.bytes(begin * s.rows * s.depth);
    s.a_row = s.depth, s.a_depth = 1;
    s.rows *= end - begin;
  }
  const std::byte* b = launch.inputs[1].data + m.bytes(b_indices(launch)[begin] * plan.b_stride);
  std::byte* out = launch.outputs[0].data + m.bytes(begin * m.shape.rows * s.columns);
  m.part(s, {a, b, out},
         {.batch = 0,
          .row = row,
          .rows = std::min(kRowBlock, s.rows - row),
          .column = column,
          .columns = m.width(column)},
         scratch);
}

void run_gather(const GatherPlan& plan, const Launch& launch) {
  const std::int64_t count = plan.products.that_count(launch.extent);
  for (std::int64_t p = 0; p < count; ++p) {
    require(a_indices(launch)[p] < plan.a_matrices, ErrorCode::invalid_argument,
            "gather_matmul: index {} of a for product {} is outside [0, {})", a_indices(launch)[p],
            p, plan.a_matrices);
    require(b_indices(launch)[p] < plan.b_matrices, ErrorCode::invalid_argument,
            "gather_matmul: index {} of b for product {} is outside [0, {})", b_indices(launch)[p],
            p, plan.b_matrices);
  }
  if (plan.m.shape.rows == 0) return;
  if (plan.gathers_rows) gather_rows(plan, launch, count);
  const std::int64_t together = plan.together();
  const std::int64_t blocks_each = (plan.m.shape.rows + kRowBlock - 1) / kRowBlock;
  const std::int64_t blocks = (count + together - 1) / together * blocks_each;
  for_each_block(launch, plan.m, blocks, std::min(kRowBlock, plan.m.shape.rows * together),
                 [&](std::int64_t block, std::int64_t column, MatmulScratch& scratch) {
                   const std::int64_t first = block / blocks_each * together;
                   const std::int64_t last = std::min(count, first + together);
                   for (std::int64_t p = first; p < last;) {
                     std::int64_t next = p + 1;
                     while (next < last && b_indices(launch)[next] == b_indices(launch)[p]) ++next;
                     multiply_run(plan, launch, p, next, block % blocks_each * kRowBlock, column,
                                  scratch);
                     p = next;
                   }
                 });
}

Prepared prepare_gather(const PrepareArgs& args) {
  const OperandSpec &a = args.inputs[0], &b = args.inputs[1];
  GatherPlan plan{make_matmul(args),   LeadingRows(args.inputs[2].spec.shape, 0),
                  a.spec.shape[0],     b.spec.shape[0],
                  a.layout.strides[0], b.layout.strides[0]};
  const std::int64_t rows = plan.m.shape.rows;
  plan.gathers_rows = plan.m.shape.a_depth == 1 && rows > 0 && 2 * rows <= kRowBlock;
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.honours_extent = !args.inputs[2].spec.shape.empty();
  traits.workspace_bytes = plan.workspace_bytes();
  return make_kernel(std::move(traits), [plan](const Launch& launch) { run_gather(plan, launch); });
}

// ---- segmented_matmul

void run_segments(const AnyMatmul& m, const LeadingRows& segments, const Launch& launch) {
  const std::int64_t count = segments.that_count(launch.extent);
  const auto* bounds = launch.inputs[2].as<const std::uint32_t>();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t first = bounds[2 * i], last = bounds[2 * i + 1];
    require(first <= last && last <= m.shape.depth, ErrorCode::invalid_argument,
            "segmented_matmul: segment {} is [{}, {}); it must lie in order in [0, {}]", i, first,
            last, m.shape.depth);
  }
  const std::int64_t row_blocks = (m.shape.rows + kRowBlock - 1) / kRowBlock;
  for_each_block(launch, m, count * row_blocks, std::min(kRowBlock, m.shape.rows),
                 [&](std::int64_t block, std::int64_t column, MatmulScratch& scratch) {
                   const std::int64_t segment = block / row_blocks,
                                      row = block % row_blocks * kRowBlock;
                   const std::int64_t first = bounds[2 * segment];
                   MatmulShape s = m.shape;
                   s.depth = bounds[2 * segment + 1] - first;
                   m.part(s,
                          {launch.inputs[0].data + m.bytes(first * s.a_depth),
                           launch.inputs[1].data + m.bytes(first * s.b_depth),
                           launch.outputs[0].data + m.bytes(segment * s.rows * s.columns)},
                          {.batch = 0,
                           .row = row,
                           .rows = std::min(kRowBlock, s.rows - row),
                           .column = column,
                           .columns = m.width(column)},
                          scratch);
                 });
}

Prepared prepare_segments(const PrepareArgs& args) {
  const AnyMatmul m = make_matmul(args);
  const Shape& shape = args.inputs[2].spec.shape;
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.honours_extent = shape.size() > 1;
  return make_kernel(std::move(traits), [m, segments = LeadingRows(shape)](const Launch& launch) {
    run_segments(m, segments, launch);
  });
}

}  // namespace

Prepared prepare_gather_matmul(const PrepareArgs& args) {
  if (std::string why = refusal(args); !why.empty()) return refuse(std::move(why));
  return std::holds_alternative<GatherMatmul>(args.op) ? prepare_gather(args)
                                                       : prepare_segments(args);
}

}  // namespace heddle::cpu
