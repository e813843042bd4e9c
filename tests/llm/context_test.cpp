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
  o.n_seq_step = 2;
  EXPECT_THAT(message_of([&] { llm::Context(model_, o); }, ErrorCode::invalid_argument),
              HasSubstr("n_seq_step"));
  o = options();
  o.n_kv = 255;
  EXPECT_THAT(message_of([&] { llm::Context(model_, o); }, ErrorCode::invalid_argument),
              HasSubstr("n_kv"));
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

TEST_P(ContextTest, MoreSequencesMayBeKeptThanOneStepTakes) {
  llm::ContextOptions o = options(6);
  o.n_seq_step = 2;
  o.n_kv = 6 * 64;
  const std::vector<TokenId> prompt = tokens("Once upon a time"), left = tokens(" left"),
                             right = tokens(" right");
  llm::Context context(model_, o), alone(model_, options());
  std::vector<llm::SequenceId> sequences;
  for (int i = 0; i < 6; ++i) sequences.push_back(context.create());
  std::vector<llm::StepItem> three;
  for (std::size_t i = 3; i < 6; ++i) three.push_back({sequences[i], prompt});
  EXPECT_THAT(message_of([&] { context.step(three); }, ErrorCode::invalid_argument),
              testing::AllOf(HasSubstr("3 sequences"), HasSubstr("n_seq_step")));
  for (const llm::SequenceId sequence : sequences) context.step(sequence, prompt);
  const llm::StepItem items[] = {{sequences[5], left}, {sequences[2], right}};
  std::vector<float> expected, got = context.step(items);
  for (const auto& added : {left, right}) {
    const llm::SequenceId sequence = alone.create();
    alone.step(sequence, prompt);
    const std::vector<float> logits = alone.step(sequence, added);
    expected.insert(expected.end(), logits.begin(), logits.end());
    alone.release(sequence);
  }
  EXPECT_EQ(got, expected);
}

TEST_P(ContextTest, KvMemoryThatIsFullIsSaidAndNothingChanges) {
  llm::ContextOptions o = options(3, 96);
  o.n_kv = 128;  // four blocks
  llm::Context context(model_, o);
  EXPECT_EQ(context.options().n_kv, 128);
  EXPECT_EQ(context.kv_use().blocks, 4);
  const std::vector<TokenId> prompt = tokens(kLong);
  const llm::SequenceId first = context.create(), second = context.create();
  context.step(first, std::span(prompt).first(40));
  EXPECT_EQ(context.kv_use().free, 2);
  EXPECT_EQ(context.blocks_to_add(second, 65), 3);
  const std::vector<TokenId> many(65, 5);
  EXPECT_THAT(message_of([&] { context.step(second, many); }, ErrorCode::out_of_memory),
              testing::AllOf(HasSubstr("4 KV blocks"), HasSubstr("n_kv")));
  EXPECT_EQ(context.length(second), 0);
  EXPECT_EQ(context.kv_use().free, 2);

  const llm::SequenceId shares = context.fork(first);
  EXPECT_EQ(context.blocks_to_add(shares, 1), 1) << "for a copy of the block that both use";
  EXPECT_EQ(context.blocks_held_by({&first, 1}), 0);
  const llm::SequenceId both[] = {first, shares};
  EXPECT_EQ(context.blocks_held_by(both), 2);
  context.release(first);
  EXPECT_EQ(context.blocks_to_add(shares, 1), 0);
  EXPECT_EQ(context.blocks_held_by({&shares, 1}), 2);
  context.step(second, std::span(many).first(64));
  EXPECT_EQ(context.kv_use().free, 0);
}

TEST_P(ContextTest, LogitsCanGoWhereTheCallerWantsThem) {
  const std::vector<TokenId> prompt = tokens(kLong);
  llm::Context context(model_, options(2));
  const std::vector<float> expected = context.step(context.create(), prompt);
  const llm::SequenceId sequence = context.create();
  const llm::StepItem item{sequence, prompt};
  std::vector<float> logits(expected.size() + 1);
  EXPECT_THAT(message_of(
                  [&] {
                    context.step_into({&item, 1}, logits);
                  },
                  ErrorCode::invalid_argument),
              HasSubstr("1 rows of " + std::to_string(model_->config().n_vocab)));
  logits.pop_back();
  context.step_into({&item, 1}, logits);
  EXPECT_EQ(logits, expected);
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
