// A vector that holds its first few elements in place: for lists that are nearly always short.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <new>
#include <span>
#include <utility>

namespace heddle {

/// Up to N elements lie in the object itself, more on the heap. Grows only; moving it moves the
/// elements that lie in place.
template <class T, std::size_t N>
class InlineVector {
 public:
  InlineVector() noexcept : data_(in_place()) {}
  explicit InlineVector(std::span<const T> values) : InlineVector() {
    reserve(values.size());
    for (const T& value : values) push_back(value);
  }
  InlineVector(std::initializer_list<T> values)
      : InlineVector(std::span<const T>(values.begin(), values.size())) {}
  InlineVector(InlineVector&& other) noexcept : InlineVector() { take(std::move(other)); }
  InlineVector& operator=(InlineVector&& other) noexcept {
    if (this == &other) return *this;
    clear();
    take(std::move(other));
    return *this;
  }
  ~InlineVector() { clear(); }

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T* begin() noexcept { return data_; }
  T* end() noexcept { return data_ + size_; }
  const T* begin() const noexcept { return data_; }
  const T* end() const noexcept { return data_ + size_; }
  T& operator[](std::size_t i) noexcept { return data_[i]; }
  const T& operator[](std::size_t i) const noexcept { return data_[i]; }
  T& front() noexcept { return data_[0]; }
  T& back() noexcept { return data_[size_ - 1]; }

  void push_back(T value) {
    if (size_ == capacity_) reserve(2 * std::size_t{capacity_});
    new (data_ + size_) T(std::move(value));
    ++size_;
  }
  void pop_back() noexcept { std::destroy_at(data_ + --size_); }

  void reserve(std::size_t capacity) {
    if (capacity <= capacity_) return;
    T* room = std::allocator<T>().allocate(capacity);
    std::uninitialized_move(begin(), end(), room);
    std::destroy(begin(), end());
    release();
    data_ = room;
    capacity_ = static_cast<std::uint32_t>(capacity);
  }
  /// Also gives heap memory back.
  void clear() noexcept {
    std::destroy(begin(), end());
    release();
    data_ = in_place();
    size_ = 0;
    capacity_ = N;
  }

 private:
  T* in_place() noexcept { return std::launder(reinterpret_cast<T*>(storage_)); }
  void release() noexcept {
    if (capacity_ > N) std::allocator<T>().deallocate(data_, capacity_);
  }
  /// This one is empty and in place.
  void take(InlineVector&& other) noexcept {
    if (other.capacity_ > N) {
      data_ = std::exchange(other.data_, other.in_place());
      capacity_ = std::exchange(other.capacity_, static_cast<std::uint32_t>(N));
      size_ = std::exchange(other.size_, 0);
      return;
    }
    std::uninitialized_move(other.begin(), other.end(), data_);
    size_ = other.size_;
    other.clear();
  }

  T* data_;
  std::uint32_t size_ = 0, capacity_ = N;
  alignas(T) std::byte storage_[N * sizeof(T)];
};

}  // namespace heddle
