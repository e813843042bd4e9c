// Inference of quantised groups, and of products that choose their matrices.
#include <algorithm>

#include "op/infer.h"

namespace heddle {

namespace {

constexpr std::int64_t kWordBits = 32;
constexpr std::int64_t kMostElements = std::int64_t{1}
                                       << 53;  // of a row; products of it do not wrap

/// Words that the codes of a row take, and whether they fill the last one.
std::int64_t words(std::int64_t elements, std::int64_t bits) {
  return elements / kWordBits * bits + elements % kWordBits * bits / kWordBits;
}
bool fills_words(std::int64_t elements, std::int64_t bits) {
  return elements % kWordBits * bits % kWordBits == 0;
}

bool is_float_like(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

void check_float_like(const Operands& in, std::size_t i, std::string_view what) {
  in.check(is_float_like(in[i].dtype), "{} is {}; it must be f32, f16 or bf16", what, in[i]);
}

void check_format(const Operands& in, const GroupFormat& f) {
  if (f.mode == QuantMode::affine) {
    in.check(f.bits >= 2 && f.bits <= 8 && f.bits != 7,
             "affine codes of {} bits; they must be of 2, 3, 4, 5, 6 or 8", f.bits);
    in.check(f.group_size == 32 || f.group_size == 64 || f.group_size == 128,
             "affine groups of {}; they must be of 32, 64 or 128", f.group_size);
    return;
  }
  const std::int64_t size = f.mode == QuantMode::nvfp4 ? 16 : 32;
  const std::int64_t bits = f.mode == QuantMode::mxfp8 ? 8 : 4;
  in.check(f.group_size == size, "{} groups of {}; they must be of {}", to_string(f.mode),
           f.group_size, size);
  in.check(f.bits == bits, "{} codes of {} bits; they must be of {}", to_string(f.mode), f.bits,
           bits);
}

/// The extents of the matrices that operands `codes`, scales and perhaps biases from there hold.
Shape check_groups(const Operands& in, const GroupFormat& f, std::size_t codes) {
  const bool affine = f.mode == QuantMode::affine;
  const TensorSpec &c = in[codes], &scales = in[codes + 1];
  in.check(c.dtype == DType::u32, "the codes are {}; they must be u32", c);
  in.check_min_rank(codes, 1, "the codes");
  if (affine) {
    check_float_like(in, codes + 1, "the scales");
    in.check(in[codes + 2] == scales, "the biases are {}; they must be like the scales {}",
             in[codes + 2], scales);
  } else {
    in.check(scales.dtype == DType::u8, "the scales are {}; of {} they must be u8", scales,
             to_string(f.mode));
  }
  Shape shape = c.shape;
  const std::size_t last = shape.size() - 1;
  in.check(scales.shape.size() == shape.size() &&
               std::equal(shape.begin(), shape.begin() + last, scales.shape.begin()),
           "the codes {} and the scales {} differ in rows", c, scales);
  const std::int64_t groups = scales.shape.back();
  const std::int64_t width = groups <= kMostElements / f.group_size ? groups * f.group_size : -1;
  in.check(width >= 0 && fills_words(width, f.bits) && words(width, f.bits) == shape[last],
           "the codes {} and the scales {} do not fit together in {} groups of {} codes of {} bits",
           c, scales, to_string(f.mode), f.group_size, f.bits);
  shape[last] = width;
  return shape;
}

std::size_t group_operands(const GroupFormat& f) {
  return f.mode == QuantMode::affine ? 3 : 2;
}
const char* group_names(const GroupFormat& f) {
  return f.mode == QuantMode::affine ? "codes, scales, biases" : "codes, scales";
}

/// A matrix for each of `rank` axes' elements, which operand `i` holds, has a shape.
void check_batch_rank(const Operands& in, std::size_t i, std::size_t rank, std::string_view what) {
  in.check(rank + 2 <= kMaxRank, "{} are {}; with the two of matrices, more than {} dimensions",
           what, in[i], kMaxRank);
}

/// u32 indices at operands `first` and the next, of one shape.
const Shape& check_indices(const Operands& in, std::size_t first) {
  for (const std::size_t i : {first, first + 1}) {
    in.check(in[i].dtype == DType::u32, "the indices are {}; they must be u32", in[i]);
  }
  in.check(in[first].shape == in[first + 1].shape, "the indices {} and {} differ in shape",
           in[first], in[first + 1]);
  check_batch_rank(in, first, in[first].shape.size(), "the indices");
  return in[first].shape;
}

Shape with_matrix(Shape batch, std::int64_t rows, std::int64_t columns) {
  batch.push_back(rows);
  batch.push_back(columns);
  return batch;
}

Shape batch_of(const Shape& shape) {
  Shape batch = shape;
  batch.erase(batch.size() - 1);
  batch.erase(batch.size() - 1);
  return batch;
}

}  // namespace

Specs infer_op(const GroupQuantize& op, const Operands& in) {
  in.check_count(1, "w");
  check_format(in, op.format);
  in.check_min_rank(0, 1, "w");
  check_float_like(in, 0, "w");
  const std::int64_t width = in[0].shape.back();
  const GroupFormat& f = op.format;
  in.check(width % f.group_size == 0 && fills_words(width, f.bits) && width <= kMostElements,
           "rows of {} do not divide into groups of {} and whole words of codes", in[0],
           f.group_size);
  Shape codes = in[0].shape, groups = in[0].shape;
  codes[codes.size() - 1] = words(width, f.bits);
  groups[groups.size() - 1] = width / f.group_size;
  if (f.mode != QuantMode::affine) return {{DType::u32, codes}, {DType::u8, groups}};
  const TensorSpec scales{in[0].dtype, groups};
  Specs specs{{DType::u32, codes}, scales};
  specs.push_back(scales);
  return specs;
}

Specs infer_op(const GroupDequantize& op, const Operands& in) {
  in.check_count(group_operands(op.format), group_names(op.format));
  check_format(in, op.format);
  in.check(is_float_like(op.dtype), "to {}; it must be f32, f16 or bf16", to_string(op.dtype));
  return {{op.dtype, check_groups(in, op.format, 0)}};
}

Specs infer_op(const GroupMatmul& op, const Operands& in) {
  const std::size_t matrix = group_operands(op.format);
  in.check_count(
      1 + matrix + (op.gathers ? 2 : 0),
      fmt::format("x, {}{}", group_names(op.format), op.gathers ? ", x_indices, w_indices" : ""));
  check_format(in, op.format);
  check_float_like(in, 0, "x");
  const Shape& x = in[0].shape;
  const Shape w = check_groups(in, op.format, 1);
  in.check(w.size() >= 2, "the codes are {}; they must be a matrix at least", in[1]);
  in.check_min_rank(0, w.size() > 2 ? 2 : 1, "x");
  const std::int64_t depth = w[w.size() - (op.transpose ? 1 : 2)];
  const std::int64_t columns = w[w.size() - (op.transpose ? 2 : 1)];
  in.check(x.back() == depth, "x is {}; its rows must have {} elements, as the {} of w {} do",
           in[0], depth, op.transpose ? "rows" : "columns", to_string(w));
  if (op.gathers) {
    in.check_rank(0, 3, "x");
    in.check_rank(1, 3, "the codes");
    return {{in[0].dtype, with_matrix(check_indices(in, 1 + matrix), x[1], columns)}};
  }
  if (w.size() == 2) {
    Shape out = x;
    out[out.size() - 1] = columns;
    return {{in[0].dtype, out}};
  }
  const Shape batch = broadcast_shapes(batch_of(x), batch_of(w));
  return {{in[0].dtype, with_matrix(batch, x[x.size() - 2], columns)}};
}

Specs infer_op(const GatherMatmul&, const Operands& in) {
  in.check_count(4, "a, b, a_indices, b_indices");
  in.check_rank(0, 3, "a");
  in.check_rank(1, 3, "b");
  in.check_floating(0, "a");
  in.check(in[0].dtype == in[1].dtype, "{} and {} differ in dtype", in[0], in[1]);
  const Shape &a = in[0].shape, &b = in[1].shape;
  in.check(a[2] == b[1], "{} and {} do not agree in their inner extents, {} and {}", in[0], in[1],
           a[2], b[1]);
  return {{in[0].dtype, with_matrix(check_indices(in, 2), a[1], b[2])}};
}

Specs infer_op(const SegmentedMatmul&, const Operands& in) {
  in.check_count(3, "a, b, segments");
  in.check_rank(0, 2, "a");
  in.check_rank(1, 2, "b");
  in.check_floating(0, "a");
  in.check(in[0].dtype == in[1].dtype, "{} and {} differ in dtype", in[0], in[1]);
  const Shape &a = in[0].shape, &b = in[1].shape, &segments = in[2].shape;
  in.check(a[1] == b[0], "{} and {} do not agree in their inner extents, {} and {}", in[0], in[1],
           a[1], b[0]);
  in.check(in[2].dtype == DType::u32 && !segments.empty() && segments.back() == 2,
           "the segments are {}; they must be u32 [..., 2]", in[2]);
  Shape batch = segments;
  batch.erase(batch.size() - 1);
  check_batch_rank(in, 2, batch.size(), "the segments");
  return {{in[0].dtype, with_matrix(batch, a[0], b[1])}};
}

Specs infer_op(const Fp8& op, const Operands& in) {
  in.check_count(1, "x");
  if (op.decode) {
    in.check(in[0].dtype == DType::u8, "x is {}; it must be u8", in[0]);
    in.check(is_float_like(op.dtype), "to {}; it must be f32, f16 or bf16", to_string(op.dtype));
  } else {
    check_float_like(in, 0, "x");
    in.check(op.dtype == DType::u8, "to {}; codes are u8", to_string(op.dtype));
  }
  return {{op.dtype, in[0].shape}};
}

}  // namespace heddle
