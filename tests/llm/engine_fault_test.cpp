// Engines whose steps fail: those that were part of the step hear why, and nobody else notices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <random>

#include "llm/engine_support.h"
#include "support/async_device.h"
#include "support/short_timeout.h"

namespace heddle::test {
namespace {

using namespace std::chrono_literals;
using llm::Engine;
using llm::EngineOptions;
using llm::Request;
using testing::HasSubstr;

class EngineFault : public testing::Test {
 protected:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  EngineOptions options(AsyncDevice* device = nullptr, bool lazy = false) {
    EngineOptions o;
    o.context.n_ctx = 512;
    o.context.threads = 2;
    o.context.chunk = 24;
    o.context.lazy = lazy;
    if (device && lazy) o.context.devices = {device};
    if (device && !lazy) o.context.compile.devices = {device, &cpu_device()};
    o.n_parallel = 3;
    o.before_step = [this](std::uint64_t) {
      if (steps_++ == fail_at_) fail_();
    };
    return o;
  }

  static AsyncOptions device_options() {
    AsyncOptions options;
    options.hides_local = true;
    options.packs = true;
    options.delay = 0us;
    return options;
  }

  std::vector<TokenId> tokens(std::string_view text) const {
    return model_->tokenizer().encode(text);
  }

  /// Some that are being written while others' prompts are read.
  std::vector<Request> requests() const {
    return {greedily(tokens("Once upon a time"), 8), greedily(tokens(kLong), 4),
            greedily(tokens(std::string(kLong) + " The end."), 4), greedily(tokens("Pip"), 6),
            greedily(tokens("The bird"), 3)};
  }

  /// How many of the replies are errors that say `what`; the others must be right.
  int errors_among(const std::vector<std::shared_ptr<llm::Ticket>>& tickets,
                   const std::vector<Request>& requests, const char* what) {
    int errors = 0;
    for (std::size_t i = 0; i < tickets.size(); ++i) {
      const Heard heard = hear(*tickets[i]);
      if (heard.error) {
        ++errors;
        EXPECT_THAT(heard.error->what(), HasSubstr(what));
      } else {
        expect_as_alone(heard, requests[i], alone_);
      }
    }
    return errors;
  }

  static constexpr const char* kLong =
      "Once upon a time, a brave fox named Pip lived near the forest. Pip loved to walk to the "
      "hill every day. One day it was very bright, and Pip saw a turtle named Sam by the old "
      "bridge.";

