// How many prompt tokens a step takes, from what steps took.
#include "llm/engine/pace.h"

#include <gtest/gtest.h>

namespace heddle::llm {
namespace {

TEST(Pace, TakesAsManyTokensAsAreComputedInTime) {
  Pace pace(0.1);
  for (int i = 0; i < 30; ++i) pace.note(100, 0.05);
  EXPECT_NEAR(static_cast<double>(pace.prompt_tokens()), 200, 2);
  EXPECT_NEAR(static_cast<double>(pace.prompt_tokens_alone()), 2000, 20);
}

/// As where some are being written beside, which takes 20 ms of each step.
TEST(Pace, StepsComeToLastAsLongAsTheyMay) {
  Pace pace(0.1);
  double seconds = 0;
  for (int i = 0; i < 40; ++i) {
    const std::int64_t tokens = pace.prompt_tokens();
    seconds = 0.02 + 0.0005 * static_cast<double>(tokens);
    pace.note(tokens, seconds);
  }
  EXPECT_NEAR(seconds, 0.1, 0.005);
}

TEST(Pace, NeverStandsStill) {
  Pace pace(1e-6);
  EXPECT_GE(pace.prompt_tokens(), 16);
  for (int i = 0; i < 30; ++i) pace.note(64, 100);
  EXPECT_EQ(pace.prompt_tokens(), 16);
  EXPECT_EQ(pace.prompt_tokens_alone(), 128);
}

TEST(Pace, OneSlowStepIsForgottenSoon) {
  Pace pace(0.1);
  for (int i = 0; i < 10; ++i) pace.note(100, 0.05);
  pace.note(100, 60);  // a plan was compiled
  EXPECT_GT(pace.prompt_tokens(), 100);
  for (int i = 0; i < 10; ++i) pace.note(100, 0.05);
  EXPECT_NEAR(static_cast<double>(pace.prompt_tokens()), 200, 10);
}

TEST(Pace, FewTokensAndNoTimeTeachNothing) {
  Pace pace(0.1);
  const auto before = pace.prompt_tokens();
  pace.note(15, 10);
  EXPECT_EQ(pace.prompt_tokens(), before);
  for (int i = 0; i < 10; ++i) pace.note(100, 0);
  EXPECT_GT(pace.prompt_tokens(), 1'000'000);
  EXPECT_LT(pace.prompt_tokens(), 2'000'000);
}

}  // namespace
}  // namespace heddle::llm
