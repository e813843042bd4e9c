// How many prompt tokens a step may take without holding up the texts that are being written.
#pragma once

#include <cstdint>
#include <optional>

namespace heddle::llm {

/// Learns from each step with prompts how long it is for each of their tokens, with what was
/// written beside.
class Pace {
 public:
  explicit Pace(double step_seconds) : step_seconds_(step_seconds) {}

  void note(std::int64_t prompt_tokens, double seconds);
  /// The most prompt tokens beside texts that are being written.
  std::int64_t prompt_tokens() const;
  /// And where there are none: requests that come or go meanwhile wait for the step's end.
  std::int64_t prompt_tokens_alone() const;

 private:
  std::int64_t tokens_in(double seconds) const;

  double step_seconds_;
  std::optional<double> token_seconds_;
};

}  // namespace heddle::llm
