// Conversion between plain dtypes, and from block types.
//
// To integers: truncates towards zero and saturates; NaN becomes 0. Between integers: modulo
// 2^bits. To bool: whether it is not zero. From complex: its real part.
#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/check.h"
#include "device/cpu/block_io.h"
#include "device/cpu/elementwise.h"
#include "device/cpu/parallel.h"
#include "device/cpu/types.h"
#include "tensor/blocks.h"

namespace heddle::cpu {

namespace {

template <class T>
constexpr bool kComplex = std::is_same_v<T, std::complex<float>>;

/// `value` as a float on its way to a half type: rounded to odd, so that rounding again is as good
/// as rounding once.
float towards_half(double value) {
  const auto nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || !std::isfinite(value) || std::isinf(nearest)) {
    return nearest;
  }
  const auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (bits & 1u) return nearest;
  const bool away = std::fabs(static_cast<double>(nearest)) > std::fabs(value);
  return std::bit_cast<float>(away ? bits - 1u : bits + 1u);
}

template <class To, class From>
To saturate(From value) {
  // 2^digits is exact in From, unlike the largest value of To.
  const From limit = std::ldexp(From(1), std::numeric_limits<To>::digits);
  if (std::isnan(value)) return 0;
  if (value >= limit) return std::numeric_limits<To>::max();
  const From lowest = std::is_signed_v<To> ? -limit : From(0);
  return value <= lowest ? std::numeric_limits<To>::min() : static_cast<To>(value);
}

template <class To, class From>
To convert(From value) {
  if constexpr (kComplex<From>) {
    if constexpr (kComplex<To>) return value;
    if constexpr (std::is_same_v<To, bool>) return value != From{};
    return convert<To>(value.real());
  } else if constexpr (kComplex<To>) {
    return {convert<float>(value), 0.0f};
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From{};
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    return saturate<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

template <class To, class From>
void convert_block(const void* const* in, void* out, std::int64_t n) {
  const auto* x = static_cast<const From*>(in[0]);
  auto* y = static_cast<To*>(out);
  for (std::int64_t i = 0; i < n; ++i) y[i] = convert<To>(x[i]);
}

/// To floats that a half type is made from next.
template <class From>
void convert_block_for_half(const void* const* in, void* out, std::int64_t n) {
  const auto* x = static_cast<const From*>(in[0]);
  auto* y = static_cast<float*>(out);
  for (std::int64_t i = 0; i < n; ++i) {
    // Integers beyond 2^53 lose bits on the way to double that only a tie of a half could show.
    y[i] = towards_half(static_cast<double>(x[i]));
  }
}

}  // namespace

BlockFunction conversion_block(DType from, DType to) {
  return with_compute_type(from, [to](auto from_tag) -> BlockFunction {
    using From = typename decltype(from_tag)::type;
    if constexpr (std::is_same_v<From, double> || (std::is_integral_v<From> && sizeof(From) >= 4)) {
      if (is_half(to)) return convert_block_for_half<From>;
    }
    return with_compute_type(to, [](auto to_tag) -> BlockFunction {
      return convert_block<typename decltype(to_tag)::type, From>;
    });
  });
}

namespace {

// ---- From block types

/// Rows of blocks, dequantised piece by piece. A piece is a whole number of any type's blocks.
struct Dequantizer {
  DType from;
  Walk rows;  // of the first block of each row
  std::int64_t row_elements, block_elements;
  std::size_t block_bytes;
  BlockFunction finish;  // from float to the target; empty for float
  BlockSink sink;

  void row(const std::byte* in, std::byte* out, std::int64_t r) const {
    static_assert(kBlock % 256 == 0);
    const std::byte* blocks = in + offset_of(rows, r) * static_cast<std::int64_t>(block_bytes);
    alignas(64) float values[kBlock];
    BlockBuffer scratch;
    for (std::int64_t i = 0; i < row_elements; i += kBlock) {
      const std::int64_t n = std::min(kBlock, row_elements - i);
      const std::int64_t block = i / block_elements;
      void* target = sink.target(out, r * row_elements + i, scratch);
      auto* floats = finish ? values : static_cast<float*>(target);
      dequantize_row(from, blocks + block * static_cast<std::int64_t>(block_bytes), floats, n);
      const void* source = floats;
      if (finish) finish(&source, target, n);
      sink.store(target, out, r * row_elements + i, n);
    }
  }
};

Prepared prepare_dequantize(const PrepareArgs& args, DType to) {
  const OperandSpec& x = args.inputs[0];
  const DTypeInfo& type = info(x.spec.dtype);
  Items items = as_items(x);
  const std::int64_t row_elements = x.spec.shape.back();
  items.shape[items.shape.size() - 1] = 1;
  const Walk rows = make_walk(items.shape, items.strides);
  const Dequantizer kernel{
      x.spec.dtype, rows,
      row_elements, type.block_elements,
      items.bytes,  is_float_like(to) ? BlockFunction{} : conversion_block(DType::f32, to),
      BlockSink(to)};
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  auto run = [kernel, count = row_elements == 0 ? 0 : rows.count](const Launch& launch) {
    parallel(launch.team, count, row_grain(kernel.row_elements),
             [&](std::int64_t begin, std::int64_t end) {
               for (std::int64_t r = begin; r < end; ++r) {
                 kernel.row(launch.inputs[0].data, launch.outputs[0].data, r);
               }
             });
  };
  return make_kernel(std::move(traits), std::move(run));
}

}  // namespace

Prepared prepare_cast(const PrepareArgs& args) {
  const DType from = args.inputs[0].spec.dtype, to = std::get<Cast>(args.op).dtype;
  if (args.inputs[0].layout.kind != LayoutKind::strided) {
    return refuse(
        fmt::format("cast: its operand must be strided, not {}", to_string(args.inputs[0])));
  }
  if (is_block(to)) return refuse(fmt::format("cast: to the block type {}", to_string(to)));
  if (is_block(from)) return prepare_dequantize(args, to);
  return make_elementwise(args, conversion_block(from, to));
}

}  // namespace heddle::cpu
