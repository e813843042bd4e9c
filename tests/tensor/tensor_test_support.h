#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "heddle/dtype.h"

namespace heddle::test {

inline constexpr DType kBlockTypes[] = {DType::q4_0, DType::q4_1, DType::q5_0,   DType::q5_1,
                                        DType::q8_0, DType::q2_K, DType::q3_K,   DType::q4_K,
                                        DType::q5_K, DType::q6_K, DType::iq4_nl, DType::iq4_xs};

inline std::string type_name(const testing::TestParamInfo<DType>& parameter) {
  return std::string(to_string(parameter.param));
}

/// Normal numbers by Box and Muller's method: std::normal_distribution differs between libraries.
inline std::vector<float> gaussian(std::size_t count, double deviation, unsigned seed) {
  std::mt19937 random(seed);
  const auto uniform = [&random] { return (static_cast<double>(random()) + 0.5) / 4294967296.0; };
  std::vector<float> values(count);
  for (float& value : values) {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    const double angle = 2 * std::numbers::pi * uniform();
    value = static_cast<float>(deviation * radius * std::cos(angle));
  }
  return values;
}

/// ||actual - expected|| / ||expected||, in double.
inline double relative_l2(std::span<const float> actual, std::span<const float> expected) {
  double error = 0;
  double norm = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double difference = static_cast<double>(actual[i]) - expected[i];
    error += difference * difference;
    norm += static_cast<double>(expected[i]) * expected[i];
  }
  return std::sqrt(error / norm);
}

}  // namespace heddle::test
