// Vectors of a text's tokens, joined into one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heddle/engine.h"

namespace heddle::llm {

/// What the file says of how its model's vectors are meant to be joined
/// (ARCHITECTURE.pooling_type), or mean. Throws unsupported for ways that are not known.
Pooling pooling_of(const Model& model);

/// Sums in float64, token after token, so that it does not matter how the text was cut.
class Pool {
 public:
  Pool(Pooling pooling, bool normalize) : pooling_(pooling), normalize_(normalize) {}

  /// Rows of `width` numbers, of the tokens that come next.
  void add(std::span<const float> rows, std::size_t width);
  /// Throws backend if a number is not finite.
  std::vector<float> take() const;
  void clear();

 private:
  Pooling pooling_;
  bool normalize_;
  std::vector<double> sum_;
  std::int64_t count_ = 0;
};

}  // namespace heddle::llm
