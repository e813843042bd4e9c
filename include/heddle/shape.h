// Shapes: up to eight dimensions, outermost first (row-major), as in NumPy.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>

namespace heddle {

inline constexpr int kMaxRank = 8;

/// A short list of extents, strides or axes; up to kInPlace of them are stored in place, since
/// every op, spec and layout holds such lists. More than kMaxRank entries throws invalid_argument.
class Dims {
 public:
  using value_type = std::int64_t;

  constexpr Dims() noexcept : here_{} {}
  Dims(std::initializer_list<std::int64_t> values)
      : Dims(std::span<const std::int64_t>(values.begin(), values.size())) {}
  explicit Dims(std::span<const std::int64_t> values);
  Dims(std::size_t count, std::int64_t value);
  Dims(const Dims& other) : size_(other.size_) {
    if (other.is_away()) {
      copy_away(other);
    } else {
      std::copy_n(other.here_, kInPlace, here_);
    }
  }
  Dims(Dims&& other) noexcept : size_(other.size_) { take(other); }
  Dims& operator=(const Dims& other) {
    if (this != &other) *this = Dims(other);
    return *this;
  }
  Dims& operator=(Dims&& other) noexcept {
    if (this == &other) return *this;
    if (is_away()) delete[] away_;
    size_ = other.size_;
    take(other);
    return *this;
  }
  ~Dims() {
    if (is_away()) delete[] away_;
  }

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  std::int64_t& operator[](std::size_t i) noexcept { return begin()[i]; }
  std::int64_t operator[](std::size_t i) const noexcept { return begin()[i]; }
  std::int64_t* begin() noexcept { return is_away() ? away_ : here_; }
  std::int64_t* end() noexcept { return begin() + size_; }
  const std::int64_t* begin() const noexcept { return is_away() ? away_ : here_; }
  const std::int64_t* end() const noexcept { return begin() + size_; }
  std::int64_t back() const noexcept { return begin()[size_ - 1]; }

  void push_back(std::int64_t value) { insert(size_, value); }
  void insert(std::size_t at, std::int64_t value);
  void erase(std::size_t at) noexcept;

  friend bool operator==(const Dims& a, const Dims& b) noexcept {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  static constexpr std::size_t kInPlace = 4;

  bool is_away() const noexcept { return size_ > kInPlace; }
  /// Sets the size of an empty list, whose entries are then to be written.
  void grow(std::size_t size);
  void copy_away(const Dims& other);
  /// The entries of `other`, of which there are size_; leaves it empty.
  void take(Dims& other) noexcept {
    if (is_away()) {
      away_ = other.away_;
    } else {
      std::copy_n(other.here_, kInPlace, here_);
    }
    other.size_ = 0;
  }

  union {
    std::int64_t here_[kInPlace];
    std::int64_t* away_;  // kMaxRank of them
  };
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
