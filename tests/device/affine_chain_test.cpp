// Chains of products and sums against one element at a time: the same values for every length,
// alignment and number of steps, past the caches or not.
#include "device/cpu/affine_chain.h"

#include <algorithm>
#include <vector>

#include "device/cpu/streaming.h"
#include "device/cpu_levels.h"

namespace heddle::test {
namespace {

float uniform(Random& random) {
  return std::uniform_real_distribution<float>(-1.5f, 1.5f)(random);
}

std::vector<cpu::AffineStep> random_steps(std::size_t count, Random& random) {
  std::vector<cpu::AffineStep> steps(count);
  for (std::size_t s = 0; s < count; ++s) {
    steps[s] = cpu::affine_step(s % 3 == 1 ? cpu::kNoFactor : uniform(random),
                                s % 3 == 2 ? cpu::kNoAddend : uniform(random));
  }
  return steps;
}

std::vector<float> random_floats(std::size_t count, Random& random) {
  std::vector<float> values(count);
  for (float& value : values) value = uniform(random);
  return values;
}

std::vector<float> one_at_a_time(std::vector<float> values,
                                 const std::vector<cpu::AffineStep>& steps) {
  for (float& value : values) {
    for (const cpu::AffineStep& step : steps) {
      value = value * step.factors[0] + step.addends[0];
    }
  }
  return values;
}

constexpr std::size_t kLengths[] = {0, 1, 3, 8, 15, 16, 17, 127, 128, 129, 300, 513};

TEST(AffineChain, RoundsAsOneElementAtATime) {
  at_every_level([] {
    Random random(1);
    for (const std::size_t count : {0, 1, 2, 7, 8, 9, 40}) {
      const std::vector<cpu::AffineStep> steps = random_steps(count, random);
      for (const std::size_t n : kLengths) {
        const std::vector<float> x = random_floats(n, random), expected = one_at_a_time(x, steps);
        std::vector<float> y(n), in_place = x;
        cpu::affine_chain(x.data(), steps, y.data(), static_cast<std::int64_t>(n));
        cpu::affine_chain(in_place.data(), steps, in_place.data(), static_cast<std::int64_t>(n));
        ASSERT_EQ(y, expected) << count << " steps of " << n;
        ASSERT_EQ(in_place, expected) << count << " steps of " << n << " in place";
      }
    }
  });
}

constexpr float kUntouched = 99;
constexpr std::size_t kMostOdd = 18;

TEST(AffineChain, StreamsToAnyAlignmentAndNothingBeside) {
  at_every_level([] {
    Random random(2);
    const std::vector<cpu::AffineStep> steps = random_steps(11, random);
    for (const std::size_t n : kLengths) {
      for (std::size_t odd = 0; odd < kMostOdd; ++odd) {
        const std::vector<float> x = random_floats(n, random), chained = one_at_a_time(x, steps);
        std::vector<float> y(n + 2 * kMostOdd, kUntouched), expected = y;
        std::ranges::copy(chained, expected.begin() + static_cast<std::ptrdiff_t>(odd));
        {
          const cpu::StreamFence fence;
          cpu::affine_chain_streamed(x.data(), steps, y.data() + odd, static_cast<std::int64_t>(n));
        }
        ASSERT_EQ(y, expected) << n << " from " << odd << " on";
      }
    }
  });
}

}  // namespace
}  // namespace heddle::test
