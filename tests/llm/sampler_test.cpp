// The sampler against a plain float64 one, and against what mt19937_64 must give.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "heddle/error.h"
#include "heddle/llm.h"
#include "llm/logprobs.h"

namespace heddle::llm {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Everything is left to the distribution.
SamplerOptions open_options(float temperature = 1) {
  return {.temperature = temperature, .top_k = 0, .top_p = 1, .min_p = 0};
}
SamplerOptions greedy() {
  return {.temperature = 0};
}

TokenId once(const SamplerOptions& options, const std::vector<float>& logits) {
  return Sampler(options).sample(logits);
}

/// Probabilities by id after top-k, top-p, min-p and temperature: everything sorted, in float64.
std::map<TokenId, double> reference(const std::vector<float>& logits, const SamplerOptions& o) {
  std::vector<TokenId> ids;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!std::isnan(logits[i]) && logits[i] != -kInfinity) ids.push_back(static_cast<TokenId>(i));
  }
  const auto logit = [&](TokenId id) { return double{logits[static_cast<std::size_t>(id)]}; };
  std::stable_sort(ids.begin(), ids.end(),
                   [&](TokenId a, TokenId b) { return logit(a) > logit(b); });
  if (o.top_k > 0) ids.resize(std::min(ids.size(), static_cast<std::size_t>(o.top_k)));
  const double best = logit(ids.front());
  double total = 0;
  for (const TokenId id : ids) total += std::exp(logit(id) - best);
  double sum = 0;
  std::size_t kept = 0;
  while (kept < ids.size()) {
    sum += std::exp(logit(ids[kept++]) - best) / total;
    if (sum >= double{o.top_p} && o.top_p < 1) break;
  }
  ids.resize(kept);
  std::map<TokenId, double> probabilities;
  double weights = 0;
  for (const TokenId id : ids) {
    if (std::exp(logit(id) - best) < double{o.min_p}) continue;
    weights += probabilities[id] = std::exp((logit(id) - best) / o.temperature);
  }
  for (auto& [id, probability] : probabilities) probability /= weights;
  return probabilities;
}

std::vector<float> random_logits(std::size_t count, std::uint64_t seed, float spread = 3) {
  std::mt19937_64 random(seed);
  std::vector<float> logits(count);
  for (float& logit : logits) {
    logit = spread * (static_cast<float>(random() >> 40) / (1 << 23) - 1);  // in [-spread, spread)
  }
  return logits;
}

void expect_frequencies(const std::vector<float>& logits, const SamplerOptions& options) {
  constexpr int kDraws = 40000;
  Sampler sampler(options);
  std::map<TokenId, int> counts;
  for (int i = 0; i < kDraws; ++i) ++counts[sampler.sample(logits)];
  const std::map<TokenId, double> expected = reference(logits, options);
  for (const auto& [id, count] : counts) {
    EXPECT_TRUE(expected.contains(id)) << "token " << id << " was cut off, and drawn " << count;
  }
  for (const auto& [id, p] : expected) {
    const double spread = std::sqrt(kDraws * p * (1 - p));
    EXPECT_NEAR(counts[id], kDraws * p, 5 * spread + 1) << "token " << id;
  }
}

TEST(Sampler, GreedyTakesTheLikeliest) {
  EXPECT_EQ(once(greedy(), {0.5f, 2.0f, 1.9f, -3.0f}), 1);
  EXPECT_EQ(once(greedy(), {-5.0f}), 0);
}

TEST(Sampler, GreedyTiesGoToTheLowestId) {
  EXPECT_EQ(once(greedy(), {0, 1, 3, 3, 3}), 2);
  EXPECT_EQ(once(greedy(), std::vector<float>(1000, 0.25f)), 0);
}

TEST(Sampler, GreedyIgnoresTheOtherOptions) {
  SamplerOptions options = greedy();
  options.top_k = 3;
  options.top_p = 0;
  options.min_p = 1;
  EXPECT_EQ(once(options, {1, 2, 4, 3}), 2);
}

TEST(Sampler, NanIsNeverPicked) {
  EXPECT_EQ(once(greedy(), {kNan, 1, kNan, 2, kNan}), 3);
  EXPECT_EQ(once(greedy(), {kNan, -kInfinity, -7, kNan}), 2);
  Sampler sampler(open_options(100));
  std::set<TokenId> seen;
  for (int i = 0; i < 200; ++i)
    seen.insert(sampler.sample(std::vector<float>{kNan, 1, kNan, 2, -kInfinity}));
  EXPECT_THAT(seen, testing::ElementsAre(1, 3));
}

