// Shapes: up to eight dimensions, outermost first (row-major), as in NumPy.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>

namespace heddle {

inline constexpr int kMaxRank = 8;

/// A short list of extents, strides or axes, stored in place. More than kMaxRank entries throws
/// invalid_argument.
class Dims {
 public:
  using value_type = std::int64_t;

  Dims() = default;
  Dims(std::initializer_list<std::int64_t> values)
      : Dims(std::span<const std::int64_t>(values.begin(), values.size())) {}
  explicit Dims(std::span<const std::int64_t> values);
  Dims(std::size_t count, std::int64_t value);

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  std::int64_t& operator[](std::size_t i) noexcept { return values_[i]; }
  std::int64_t operator[](std::size_t i) const noexcept { return values_[i]; }
  std::int64_t* begin() noexcept { return values_.data(); }
  std::int64_t* end() noexcept { return values_.data() + size_; }
  const std::int64_t* begin() const noexcept { return values_.data(); }
  const std::int64_t* end() const noexcept { return values_.data() + size_; }
  std::int64_t back() const noexcept { return values_[size_ - 1]; }

  void push_back(std::int64_t value);
  void insert(std::size_t at, std::int64_t value);
  void erase(std::size_t at) noexcept;

  friend bool operator==(const Dims& a, const Dims& b) noexcept {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  std::array<std::int64_t, kMaxRank> values_{};
  std::uint8_t size_ = 0;
};

std::string to_string(const Dims& dims);  // "[2, 3]"

/// The extents of a tensor. Non-negative; zero is an empty tensor, no dimensions a scalar.
using Shape = Dims;

/// Number of elements. Throws invalid_argument if an extent is negative or the product overflows
/// int64.
std::int64_t elements(const Shape& shape);

/// `axis` in [-rank, rank) as a non-negative index; anything else throws invalid_argument naming
/// `what`.
std::size_t normalize_axis(std::int64_t axis, std::size_t rank, const char* what);

/// NumPy's broadcast of two shapes; throws invalid_argument naming both when they do not agree.
Shape broadcast_shapes(const Shape& a, const Shape& b);

/// Row-major strides, in elements.
Dims contiguous_strides(const Shape& shape);

}  // namespace heddle
