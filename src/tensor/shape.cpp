#include "heddle/shape.h"

#include <limits>

#include "base/check.h"
#include "tensor/format.h"

namespace heddle {

namespace {

void require_rank(std::size_t rank) {
  require(rank <= kMaxRank, ErrorCode::invalid_argument, "{} dimensions; at most {} are supported",
          rank, kMaxRank);
}

}  // namespace

void Dims::grow(std::size_t size) {
  require_rank(size);
  if (size > kInPlace) {
    away_ = new std::int64_t[kMaxRank];
  } else {
    std::fill_n(here_, kInPlace, 0);  // copied whole
  }
  size_ = static_cast<std::uint8_t>(size);
}

void Dims::copy_away(const Dims& other) {
  away_ = new std::int64_t[kMaxRank];
  std::copy(other.begin(), other.end(), away_);
}

Dims::Dims(std::span<const std::int64_t> values) {
  grow(values.size());
  std::copy(values.begin(), values.end(), begin());
}

Dims::Dims(std::size_t count, std::int64_t value) {
  grow(count);
  std::fill_n(begin(), count, value);
}

void Dims::insert(std::size_t at, std::int64_t value) {
  require_rank(size_ + std::size_t{1});
  require(at <= size_, ErrorCode::invalid_argument, "insertion at {} into {} dimensions", at,
          size_);
  if (size_ == kInPlace) {
    auto* const away = new std::int64_t[kMaxRank];
    std::copy_n(here_, kInPlace, away);
    away_ = away;
  }
  ++size_;
  std::int64_t* const place = begin() + at;
  std::copy_backward(place, end() - 1, end());
  *place = value;
}

void Dims::erase(std::size_t at) noexcept {
  std::copy(begin() + at + 1, end(), begin() + at);
  if (size_-- != kInPlace + 1) return;
  const std::int64_t* const away = away_;
  std::copy_n(away, kInPlace, here_);
  delete[] away;
}

std::string to_string(const Dims& dims) {
  std::string text = "[";
  for (const std::int64_t entry : dims) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(entry);
  }
  text += ']';
  return text;
}

std::int64_t elements(const Shape& shape) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  std::int64_t count = 1;
  bool empty = false;
  for (const std::int64_t extent : shape) {
    require(extent >= 0, ErrorCode::invalid_argument, "shape {}: negative extent {}", shape,
            extent);
    if (extent == 0) {
      empty = true;  // other extents may be anything that strides can still express
      continue;
    }
    require(count <= kMax / extent, ErrorCode::invalid_argument,
            "shape {}: the number of elements overflows 64 bits", shape);
    count *= extent;
  }
  return empty ? 0 : count;
}

std::size_t normalize_axis(std::int64_t axis, std::size_t rank, const char* what) {
  const auto signed_rank = static_cast<std::int64_t>(rank);
  require(axis >= -signed_rank && axis < signed_rank, ErrorCode::invalid_argument,
          "{}: axis {} is outside [{}, {}) of {} dimensions", what, axis, -signed_rank, signed_rank,
          rank);
  return static_cast<std::size_t>(axis < 0 ? axis + signed_rank : axis);
}

Shape broadcast_shapes(const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  const std::size_t lead = longer.size() - shorter.size();
  Shape result = longer;
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    const std::int64_t x = longer[lead + i];
    const std::int64_t y = shorter[i];
    require(x == y || x == 1 || y == 1, ErrorCode::invalid_argument,
            "shapes {} and {} do not broadcast: extents {} and {} differ and neither is 1", a, b,
            a.size() >= b.size() ? x : y, a.size() >= b.size() ? y : x);
    result[lead + i] = x == 1 ? y : x;
  }
  return result;
}

Dims contiguous_strides(const Shape& shape) {
  elements(shape);  // refuses what would overflow below
  Dims strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) {
    strides[i - 1] = strides[i] * std::max<std::int64_t>(shape[i], 1);
  }
  return strides;
}

}  // namespace heddle
