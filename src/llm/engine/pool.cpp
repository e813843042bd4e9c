#include "llm/engine/pool.h"

#include <cmath>

#include "base/check.h"

namespace heddle::llm {

Pooling pooling_of(const Model& model) {
  constexpr std::int64_t kNone = 0, kMean = 1, kLast = 3;  // as llama.cpp writes it
  const std::string key = model.config().architecture + ".pooling_type";
  const std::int64_t type = model.file().metadata().find_int(key).value_or(kMean);
  require(type == kNone || type == kMean || type == kLast, ErrorCode::unsupported,
          "{} is {}; known are none (0), mean (1) and last (3)", key, type);
  return type == kLast ? Pooling::last : Pooling::mean;
}

void Pool::add(std::span<const float> rows, std::size_t width) {
  const std::size_t count = rows.size() / width;
  for (std::size_t row = 0; row < count; ++row) {
    const std::span<const float> values = rows.subspan(row * width, width);
    if (pooling_ == Pooling::last || sum_.empty()) {
      sum_.assign(values.begin(), values.end());
    } else {
      for (std::size_t i = 0; i < width; ++i) sum_[i] += values[i];
    }
  }
  count_ += static_cast<std::int64_t>(count);
}

std::vector<float> Pool::take() const {
  double squares = 0;
  for (const double value : sum_) squares += value * value;
  require(std::isfinite(squares), ErrorCode::backend,
          "the embedding is not finite: the model gives NaN or infinity for this text");
  double scale = pooling_ == Pooling::mean && count_ > 0 ? 1.0 / static_cast<double>(count_) : 1.0;
  if (normalize_ && squares > 0) scale = 1 / std::sqrt(squares);
  std::vector<float> vector;
  vector.reserve(sum_.size());
  for (const double value : sum_) vector.push_back(static_cast<float>(value * scale));
  return vector;
}

void Pool::clear() {
  sum_.clear();
  count_ = 0;
}

}  // namespace heddle::llm