TEST(Sampler, InfinityWins) {
  EXPECT_EQ(once(greedy(), {1, kInfinity, 2, kInfinity}), 1);
  Sampler sampler({.top_k = 0});
  std::set<TokenId> seen;
  for (int i = 0; i < 100; ++i)
    seen.insert(sampler.sample(std::vector<float>{1, kInfinity, 2, kInfinity}));
  EXPECT_THAT(seen, testing::ElementsAre(1, 3));
}

TEST(Sampler, NothingToPickIsAnError) {
  for (const std::vector<float>& logits : {std::vector<float>{}, std::vector<float>{kNan, kNan},
                                           std::vector<float>{-kInfinity, kNan}}) {
    for (const SamplerOptions& options : {greedy(), SamplerOptions{}, open_options()}) {
      try {
        once(options, logits);
        FAIL() << "no error";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::backend);
        EXPECT_THAT(error.what(), testing::HasSubstr("NaN or -inf"));
      }
    }
  }
}

TEST(Sampler, FrequenciesFollowTheDistribution) {
  const std::vector<float> logits = random_logits(12, 1);
  expect_frequencies(logits, open_options(1));
  expect_frequencies(logits, open_options(0.5f));
  expect_frequencies(logits, open_options(3));
}

TEST(Sampler, CutsAreThoseOfTheReference) {
  const std::vector<float> logits = random_logits(300, 2);
  SamplerOptions options = open_options(0.8f);
  options.top_k = 7;
  expect_frequencies(logits, options);
  options = open_options(1.5f);
  options.top_p = 0.3f;
  expect_frequencies(logits, options);
  options = open_options(2);
  options.min_p = 0.6f;
  expect_frequencies(logits, options);
  expect_frequencies(logits, SamplerOptions{.seed = 9});
}

TEST(Sampler, CutsTogetherAreThoseOfTheReference) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    std::mt19937_64 random(seed);
    SamplerOptions options = open_options(1000);  // so that all that is kept is drawn soon
    options.seed = seed;
    options.top_k = static_cast<std::int64_t>(random() % 50);
    options.top_p = static_cast<float>(random() % 101) / 100;
    options.min_p = static_cast<float>(random() % 101) / 400;
    const std::vector<float> logits = random_logits(20 + random() % 200, seed, 4);
    const std::map<TokenId, double> expected = reference(logits, options);
    Sampler sampler(options);
    std::set<TokenId> drawn, kept;
    for (std::size_t i = 0; i < 20 * expected.size() + 20; ++i)
      drawn.insert(sampler.sample(logits));
    for (const auto& [id, probability] : expected) kept.insert(id);
    ASSERT_EQ(drawn, kept) << "top_k " << options.top_k << ", top_p " << options.top_p << ", min_p "
                           << options.min_p << ", seed " << seed;
  }
}

TEST(Sampler, TopKTiesKeepTheLowestIds) {
  for (const std::size_t size : {10u, 1000u}) {
    SamplerOptions options = open_options();
    options.top_k = 3;
    Sampler sampler(options);
    const std::vector<float> logits(size, 1.0f);
    std::set<TokenId> seen;
    for (int i = 0; i < 200; ++i) seen.insert(sampler.sample(logits));
    EXPECT_THAT(seen, testing::ElementsAre(0, 1, 2));
  }
}

TEST(Sampler, LargeVocabularies) {
  const std::vector<float> logits = random_logits(151936, 5, 10);
  const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
  EXPECT_EQ(once(greedy(), logits), best);
  SamplerOptions options = open_options(2);
  options.top_k = 100;
  options.top_p = 0.9f;
  const std::map<TokenId, double> kept = reference(logits, options);
  Sampler by_k(options);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(kept.contains(by_k.sample(logits)));
  options.top_k = 0;
  options.top_p = 0.5f;
  const std::map<TokenId, double> share = reference(logits, options);
  Sampler by_share(options);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(share.contains(by_share.sample(logits)));
}

// The C++ standard fixes mt19937_64; between two equal tokens its top bit decides, the lower id
// having the lower half.
TEST(Sampler, DrawsComeFromTheGeneratorsBits) {
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{42}, ~std::uint64_t{0}}) {
    SamplerOptions options = open_options();
    options.seed = seed;
    Sampler sampler(options);
    std::mt19937_64 random(seed);
    for (int i = 0; i < 200; ++i) {
      EXPECT_EQ(sampler.sample(std::vector<float>{1, 1}), static_cast<TokenId>(random() >> 63));
    }
  }
}

