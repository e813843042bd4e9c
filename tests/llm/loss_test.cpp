// Generation on devices that fail, hang or are lost: a clean error, and the next request works.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "llm/stories.h"
#include "support/async_device.h"
#include "support/short_timeout.h"

namespace heddle::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr std::int64_t kTokens = 6;

class ModelLoss : public testing::Test {
 protected:
  static AsyncOptions device_options() {
    AsyncOptions options;
    options.hides_local = true;
    options.packs = true;
    options.delay = 0us;
    return options;
  }
  llm::ContextOptions options(AsyncDevice* device, bool lazy = false) const {
    llm::ContextOptions o;
    o.n_ctx = 64;
    o.n_seq_max = 3;
    o.threads = 2;
    o.lazy = lazy;
    if (device) o.compile.devices = {device, &cpu_device()};
    return o;
  }
  llm::GenerateOptions greedily() const {
    llm::GenerateOptions o;
    o.max_tokens = kTokens;
    o.sampler.temperature = 0;
    return o;
  }

  /// A request: a sequence of its own, the likeliest text, and the sequence given back.
  std::string answer(llm::Context& context) const {
    const llm::SequenceId sequence = context.create();
    struct Release {
      llm::Context& context;
      llm::SequenceId sequence;
      ~Release() { context.release(sequence); }
    } release{context, sequence};
    std::string text;
    llm::generate(context, sequence, prompt_, greedily(), [&](std::string_view piece) {
      text += piece;
      return true;
    });
    return text;
  }

  /// The error of a request; nothing if it was answered, rightly.
  std::optional<Error> error_of_request(llm::Context& context) const {
    try {
      EXPECT_EQ(answer(context), expected_);
      return std::nullopt;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("async"));
      return error;
    }
  }

  const std::shared_ptr<llm::Model> model_ = llm::Model::bundled();
  const std::vector<TokenId> prompt_ = model_->tokenizer().encode("Once upon a time");
  const std::string expected_ = [&] {
    llm::Context on_cpu(model_, options(nullptr));
    return answer(on_cpu);
  }();
  AsyncDevice device_{device_options()};
};

TEST_F(ModelLoss, AHundredLossesInTheMiddleOfGeneration) {
  llm::Context context(model_, options(&device_));
  EXPECT_EQ(answer(context), expected_);
  const std::uint64_t before = device_.driver_calls();
  EXPECT_EQ(answer(context), expected_);
  const std::uint64_t warm_calls = device_.driver_calls() - before;
  std::mt19937 random(7);
  for (int loss = 0; loss < 100; ++loss) {
    device_.lose_at_call(1 + random() % warm_calls);
    const auto error = error_of_request(context);
    ASSERT_TRUE(device_.end_fault() && error) << "loss " << loss;
    EXPECT_EQ(error->code(), ErrorCode::device_lost) << error->what();
    ASSERT_EQ(answer(context), expected_) << "after loss " << loss;
  }
  EXPECT_EQ(device_.generation(), 100u);
}

TEST_F(ModelLoss, LossesWhileItRecoversFromOne) {
  llm::Context context(model_, options(&device_));
  EXPECT_EQ(answer(context), expected_);
  const std::uint64_t before = device_.driver_calls();
  device_.lose();
  EXPECT_EQ(answer(context), expected_);
  const std::uint64_t calls = device_.driver_calls() - before;
  std::mt19937 random(8);
  for (int loss = 0; loss < 40; ++loss) {
    device_.lose();
    device_.lose_at_call(1 + random() % calls);
    const auto error = error_of_request(context);
    ASSERT_TRUE(device_.end_fault() && error) << "loss " << loss;
    EXPECT_EQ(error->code(), ErrorCode::device_lost) << error->what();
    ASSERT_EQ(answer(context), expected_) << "after loss " << loss;
  }
}

TEST_F(ModelLoss, FaultsInTheMiddleOfGeneration) {
  llm::Context context(model_, options(&device_));
  EXPECT_EQ(answer(context), expected_);
  const std::uint64_t before = device_.driver_calls();
  EXPECT_EQ(answer(context), expected_);
  const std::uint64_t calls = device_.driver_calls() - before;
  std::mt19937 random(9);
  for (const ErrorCode code : {ErrorCode::backend, ErrorCode::out_of_memory, ErrorCode::timeout}) {
    for (int fault = 0; fault < 15; ++fault) {
      device_.fail_call(1 + random() % calls, code);
      const auto error = error_of_request(context);
      ASSERT_TRUE(device_.end_fault() && error) << "fault " << fault;
      EXPECT_EQ(error->code(), code) << error->what();
      ASSERT_EQ(answer(context), expected_)
          << "after fault " << fault << ", " << (error ? error->what() : "none");
    }
  }
}

TEST_F(ModelLoss, FaultsInTheFirstRequest) {
  std::mt19937 random(10);
  const std::uint64_t before = device_.driver_calls();
  llm::Context warm(model_, options(&device_));
  EXPECT_EQ(answer(warm), expected_);
  const std::uint64_t calls = device_.driver_calls() - before;
  for (int fault = 0; fault < 40; ++fault) {
    llm::Context context(model_, options(&device_));
    device_.fail_call(1 + random() % calls);
    const auto error = error_of_request(context);
    EXPECT_EQ(device_.end_fault(), error.has_value());  // kernels may be known from before
    llm::Context fresh(model_, options(&device_));
    ASSERT_EQ(answer(fresh), expected_) << "after fault " << fault;
    ASSERT_EQ(answer(context), expected_)
        << "after fault " << fault << ", " << (error ? error->what() : "none");
  }
}