  const std::shared_ptr<const llm::Model> model_ = llm::Model::bundled();
  Alone alone_{model_, 512};
  // For the engine's thread.
  std::atomic<std::uint64_t> steps_{0}, fail_at_{kNever};
  std::function<void()> fail_ = [] { throw Error(ErrorCode::backend, "injected"); };
};

TEST_F(EngineFault, AFaultAtEachStepEndsOnlyThoseItTouched) {
  for (const bool lazy : {false, true}) {
    Engine engine(model_, options(nullptr, lazy));
    std::uint64_t failed = 0;
    for (std::uint64_t at = 0;; ++at) {
      SCOPED_TRACE("step " + std::to_string(at));
      fail_at_ = steps_ + at;
      const int errors = errors_among(engine.submit(requests()), requests(), "injected");
      failed += static_cast<std::uint64_t>(errors);
      if (errors == 0) break;  // they took fewer steps
      ASSERT_LE(errors, 3) << "more than were in work";
      expect_at_rest(engine);
      fail_at_ = kNever;
      const Request next = greedily(tokens("The owl"), 5);
      expect_as_alone(hear(*engine.submit(next)), next, alone_);
    }
    EXPECT_GT(engine.stats().faults, 5u);
    EXPECT_EQ(engine.stats().failed, failed);
    EXPECT_THAT(engine.stats().last_fault, HasSubstr("injected"));
  }
}

TEST_F(EngineFault, EmbeddingsAndTextsFailApart) {
  Engine engine(model_, options());
  const llm::EmbeddingRequest wanted{.tokens = tokens(kLong)};
  const std::vector<float> expected = hear(*engine.submit(wanted)).finish->embedding;
  const Request text = requests()[0];
  int failed_texts = 0, failed_vectors = 0;
  for (std::uint64_t at = 0; at < 12; ++at) {
    fail_at_ = steps_ + at;
    const auto vector = engine.submit(wanted);
    const auto reply = engine.submit(text);
    const Heard of_vector = hear(*vector), of_text = hear(*reply);
    EXPECT_FALSE(of_vector.error && of_text.error) << "at " << at;
    failed_vectors += of_vector.error != nullptr;
    failed_texts += of_text.error != nullptr;
    if (of_vector.finish) {
      EXPECT_EQ(of_vector.finish->embedding, expected);
    }
    if (of_text.finish) expect_as_alone(of_text, text, alone_);
    expect_at_rest(engine);
  }
  EXPECT_GT(failed_texts, 0);
  EXPECT_GT(failed_vectors, 0);
}

TEST_F(EngineFault, WhatIsNoErrorIsOneToo) {
  const std::function<void()> throws[] = {[] { throw 7; }, [] { throw std::bad_alloc(); },
                                          [] { throw std::runtime_error("odd"); }};
  const ErrorCode codes[] = {ErrorCode::backend, ErrorCode::out_of_memory, ErrorCode::backend};
  Engine engine(model_, options());
  for (int i = 0; i < 3; ++i) {
    fail_ = throws[i];
    fail_at_ = steps_.load();
    const Heard heard = hear(*engine.submit(requests()[0]));
    ASSERT_TRUE(heard.error);
    EXPECT_EQ(heard.error->code(), codes[i]);
  }
}

TEST_F(EngineFault, DriverCallsThatFailAndDevicesThatAreLost) {
  for (const bool lazy : {false, true}) {
    AsyncDevice device(device_options());
    Engine engine(model_, options(&device, lazy));
    EXPECT_EQ(errors_among(engine.submit(requests()), requests(), "none"), 0);
    const std::uint64_t before = device.driver_calls();
    EXPECT_EQ(errors_among(engine.submit(requests()), requests(), "none"), 0);
    const std::uint64_t calls = device.driver_calls() - before;
    std::mt19937 random(5);
    for (int fault = 0; fault < (lazy ? 12 : 40); ++fault) {
      SCOPED_TRACE((lazy ? "lazy, fault " : "planned, fault ") + std::to_string(fault));
      if (fault % 2)
        device.lose_at_call(1 + random() % calls);
      else
        device.fail_call(1 + random() % calls);
      const int errors = errors_among(engine.submit(requests()), requests(), "async");
      device.end_fault();
      expect_at_rest(engine);
      EXPECT_LE(errors, 5);
      EXPECT_EQ(errors_among(engine.submit(requests()), requests(), "async"), 0);
    }
    EXPECT_GT(engine.stats().failed, 0u);
  }
}

TEST_F(EngineFault, ADeviceThatHangsEndsItsRequestsInTime) {
  AsyncDevice device(device_options());
  {
    Engine engine(model_, options(&device));
    EXPECT_EQ(errors_among(engine.submit(requests()), requests(), "none"), 0);
    device.hang_at(20);
    EXPECT_GT(errors_among(engine.submit(requests()), requests(), "async"), 0);
    device.end_hang();
    EXPECT_EQ(errors_among(engine.submit(requests()), requests(), "none"), 0);
    device.hang_at(20);
    const auto tickets = engine.submit(requests());
    device.wait_for_hang();
  }  // ends although it hangs
  device.end_hang();
}

TEST_F(EngineFault, ALossBetweenRequestsIsNoLossToThem) {
  AsyncDevice device(device_options());
  Engine engine(model_, options(&device));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(errors_among(engine.submit(requests()), requests(), "none"), 0) << i;
    EXPECT_GT(engine.stats().cached_texts, 0);
    device.lose();
  }
}

TEST_F(EngineFault, WhoWasNotPartOfTheStepIsComputedAgain) {
  AsyncDevice device(device_options());
  Engine engine(model_, options(&device));
  const std::vector<TokenId> text = tokens(std::string(kLong) + kLong + kLong);
  const Request first = greedily({text.begin(), text.begin() + 64}, 1);
  expect_as_alone(hear(*engine.submit(first)), first, alone_);
  // Both go on from the first's KV; the second waits for the other to read their text.
  const Request reads = greedily(text, 3);
  Request waits = reads;
  waits.max_tokens = 5;
  fail_ = [&] { device.lose(); };
  fail_at_ = steps_ + 1;
  const auto tickets = engine.submit({reads, waits});
  const Heard touched = hear(*tickets[0]);
  ASSERT_TRUE(touched.error);
  EXPECT_EQ(touched.error->code(), ErrorCode::device_lost) << touched.error->what();
  const Heard untouched = hear(*tickets[1]);
  expect_as_alone(untouched, waits, alone_);
  expect_at_rest(engine);
}

}  // namespace
}  // namespace heddle::test
