// Random programs of views, and of what writes and reads through them, with the bytes that each
// value must have: worked out element by element from indices alone.
#pragma once

#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "heddle/ops.h"

namespace heddle::test {

/// An array and what it must hold.
struct Known {
  Array array;
  TensorSpec spec;
  std::vector<std::byte> bytes;
};

class ViewProgram {
 public:
  explicit ViewProgram(unsigned seed) : random_(seed) {}

  /// A shape, an unsigned dtype and bytes for an array to begin with.
  struct Base {
    TensorSpec spec;
    std::vector<std::byte> bytes;
  };
  Base make_base();
  void add(Array array, Base base);

  /// Makes `steps` values from those there are; but few are kept, so that the memory of others may
  /// be written over. Arrays belong to the device in scope.
  void grow(int steps);

  const std::vector<Known>& values() const { return values_; }
  /// What was done, for messages.
  const std::string& text() const { return text_; }

 private:
  std::int64_t between(std::int64_t low, std::int64_t high);  // both included
  Known step(const Known& x);
  Known sliced(const Known& x);
  Known transposed(const Known& x);
  Known reshaped(const Known& x);
  Known broadcast(const Known& x);
  Known squeezed(const Known& x);
  Known expanded(const Known& x);
  Known strided(const Known& x);
  Known reinterpreted(const Known& x);
  Known updated(const Known& x);
  Known flipped_bits(const Known& x);

  std::mt19937 random_;
  std::vector<Known> values_;
  std::string text_;
};

}  // namespace heddle::test
