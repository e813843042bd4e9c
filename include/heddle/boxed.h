// Values that lie outside of what holds them.
#pragma once

#include <utility>

#include "heddle/ref.h"

namespace heddle {

/// A T that never changes, and that copies share: for the large parts of ops, so that an Op, of
/// which there are many, is not as large as the largest of them. Reads, compares and is made like a
/// T. One that was moved from may only be assigned to, or dropped.
template <class T>
class Boxed {
 public:
  Boxed() : Boxed(T()) {}
  Boxed(T value) : held_(make_ref<Held>(std::move(value))) {}  // NOLINT: like a T

  const T& operator*() const noexcept { return held_->value; }
  const T* operator->() const noexcept { return &held_->value; }
  operator const T&() const noexcept { return held_->value; }  // NOLINT: like a T

  friend bool operator==(const Boxed& a, const Boxed& b) noexcept {
    return a.held_ == b.held_ || *a == *b;
  }

 private:
  struct Held final : RefCounted {
    explicit Held(T v) : value(std::move(v)) {}
    const T value;
  };
  Ref<const Held> held_;
};

}  // namespace heddle
