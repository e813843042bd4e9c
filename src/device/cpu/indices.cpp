#include "device/cpu/indices.h"

#include "base/check.h"

namespace heddle::cpu {

Indices::Indices(std::string_view op, const OperandSpec& operand, std::int64_t extent,
                 std::int64_t size, bool wrap)
    : op_(op),
      source_(operand),
      to_i64_(conversion_block(operand.spec.dtype, DType::i64)),
      extent_(extent),
      size_(size),
      limit_(extent == 0 ? 0 : std::min(extent, extent - size + 1)),
      wraps_(wrap && info(operand.spec.dtype).kind == DTypeKind::signed_int),
      unsigned_(info(operand.spec.dtype).kind == DTypeKind::unsigned_int) {}

const std::int64_t* Indices::load(const Operand& operand, std::int64_t begin, std::int64_t n,
                                  Scratch& scratch) const {
  auto* out = reinterpret_cast<std::int64_t*>(scratch.wide.bytes);
  const void* from = source_.load(operand.data, begin, n, scratch.stored);
  to_i64_(&from, out, n);
  const std::int64_t from_end = wraps_ ? extent_ : 0;
  const auto limit = static_cast<std::uint64_t>(limit_);
  bool good = true;
  for (std::int64_t i = 0; i < n; ++i) {
    out[i] += out[i] < 0 ? from_end : 0;
    good &= static_cast<std::uint64_t>(out[i]) < limit;
  }
  if (!good) [[unlikely]] {
    std::int64_t i = 0;
    while (static_cast<std::uint64_t>(out[i]) < limit) ++i;
    refuse(operand, begin + i);
  }
  return out;
}

void Indices::refuse(const Operand& operand, std::int64_t at) const {
  Scratch scratch;
  std::int64_t index = 0;
  const void* from = source_.load(operand.data, at, 1, scratch.stored);
  to_i64_(&from, &index, 1);
  const std::string given =
      unsigned_ ? fmt::format("{}", static_cast<std::uint64_t>(index)) : fmt::format("{}", index);
  const std::int64_t least = wraps_ ? -extent_ : 0;
  const std::int64_t found = wraps_ && index < 0 ? index + extent_ : index;
  const bool inside = found >= 0 && found < extent_;
  require(!inside, ErrorCode::invalid_argument,
          "{}: the slice of {} from index {} at element {} reaches outside [0, {})", op_, size_,
          given, at, extent_);
  fail(ErrorCode::invalid_argument, "{}: index {} at element {} is outside [{}, {})", op_, given,
       at, least, extent_);
}

}  // namespace heddle::cpu
