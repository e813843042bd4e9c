// How many prompt tokens a step takes, from what steps took.
#include "llm/engine/pace.h"

#include <gtest/gtest.h>

namespace heddle::llm {
namespace {

TEST(Pace, TakesAsManyTokensAsAreComputedInTime) {
  Pace pace(0.1);
  for (int i = 0; i < 30; ++i) {
    pace.note(0, 4, 0.02);           // writing alone
    pace.note(100, 4, 0.02 + 0.05);  // and with tokens of half a millisecond beside
  }
  EXPECT_NEAR(static_cast<double>(pace.prompt_tokens()), 200, 2);
  EXPECT_NEAR(static_cast<double>(pace.prompt_tokens_alone()), 2000, 20);
}

TEST(Pace, NeverStandsStill) {
  Pace pace(1e-6);
  EXPECT_GE(pace.prompt_tokens(), 16);
  for (int i = 0; i < 30; ++i) pace.note(64, 0, 100);
  EXPECT_EQ(pace.prompt_tokens(), 16);
  EXPECT_EQ(pace.prompt_tokens_alone(), 128);
}

TEST(Pace, OneSlowStepIsForgottenSoon) {
  Pace pace(0.1);
  for (int i = 0; i < 10; ++i) pace.note(100, 0, 0.05);
  pace.note(100, 0, 60);  // a plan was compiled
  EXPECT_GT(pace.prompt_tokens(), 100);
  for (int i = 0; i < 10; ++i) pace.note(100, 0, 0.05);
  EXPECT_NEAR(static_cast<double>(pace.prompt_tokens()), 200, 10);
}

TEST(Pace, FewTokensAndNoTimeTeachNothing) {
  Pace pace(0.1);
  const auto before = pace.prompt_tokens();
  pace.note(15, 0, 10);
  EXPECT_EQ(pace.prompt_tokens(), before);
  for (int i = 0; i < 10; ++i) pace.note(100, 1, 0);
  EXPECT_GT(pace.prompt_tokens(), 1'000'000);
  EXPECT_LT(pace.prompt_tokens(), 2'000'000);
}

}  // namespace
}  // namespace heddle::llm