TEST_F(ModelLoss, SequencesThatHadPositionsSayThatTheyAreLost) {
  llm::Context context(model_, options(&device_)), other(model_, options(&device_));
  const llm::SequenceId old = context.create(), empty = context.create(), theirs = other.create();
  const std::vector<float> expected = context.step(old, prompt_);
  other.step(theirs, prompt_);
  device_.lose();
  const TokenId next = prompt_.back();
  for (int i = 0; i < 2; ++i) {
    for (llm::Context* each : {&context, &other}) {
      try {
        each->step(old, {&next, 1});
        ADD_FAILURE() << "it went on without what came before";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::device_lost);
        EXPECT_THAT(error.what(), testing::AllOf(HasSubstr("sequence 0"), HasSubstr("truncate")));
      }
      EXPECT_EQ(each->length(old), static_cast<std::int64_t>(prompt_.size()));
    }
    EXPECT_EQ(context.step(empty, prompt_), expected);
    context.truncate(empty, 0);
  }
  context.truncate(old, 2);  // some of nothing is nothing
  EXPECT_THROW(context.step(old, {&next, 1}), Error);
  const llm::SequenceId fork = context.fork(old);
  EXPECT_THROW(context.step(fork, {&next, 1}), Error);
  context.truncate(old, 0);
  EXPECT_EQ(context.step(old, prompt_), expected);
  EXPECT_THROW(context.step(fork, {&next, 1}), Error);
  context.release(fork);
  EXPECT_EQ(answer(context), expected_);
  other.release(theirs);
  EXPECT_EQ(answer(other), expected_);
}

TEST_F(ModelLoss, SequencesWhoseKvIsElsewhereGoOn) {
  AsyncOptions some = device_options();
  some.accepts = [](const Op& op) { return name(op) == "linear" || name(op) == "repack"; };
  AsyncDevice device(some);
  llm::Context context(model_, options(&device));
  const llm::SequenceId sequence = context.create();
  context.step(sequence, prompt_);
  const TokenId next = prompt_.front();
  const std::vector<float> expected = context.step(sequence, {&next, 1});
  const auto length = static_cast<std::int64_t>(prompt_.size());
  context.truncate(sequence, length);
  std::uint64_t n = 1;
  for (;; n += 5) {
    device.lose_at_call(n);
    bool stopped = false;
    try {
      EXPECT_EQ(context.step(sequence, {&next, 1}), expected);
    } catch (const Error& error) {
      stopped = true;
      EXPECT_EQ(error.code(), ErrorCode::device_lost) << error.what();
      EXPECT_EQ(context.length(sequence), length);
    }
    ASSERT_EQ(device.end_fault(), stopped) << "call " << n;
    if (!stopped) break;
    ASSERT_EQ(context.step(sequence, {&next, 1}), expected) << "call " << n;
    context.truncate(sequence, length);
  }
  EXPECT_GT(n, 50u);
  context.truncate(sequence, length);
  device.hang_at(3);
  EXPECT_THROW(context.step(sequence, {&next, 1}), Error);
  EXPECT_EQ(context.step(sequence, {&next, 1}), expected);
  device.end_hang();
}

TEST_F(ModelLoss, Hangs) {
  for (const std::uint64_t n : {1, 40, 200}) {
    llm::Context context(model_, options(&device_));
    EXPECT_EQ(answer(context), expected_);
    device_.hang_at(n);
    const auto began = std::chrono::steady_clock::now();
    const auto error = error_of_request(context);
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code(), ErrorCode::timeout) << error->what();
    EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);
    EXPECT_EQ(answer(context), expected_) << "while it hangs";
    if (n > 1) device_.end_hang();
    EXPECT_EQ(answer(context), expected_);
  }
}

TEST_F(ModelLoss, NodeByNodeToo) {
  llm::Context context(model_, options(nullptr, true));
  const DeviceScope scope(device_);
  EXPECT_EQ(answer(context), expected_);
  const std::uint64_t before = device_.driver_calls();
  EXPECT_EQ(answer(context), expected_);
  const std::uint64_t calls = device_.driver_calls() - before;
  std::mt19937 random(11);
  int faults = 0;
  for (int i = 0; i < 40; ++i) {
    const std::uint64_t n = 1 + random() % calls;  // about: what has ended needs no wait
    const ErrorCode code = i % 2 == 0 ? ErrorCode::device_lost : ErrorCode::backend;
    i % 2 == 0 ? device_.lose_at_call(n) : device_.fail_call(n, code);
    const auto error = error_of_request(context);
    ASSERT_EQ(device_.end_fault(), error.has_value()) << "fault " << i;
    if (!error) continue;
    ++faults;
    EXPECT_EQ(error->code(), code) << error->what();
    ASSERT_EQ(answer(context), expected_) << "after fault " << i;
  }
  EXPECT_GT(faults, 20);
}

}  // namespace
}  // namespace heddle::test