TEST(Sampler, OneSeedOneSequence) {
  const std::vector<float> logits = random_logits(500, 3);
  const auto sequence = [&](std::uint64_t seed) {
    Sampler sampler({.seed = seed});
    std::vector<TokenId> tokens;
    for (int i = 0; i < 50; ++i) tokens.push_back(sampler.sample(logits));
    return tokens;
  };
  EXPECT_EQ(sequence(7), sequence(7));
  EXPECT_NE(sequence(7), sequence(8));
}

TEST(Sampler, PenaltyDividesPositiveAndMultipliesNegative) {
  SamplerOptions options = greedy();
  options.repeat_penalty = 2;
  Sampler positive(options);
  positive.accept(0);
  EXPECT_EQ(positive.sample(std::vector<float>{3, 1.4f}), 0);  // 1.5 against 1.4
  EXPECT_EQ(positive.sample(std::vector<float>{3, 1.6f}), 1);
  Sampler negative(options);
  negative.accept(1);
  EXPECT_EQ(negative.sample(std::vector<float>{-2.1f, -1}), 1);  // -2.1 against -2
  EXPECT_EQ(negative.sample(std::vector<float>{-1.9f, -1}), 0);
}

TEST(Sampler, PenaltyCountsATokenOnce) {
  SamplerOptions options = greedy();
  options.repeat_penalty = 2;
  Sampler sampler(options);
  for (int i = 0; i < 5; ++i) sampler.accept(0);
  EXPECT_EQ(sampler.sample(std::vector<float>{4, 1.9f}), 0);
}

TEST(Sampler, PenaltyForgetsWhatIsNotRecent) {
  SamplerOptions options = greedy();
  options.repeat_penalty = 10;
  options.repeat_last_n = 2;
  Sampler sampler(options);
  const std::vector<float> logits{5, 4, 3, 2};
  for (const TokenId token : {0, 1}) sampler.accept(token);
  EXPECT_EQ(sampler.sample(logits), 2);
  sampler.accept(2);
  EXPECT_EQ(sampler.sample(logits), 0);
  options.repeat_last_n = 0;
  Sampler forgetful(options);
  forgetful.accept(0);
  EXPECT_EQ(forgetful.sample(logits), 0);
}

TEST(Sampler, PenaltyPassesOverWhatIsNotInTheVocabulary) {
  SamplerOptions options = greedy();
  options.repeat_penalty = 2;
  Sampler sampler(options);
  for (const TokenId token : {-1, 3, 1000}) sampler.accept(token);
  EXPECT_EQ(sampler.sample(std::vector<float>{1, 2, 1.5f}), 1);
}

TEST(Sampler, PenaltyComesBeforeTheCuts) {
  SamplerOptions options = open_options();
  options.top_k = 1;
  options.repeat_penalty = 4;
  Sampler sampler(options);
  sampler.accept(0);
  EXPECT_EQ(sampler.sample(std::vector<float>{4, 3}), 1);
}

TEST(Sampler, PresenceAndFrequencyCountTheReplyOnly) {
  const std::vector<float> logits{3, 2.5f, 0};
  SamplerOptions options = greedy();
  options.presence_penalty = 0.6f;
  Sampler presence(options);
  const std::vector<TokenId> prompt{0, 0, 0};
  presence.accept_prompt(prompt);
  EXPECT_EQ(presence.sample(logits), 0);
  for (int i = 0; i < 10; ++i) presence.accept(0);
  EXPECT_EQ(presence.sample(logits), 1);  // 2.4 against 2.5, however often it came
  presence.accept(1);
  EXPECT_EQ(presence.sample(logits), 0);  // 2.4 against 1.9

  options = greedy();
  options.frequency_penalty = 0.2f;
  Sampler frequency(options);
  frequency.accept(0);
  frequency.accept(0);
  EXPECT_EQ(frequency.sample(logits), 0);  // 2.6
  frequency.accept(0);
  EXPECT_EQ(frequency.sample(logits), 1);  // 2.4

  options.frequency_penalty = -1;  // likes what it has said
  Sampler stubborn(options);
  for (int i = 0; i < 4; ++i) stubborn.accept(2);
  EXPECT_EQ(stubborn.sample(logits), 2);
}

TEST(Sampler, PresenceAndFrequencyRememberAllOfTheReply) {
  SamplerOptions options = greedy();
  options.presence_penalty = 1;
  options.repeat_last_n = 1;
  Sampler sampler(options);
  sampler.accept(0);
  for (int i = 0; i < 100; ++i) sampler.accept(2);
  EXPECT_EQ(sampler.sample(std::vector<float>{3, 2.5f, 0}), 1);
}

TEST(Sampler, RepeatPenaltyCountsThePrompt) {
  SamplerOptions options = greedy();
  options.repeat_penalty = 2;
  Sampler sampler(options);
  const std::vector<TokenId> prompt{0};
  sampler.accept_prompt(prompt);
  EXPECT_EQ(sampler.sample(std::vector<float>{4, 3}), 1);
}

