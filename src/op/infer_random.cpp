#include "op/infer.h"

namespace heddle {

namespace {

std::optional<DType> unsigned_of(std::int64_t width) noexcept {
  switch (width) {
    case 1:
      return DType::u8;
    case 2:
      return DType::u16;
    case 4:
      return DType::u32;
    case 8:
      return DType::u64;
    default:
      return std::nullopt;
  }
}

}  // namespace

Specs infer_op(const RandomBits& op, const Operands& in) {
  in.check_count(1, "keys");
  const TensorSpec& keys = in[0];
  in.check(keys.dtype == DType::u32 && !keys.shape.empty() && keys.shape.back() == 2,
           "keys are {}; they must be u32[..., 2]", keys);
  const std::optional<DType> dtype = unsigned_of(op.width);
  in.check(dtype.has_value(), "a width of {} bytes; it must be 1, 2, 4 or 8", op.width);
  byte_size({*dtype, op.shape});  // refuses what overflows, even where there are no keys
  const std::size_t batch = keys.shape.size() - 1;
  in.check(batch + op.shape.size() <= kMaxRank,
           "{} for each of the keys {} has {} dimensions; at most {} are supported", op.shape, keys,
           batch + op.shape.size(), kMaxRank);
  Shape shape(std::span(keys.shape.begin(), batch));
  for (const std::int64_t extent : op.shape) shape.push_back(extent);
  return {{*dtype, shape}};
}

}  // namespace heddle
