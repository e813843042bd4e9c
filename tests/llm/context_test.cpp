// Contexts: sequences, sharing, limits, and what a failed step leaves behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "llm/stories.h"

namespace heddle::test {
namespace {

using testing::HasSubstr;

class ContextTest : public testing::TestWithParam<bool> {  // the parameter: lazily?
 protected:
  llm::ContextOptions options(std::int64_t n_seq_max = 1, std::int64_t n_ctx = 256) const {
    llm::ContextOptions o;
    o.n_ctx = n_ctx;
    o.n_seq_max = n_seq_max;
    o.threads = 2;
    o.lazy = GetParam();
    return o;
  }
  std::vector<TokenId> tokens(std::string_view text) const {
    return model_->tokenizer().encode(text);
  }

  const std::shared_ptr<llm::Model> model_ = llm::Model::bundled();
};

template <class F>
std::string message_of(F&& f, ErrorCode code) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

const std::string kLong =
    "Once upon a time, a brave fox named Pip lived near the forest. Pip loved to walk to the hill "
    "every day. One day it "
    "was very bright, and Pip saw a turtle named Sam by the old bridge.";

TEST_P(ContextTest, LogitsAreTheSameBitsHoweverAPromptIsCut) {
  const std::vector<TokenId> prompt = tokens(kLong);
  llm::Context whole(model_, options());
  const std::vector<float> expected = whole.step(whole.create(), prompt, true);
  for (const std::size_t piece : {1, 3, 16, 33}) {
    llm::Context cut(model_, options());
    const llm::SequenceId sequence = cut.create();
    std::vector<float> logits;
    for (std::size_t i = 0; i < prompt.size(); i += piece) {
      const std::span<const TokenId> part(prompt.data() + i, std::min(piece, prompt.size() - i));
      const std::vector<float> some = cut.step(sequence, part, true);
      logits.insert(logits.end(), some.begin(), some.end());
    }
    ASSERT_EQ(logits, expected) << "in pieces of " << piece;
  }
}

TEST_P(ContextTest, AForkGoesItsOwnWay) {
  const std::vector<TokenId> prompt = tokens(kLong), left = tokens(" left"),
                             right = tokens(" right");
  llm::Context context(model_, options(3));
  const llm::SequenceId first = context.create();
  context.step(first, prompt);
  const llm::SequenceId second = context.fork(first), third = context.fork(first);
  const std::vector<float> l = context.step(first, left), r = context.step(second, right);
  const std::vector<float> again = context.step(third, left);
  EXPECT_EQ(l, again);
  EXPECT_NE(l, r);

  llm::Context fresh(model_, options());
  std::vector<TokenId> all = prompt;
  all.insert(all.end(), right.begin(), right.end());
  EXPECT_EQ(fresh.step(fresh.create(), all), r);
}

TEST_P(ContextTest, TruncatingForgets) {
  const std::vector<TokenId> prompt = tokens(kLong);
  llm::Context context(model_, options());
  const llm::SequenceId sequence = context.create();
  const std::vector<float> before = context.step(sequence, prompt);
  context.step(sequence, tokens(" The rain"));
  context.truncate(sequence, static_cast<std::int64_t>(prompt.size()) - 1);
  EXPECT_EQ(context.step(sequence, {&prompt.back(), 1}), before);
}

TEST_P(ContextTest, ReleasedRowsServeTheNextSequence) {
  const std::vector<TokenId> prompt = tokens(kLong);
  llm::Context context(model_, options(1, 64));
  const std::vector<float> expected = context.step(context.create(), prompt);
  context.release(0);
  for (int i = 0; i < 20; ++i) {
    const llm::SequenceId sequence = context.create();
    EXPECT_EQ(context.step(sequence, prompt), expected);
    context.release(sequence);
  }
}

TEST_P(ContextTest, LimitsAreSaid) {
  llm::Context context(model_, options(2, 40));
  const llm::SequenceId sequence = context.create();
  const std::vector<TokenId> many(41, 5);
  EXPECT_THAT(message_of([&] { context.step(sequence, many); }, ErrorCode::invalid_argument),
              testing::AllOf(HasSubstr("sequence 0"), HasSubstr("40"), HasSubstr("-c")));
  EXPECT_EQ(context.length(sequence), 0);
  const std::vector<TokenId> outside{1, 100000};
  EXPECT_THAT(message_of([&] { context.step(sequence, outside); }, ErrorCode::invalid_argument),
              HasSubstr("100000"));
  const std::vector<TokenId> negative{-1};
  EXPECT_THAT(message_of([&] { context.step(sequence, negative); }, ErrorCode::invalid_argument),
              HasSubstr("-1"));
  EXPECT_THAT(message_of([&] { context.step(7, negative); }, ErrorCode::invalid_argument),
              HasSubstr("sequence 7"));
  context.create();
  EXPECT_THAT(message_of([&] { context.create(); }, ErrorCode::out_of_memory),
              HasSubstr("n_seq_max"));
  const std::vector<TokenId> just(40, 5);
  EXPECT_EQ(context.step(sequence, just).size(),
            static_cast<std::size_t>(model_->config().n_vocab));
}

TEST_P(ContextTest, OptionsAreChecked) {
  llm::ContextOptions o = options();
  o.n_ctx = model_->config().n_ctx_train + 1;
  EXPECT_THAT(message_of([&] { llm::Context(model_, o); }, ErrorCode::invalid_argument),
              HasSubstr(std::to_string(model_->config().n_ctx_train)));
  o = options();
  o.kv_type = DType::q4_0;
  EXPECT_THAT(message_of([&] { llm::Context(model_, o); }, ErrorCode::invalid_argument),
              HasSubstr("q8_0"));
  o = options();
  o.chunk = 0;
  EXPECT_THAT(message_of([&] { llm::Context(model_, o); }, ErrorCode::invalid_argument),
              HasSubstr("--chunk"));
}

TEST_P(ContextTest, MoreThanMemoryHoldsIsRefusedWithARemedy) {
  llm::ContextOptions o = options();
  o.n_ctx = model_->config().n_ctx_train;
  o.n_seq_max = std::int64_t{1} << 24;
  o.kv_type = DType::f32;
  const std::string message =
      message_of([&] { llm::Context(model_, o); }, ErrorCode::out_of_memory);
  EXPECT_THAT(message, testing::AllOf(HasSubstr("MiB"), HasSubstr("available")));
}

TEST_P(ContextTest, ACancelledStepLeavesTheSequenceAsItWas) {
  llm::ContextOptions o = options();
  o.chunk = 8;
  const std::vector<TokenId> prompt = tokens(kLong);
  llm::Context context(model_, o);
  const llm::SequenceId sequence = context.create();
  const llm::StepItem item{sequence, prompt, false};
  const auto stop_half_way = [](std::int64_t done, std::int64_t all) { return done * 2 < all; };
  EXPECT_THAT(message_of(
                  [&] {
                    context.step({&item, 1}, stop_half_way);
                  },
                  ErrorCode::cancelled),
              HasSubstr("cancelled"));
  EXPECT_EQ(context.length(sequence), 0);
  llm::Context other(model_, o);
  EXPECT_EQ(context.step(sequence, prompt), other.step(other.create(), prompt));
}

TEST_P(ContextTest, AnEmptyItemAddsNothing) {
  llm::Context context(model_, options());
  const llm::SequenceId sequence = context.create();
  EXPECT_TRUE(context.step(sequence, {}).empty());
  EXPECT_EQ(context.length(sequence), 0);
}

TEST_P(ContextTest, ManyThreadsMayUseOne) {
  const std::vector<TokenId> prompt = tokens("Once upon a time");
  llm::Context alone(model_, options());
  const std::vector<float> expected = alone.step(alone.create(), prompt);
  llm::Context context(model_, options(4));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) {
        const llm::SequenceId sequence = context.create();
        EXPECT_EQ(context.step(sequence, prompt), expected);
        context.release(sequence);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

INSTANTIATE_TEST_SUITE_P(Executors, ContextTest, testing::Values(false, true),
                         [](const auto& param) { return param.param ? "Lazy" : "Planned"; });

}  // namespace
}  // namespace heddle::test