TEST(Sampler, BiasesComeFirst) {
  SamplerOptions options = greedy();
  options.logit_bias = {{1, 2.0f}, {3, -100.0f}, {-5, 9.0f}, {1000, 9.0f}};
  const std::vector<float> logits{1, 0, 0.5f, 500};
  EXPECT_EQ(once(options, logits), 1);
  options.logit_bias[3] = -99.9f;  // 400.1
  EXPECT_EQ(once(options, logits), 3);
  options.logit_bias[3] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(once(options, logits), 1);
  options.repeat_penalty = 4;  // of what the bias has made: 2 / 4
  Sampler sampler(options);
  sampler.accept(1);
  EXPECT_EQ(sampler.sample(logits), 0);
}

TEST(Sampler, ChangedLogitsGoThroughTheCuts) {
  std::vector<float> logits = random_logits(2000, 5);
  SamplerOptions options = open_options();
  options.top_k = 3;
  for (TokenId id = 100; id < 103; ++id) options.logit_bias[id] = 50;
  Sampler sampler(options);
  std::set<TokenId> seen;
  for (int i = 0; i < 300; ++i) seen.insert(sampler.sample(logits));
  EXPECT_EQ(seen, (std::set<TokenId>{100, 101, 102}));
}

// ---- Logprobs

TEST(Logprobs, AreTheLogarithmsOfTheSoftmax) {
  const std::vector<float> logits = random_logits(150'000, 11);
  long double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<long double>(logit));
  const SampledToken token = logprobs_of(logits, 77, 20);
  EXPECT_NEAR(token.chosen.logprob, static_cast<double>(logits[77] - std::log(sum)), 1e-9);
  ASSERT_EQ(token.top.size(), 20u);
  double above = 0;
  for (std::size_t i = 1; i < token.top.size(); ++i)
    EXPECT_GE(token.top[i - 1].logprob, token.top[i].logprob);
  for (const float logit : logits)
    above += logit > logits[static_cast<std::size_t>(token.top.back().token)];
  EXPECT_EQ(above, 19);
}

TEST(Logprobs, OfWhatIsNoNumber) {
  const std::vector<float> logits{kNan, 1, -kInfinity, 1};
  const SampledToken token = logprobs_of(logits, 0, 10);
  EXPECT_EQ(token.chosen.logprob, -kInfinity);
  ASSERT_EQ(token.top.size(), 2u);
  EXPECT_EQ(token.top[0].token, 1);
  EXPECT_NEAR(token.top[1].logprob, std::log(0.5), 1e-12);
  const std::vector<float> sure{0, kInfinity};
  EXPECT_EQ(logprobs_of(sure, 1, 1).chosen.logprob, 0);
  EXPECT_EQ(logprobs_of(sure, 0, 0).chosen.logprob, -kInfinity);
  EXPECT_TRUE(logprobs_of(sure, 0, 0).top.empty());
}

TEST(Sampler, RefusesOptionsThatMakeNoSense) {
  const auto refused = [](const std::function<void(SamplerOptions&)>& change, const char* field) {
    SamplerOptions options;
    change(options);
    try {
      Sampler sampler(options);
      ADD_FAILURE() << field << ": no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.what(), testing::HasSubstr(field));
    }
  };
  for (const float bad : {-0.1f, kNan, kInfinity}) {
    refused([bad](SamplerOptions& o) { o.temperature = bad; }, "temperature");
  }
  for (const float bad : {-0.1f, 1.1f, kNan}) {
    refused([bad](SamplerOptions& o) { o.top_p = bad; }, "top_p");
    refused([bad](SamplerOptions& o) { o.min_p = bad; }, "min_p");
  }
  for (const float bad : {0.0f, -1.0f, kNan, kInfinity}) {
    refused([bad](SamplerOptions& o) { o.repeat_penalty = bad; }, "repeat_penalty");
  }
  for (const float bad : {kNan, kInfinity}) {
    refused([bad](SamplerOptions& o) { o.presence_penalty = bad; }, "presence_penalty");
    refused([bad](SamplerOptions& o) { o.frequency_penalty = -bad; }, "frequency_penalty");
    refused([bad](SamplerOptions& o) { o.logit_bias[17] = bad; }, "logit_bias of token 17");
  }
  refused([](SamplerOptions& o) { o.top_k = -1; }, "top_k");
  refused([](SamplerOptions& o) { o.repeat_last_n = -1; }, "repeat_last_n");
}

}  // namespace
}  // namespace heddle::llm
