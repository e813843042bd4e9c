// Engines: what requests get, how they end, and who waits for whom.
#include "heddle/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <functional>
#include <future>
#include <numeric>
#include <stdexcept>

#include "llm/endless_model.h"
#include "llm/engine_support.h"
#include "support/error_message.h"

namespace heddle::test {
namespace {

using llm::Engine;
using llm::EngineOptions;
using llm::Request;
using llm::StopReason;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

std::shared_ptr<const llm::Model> bundled() {
  static const std::shared_ptr<const llm::Model> model = llm::Model::bundled();
  return model;
}

/// Whose texts go on until they are stopped.
std::shared_ptr<const llm::Model> endless() {
  static const std::shared_ptr<const llm::Model> model = [] {
    const std::filesystem::path path = endless_model();
    auto opened = llm::Model::open(path);
    std::filesystem::remove(path);  // it stays mapped
    return opened;
  }();
  return model;
}

EngineOptions small(std::int64_t n_parallel = 4, std::int64_t n_ctx = 256) {
  EngineOptions options;
  options.context.n_ctx = n_ctx;
  options.context.threads = 2;
  options.n_parallel = n_parallel;
  return options;
}

std::vector<TokenId> tokens(std::string_view text) {
  return bundled()->tokenizer().encode(text);
}

std::vector<TokenId> long_prompt(std::size_t count) {
  const std::vector<TokenId> some = tokens("Once upon a time, a brave fox named Pip saw a bird. ");
  std::vector<TokenId> all;
  while (all.size() < count) all.insert(all.end(), some.begin(), some.end());
  all.resize(count);
  return all;
}

// ---- Replies

TEST(Engine, ARequestGetsWhatGenerateGives) {
  Alone alone(bundled(), 256);
  for (const bool lazy : {false, true}) {
    EngineOptions options = small();
    options.context.lazy = lazy;
    Engine engine(bundled(), options);
    for (const char* prompt : {"Once upon a time", "The fox", "Pip", "\n"}) {
      const Request request = greedily(tokens(prompt), 60);
      const auto ticket = engine.submit(request);
      expect_as_alone(hear(*ticket), request, alone);
    }
    expect_at_rest(engine);
  }
}

TEST(Engine, ItEndsForEveryReason) {
  Alone alone(bundled(), 64);
  Engine engine(bundled(), small(4, 64));
  const std::vector<TokenId> prompt = tokens("Once upon a time");
  std::vector<Request> requests(4, greedily(prompt, -1));
  requests[0].max_tokens = 0;
  requests[1].max_tokens = 1;
  requests[2].stop = {"named", "fox"};
  requests[3].prompt = long_prompt(64);  // one more token, and no room to compute it
  const StopReason expected[] = {StopReason::max_tokens, StopReason::max_tokens,
                                 StopReason::stop_text, StopReason::context_full};
  const auto tickets = engine.submit(requests);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Heard heard = hear(*tickets[i]);
    expect_as_alone(heard, requests[i], alone);
    EXPECT_EQ(heard.finish->reason, expected[i]) << i;
  }
  EXPECT_EQ(engine.stats().completed, 4u);
}

TEST(Engine, OneSeedOneReplyInWhateverCompany) {
  Alone alone(bundled(), 256);
  Engine engine(bundled(), small(8));
  std::vector<Request> requests;
  for (std::uint64_t i = 0; i < 12; ++i) {
    Request request = greedily(tokens(i % 2 ? "Once upon a time" : "The bird"), 40);
    request.sampler = {.temperature = 1.2f, .seed = i / 3};
    request.sampler.presence_penalty = i % 3 == 0 ? 0.5f : 0.0f;
    requests.push_back(request);
  }
  const auto tickets = engine.submit(requests);
  for (std::size_t i = 0; i < requests.size(); ++i)
    expect_as_alone(hear(*tickets[i]), requests[i], alone);
}

TEST(Engine, EndTokensCanBeIgnored) {
  Engine engine(bundled(), small(2, 256));
  Request request = greedily(tokens("Once upon a time"), -1);
  request.ignore_end_tokens = true;
  const Heard heard = hear(*engine.submit(request));
  ASSERT_TRUE(heard.finish);
  EXPECT_EQ(heard.finish->reason, StopReason::context_full);
  EXPECT_EQ(heard.finish->usage.generated_tokens + heard.finish->usage.prompt_tokens, 257);
}

// ---- Logprobs

TEST(Engine, LogprobsAreThoseOfTheModel) {
  Engine engine(bundled(), small());
  Request request = greedily(tokens("Once upon a time"), 12);
  request.top_logprobs = 3;
  request.sampler.logit_bias = {{5, 3.0f}};  // which they do not show
  const Heard heard = hear(*engine.submit(request));
  ASSERT_EQ(heard.tokens.size(), 12u);
  Alone alone(bundled(), 256);
  llm::Context& context = alone.context();
  const llm::SequenceId sequence = context.create();
  std::vector<float> logits = context.step(sequence, request.prompt);
  std::string text;
  for (const llm::SampledToken& token : heard.tokens) {
    long double sum = 0;
    for (const float logit : logits) sum += std::exp(static_cast<long double>(logit));
    const auto expected = [&](TokenId id) {
      return static_cast<double>(logits[static_cast<std::size_t>(id)] - std::log(sum));
    };
    EXPECT_NEAR(token.chosen.logprob, expected(token.chosen.token), 1e-5);
    ASSERT_EQ(token.top.size(), 3u);
    std::vector<std::pair<float, TokenId>> all;
    for (std::size_t id = 0; id < logits.size(); ++id)
      all.emplace_back(-logits[id], static_cast<TokenId>(id));
    std::ranges::sort(all);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(token.top[i].token, all[i].second);
      EXPECT_NEAR(token.top[i].logprob, expected(all[i].second), 1e-5);
    }
    text += bundled()->tokenizer().token_bytes(token.chosen.token);
    logits = context.step(sequence, {&token.chosen.token, 1});
  }
  EXPECT_EQ(text, heard.text);
}

TEST(Engine, WhatAStopTextTakesAwayItTakesWithItsTokens) {
  Engine engine(bundled(), small());
  const std::vector<TokenId> prompt = tokens("Once upon a time");
  Request request = greedily(prompt, 40);
  const std::string whole = hear(*engine.submit(request)).text;
  request.top_logprobs = 0;
  for (std::size_t at = 1; at + 6 < whole.size(); at += 3) {
    request.stop = {whole.substr(at, 5)};
    const std::string expected = whole.substr(0, whole.find(request.stop[0]));
    const Heard heard = hear(*engine.submit(request));
    ASSERT_EQ(heard.text, expected);
    std::vector<std::string> pieces;
    std::string text;
    for (const llm::SampledToken& token : heard.tokens) {
      pieces.push_back(bundled()->tokenizer().token_bytes(token.chosen.token));
      text += pieces.back();
    }
    // The last token may reach beyond the text; without it, there is less than the text.
    ASSERT_TRUE(text.starts_with(expected)) << text << " | " << expected;
    if (!pieces.empty()) {
      ASSERT_LT(text.size() - pieces.back().size(), expected.size());
    }
  }
}

// ---- What is refused

TEST(Engine, BadRequestsAreRefusedAtOnce) {
  Engine engine(bundled(), small(2, 64));
  const auto refused = [&](const std::function<void(Request&)>& change) {
    Request request = greedily(tokens("Once"), 5);
    change(request);
    return message_of(ErrorCode::invalid_argument, [&] { engine.submit(request); });
  };
  EXPECT_THAT(refused([](Request& r) { r.prompt.clear(); }), HasSubstr("the prompt is empty"));
  EXPECT_THAT(refused([](Request& r) { r.prompt = long_prompt(65); }),
              testing::AllOf(HasSubstr("65"), HasSubstr("64"), HasSubstr("-c")));
  EXPECT_THAT(refused([](Request& r) { r.prompt = {1, 907}; }), HasSubstr("907"));
  EXPECT_THAT(refused([](Request& r) { r.prompt = {-1}; }), HasSubstr("-1"));
  EXPECT_THAT(refused([](Request& r) { r.max_tokens = -2; }), HasSubstr("max_tokens"));
  EXPECT_THAT(refused([](Request& r) { r.top_logprobs = -2; }), HasSubstr("top_logprobs"));
  EXPECT_THAT(refused([](Request& r) { r.stop = {"a", ""}; }), HasSubstr("stop text"));
  EXPECT_THAT(refused([](Request& r) { r.sampler.top_p = 2; }), HasSubstr("top_p"));
  EXPECT_THAT(refused([](Request& r) {
                r.sampler.logit_bias = {{907, 1.0f}};
              }),
              HasSubstr("logit_bias"));
  EXPECT_THAT(
      message_of(ErrorCode::invalid_argument, [&] { engine.submit(llm::EmbeddingRequest{}); }),
      HasSubstr("empty"));
  EXPECT_EQ(engine.stats().queued, 0);
  expect_at_rest(engine);
}

TEST(Engine, BadOptionsAreRefused) {
  const auto refused = [&](const std::function<void(EngineOptions&)>& change) {
    EngineOptions options = small();
    change(options);
    return message_of(ErrorCode::invalid_argument, [&] { Engine(bundled(), options); });
  };
  EXPECT_THAT(refused([](EngineOptions& o) { o.n_parallel = 0; }), HasSubstr("n_parallel"));
  EXPECT_THAT(refused([](EngineOptions& o) { o.max_queue = -1; }), HasSubstr("max_queue"));
  EXPECT_THAT(refused([](EngineOptions& o) { o.max_cached = -1; }), HasSubstr("max_cached"));
  EXPECT_THAT(refused([](EngineOptions& o) { o.step_seconds = 0; }), HasSubstr("step_seconds"));
  EXPECT_THAT(refused([](EngineOptions& o) { o.n_kv = 100; }), HasSubstr("n_kv"));
}

TEST(Engine, AFullQueueSaysWhenToComeBack) {
  EngineOptions options = small(2);
  options.max_queue = 3;
  Engine engine(endless(), options);
  const Request request = greedily(tokens("Once upon a time"), 150);
  const auto tickets = engine.submit(std::vector<Request>(5, request));
  const auto refusal_of = [&](std::size_t count) -> std::optional<llm::QueueFull> {
    try {
      engine.submit(std::vector<Request>(count, request));
      return std::nullopt;
    } catch (const llm::QueueFull& full) {
      return full;
    }
  };
  const auto full = refusal_of(1);
  ASSERT_TRUE(full);
  EXPECT_GE(full->retry_after(), 1);
  EXPECT_LT(full->retry_after(), 3600);
  EXPECT_EQ(engine.stats().rejected, 1u);
  for (const auto& ticket : tickets) EXPECT_TRUE(hear(*ticket).finish);
  EXPECT_TRUE(refusal_of(6)) << "all or none";
  EXPECT_EQ(engine.stats().rejected, 7u);
  EXPECT_FALSE(refusal_of(5));
}

// ---- Sharing

TEST(Engine, AConversationThatComesBackIsNotReadAgain) {
  Alone alone(bundled(), 256);
  Engine engine(bundled(), small());
  std::vector<TokenId> prompt = long_prompt(50);
  for (int turn = 0; turn < 4; ++turn) {
    Request request = greedily(prompt, 20);
    request.top_logprobs = 0;
    const Heard heard = hear(*engine.submit(request));
    request.top_logprobs = -1;
    expect_as_alone(heard, request, alone);
    // All that was computed, but for a few tokens at a block's beginning.
    const auto known = static_cast<std::int64_t>(prompt.size());
    const std::int64_t before = turn == 0 ? 0 : known - 11;
    EXPECT_LE(heard.finish->usage.cached_tokens, std::max<std::int64_t>(before, 0));
    EXPECT_GE(heard.finish->usage.cached_tokens, std::max<std::int64_t>(before - 8, 0));
    for (const llm::SampledToken& token : heard.tokens) prompt.push_back(token.chosen.token);
    for (const TokenId id : long_prompt(10)) prompt.push_back(id);
  }
  expect_at_rest(engine);
}

TEST(Engine, SeveralAnswersReadTheirPromptOnce) {
  Engine engine(bundled(), small(6));
  const std::vector<TokenId> prompt = long_prompt(150);
  std::vector<Request> requests(6, greedily(prompt, 15));
  for (std::size_t i = 0; i < requests.size(); ++i)
    requests[i].sampler = {.temperature = 1, .seed = i};
  const auto tickets = engine.submit(requests);
  Alone alone(bundled(), 256);
  std::int64_t cached = 0;
  for (std::size_t i = 0; i < tickets.size(); ++i) {
    const Heard heard = hear(*tickets[i]);
    expect_as_alone(heard, requests[i], alone);
    cached += heard.finish->usage.cached_tokens;
  }
  EXPECT_EQ(cached, 5 * 149);
  EXPECT_EQ(engine.stats().prompt_tokens, 150u + 5);
  EXPECT_EQ(engine.stats().cached_tokens, 5u * 149);
}

TEST(Engine, NothingIsKeptWhereNothingMayBe) {
  EngineOptions options = small();
  options.max_cached = 0;
  Engine engine(bundled(), options);
  const Request request = greedily(long_prompt(60), 5);
  for (int i = 0; i < 2; ++i) {
    const Heard heard = hear(*engine.submit(request));
    ASSERT_TRUE(heard.finish);
    EXPECT_EQ(heard.finish->usage.cached_tokens, 0);
    EXPECT_EQ(engine.stats().blocks_free, engine.stats().blocks);
  }
}

TEST(Engine, TheCacheIsBoundedByTexts) {
  EngineOptions options = small();
  options.max_cached = 2;
  Engine engine(bundled(), options);
  for (TokenId first = 10; first < 20; ++first) {
    std::vector<TokenId> prompt = long_prompt(40);
    prompt[0] = first;
    EXPECT_TRUE(hear(*engine.submit(greedily(prompt, 4))).finish);
  }
  EXPECT_EQ(engine.stats().cached_texts, 2);
  expect_at_rest(engine);
}

// ---- Turns

TEST(Engine, ALongPromptDoesNotHoldUpTheOthers) {
  struct Counts {
    std::uint64_t prompt, written;
  };
  std::vector<Counts> before;  // each step
  Engine* asked = nullptr;
  EngineOptions options = small(2, 4096);
  options.step_seconds = 1e-6;  // as few prompt tokens beside the others as may be
  options.before_step = [&](std::uint64_t) {
    const llm::EngineStats stats = asked->stats();
    before.push_back({stats.prompt_tokens, stats.generated_tokens});
  };
  Engine engine(endless(), options);
  asked = &engine;
  const auto writer = engine.submit(greedily(tokens("Once upon a time"), -1));
  ASSERT_TRUE(writer->next(kLong));
  const auto reader = engine.submit(greedily(long_prompt(640), 1));
  EXPECT_TRUE(hear(*reader).finish);
  engine.stop();
  std::size_t shared = 0;
  for (std::size_t i = 1; i < before.size(); ++i) {
    const std::uint64_t read = before[i].prompt - before[i - 1].prompt;
    if (before[i - 1].written == 0 || read == 0) continue;
    ++shared;
    EXPECT_LE(read, 32u);
    EXPECT_GE(before[i].written - before[i - 1].written, 1u);
  }
  EXPECT_GE(shared, 640u / 32 - 1);
}

TEST(Engine, AShortPromptDoesNotWaitForTheEndOfALongOne) {
  EngineOptions options = small(2, 8192);
  options.context.chunk = 32;
  Engine engine(endless(), options);
  const auto slow = engine.submit(greedily(long_prompt(4000), 1));
  std::vector<TokenId> other = tokens("The bird");
  const auto quick = engine.submit(greedily(other, 1));
  EXPECT_TRUE(hear(*quick).finish);
  EXPECT_FALSE(slow->next(milliseconds(0))) << "the long one came first";
  EXPECT_TRUE(hear(*slow).finish);
}

TEST(Engine, ThoseThatWaitGoInOrder) {
  Engine engine(bundled(), small(1));
  std::vector<Request> requests(6, greedily(tokens("Once upon a time"), 3));
  const auto tickets = engine.submit(requests);
  for (std::size_t i = 0; i < tickets.size(); ++i) {
    EXPECT_TRUE(hear(*tickets[i]).finish);
    EXPECT_EQ(engine.stats().completed >= i + 1, true);
  }
  double waited = -1;
  for (const auto& ticket : engine.submit(requests)) {
    const double now = hear(*ticket).finish->usage.queue_seconds;
    EXPECT_GT(now, waited);
    waited = now;
  }
}

TEST(Engine, TheYoungestGiveWayWhenMemoryIsShort) {
  EngineOptions options = small(6, 128);
  options.n_kv = 192;  // six blocks
  Engine engine(endless(), options);
  Alone alone(endless(), 128);
  std::vector<Request> requests;
  for (int i = 0; i < 8; ++i) {
    Request request = greedily(tokens(i % 2 ? "Once upon a time" : "The small bird"), 90 + i);
    if (i % 3 == 0) request.sampler = {.temperature = 1, .seed = static_cast<std::uint64_t>(i)};
    requests.push_back(request);
  }
  const auto tickets = engine.submit(requests);
  for (std::size_t i = 0; i < tickets.size(); ++i)
    expect_as_alone(hear(*tickets[i]), requests[i], alone);
  EXPECT_GT(engine.stats().preemptions, 0u);
  expect_at_rest(engine);
}

// ---- Cancelling

TEST(Engine, WhoCancelsFreesItsPlaceAndHarmsNobody) {
  EngineOptions options = small(2, 2048);
  options.context.chunk = 16;
  options.max_cached = 0;
  Engine engine(endless(), options);
  Alone alone(endless(), 2048);
  const Request request = greedily(tokens("Once upon a time"), 200);
  const auto stays = engine.submit(request);
  const auto in_prompt = engine.submit(greedily(long_prompt(1800), 1));
  const auto queued = engine.submit(greedily(tokens("The bird"), 100));
  ASSERT_TRUE(soon([&] { return engine.stats().running == 2; }));
  queued->cancel();
  const Heard heard = hear(*queued);
  ASSERT_TRUE(heard.finish);
  EXPECT_EQ(heard.finish->reason, StopReason::cancelled);
  EXPECT_EQ(heard.text, "");
  in_prompt->cancel();
  in_prompt->cancel();
  EXPECT_EQ(hear(*in_prompt).finish->reason, StopReason::cancelled);
  EXPECT_EQ(engine.stats().running + engine.stats().queued, 1);
  const Request later = greedily(tokens("The bird"), 50);
  const auto after = engine.submit(later);
  expect_as_alone(hear(*stays), request, alone);
  expect_as_alone(hear(*after), later, alone);
  EXPECT_EQ(engine.stats().cancelled, 2u);
  EXPECT_EQ(engine.stats().blocks_free, engine.stats().blocks);
}

TEST(Engine, ATicketThatIsDroppedCancels) {
  Engine engine(endless(), small(1, 4096));
  auto running = engine.submit(greedily(tokens("Once upon a time"), -1));
  auto queued = engine.submit(greedily(tokens("Once upon a time"), -1));
  ASSERT_TRUE(running->next(kLong));
  queued.reset();
  running.reset();
  ASSERT_TRUE(soon([&] { return engine.stats().cancelled == 2; }));
  expect_at_rest(engine);
}

// ---- Consumers

TEST(Engine, WhoDoesNotListenHoldsUpNobody) {
  Engine engine(bundled(), small(2));
  Alone alone(bundled(), 256);
  const Request request = greedily(tokens("Once upon a time"), 60);
  const auto deaf = engine.submit(request);
  for (int i = 0; i < 3; ++i) expect_as_alone(hear(*engine.submit(request)), request, alone);
  ASSERT_TRUE(soon([&] { return engine.stats().completed == 4; }));
  const Heard heard = hear(*deaf);
  expect_as_alone(heard, request, alone);
  EXPECT_EQ(heard.events, 1u) << "what waits is joined";
  EXPECT_TRUE(deaf->ended());
  EXPECT_FALSE(deaf->next(milliseconds(0)));
}

TEST(Engine, NoticesComeForAllNews) {
  std::promise<void> ended;  // which outlive the engine's threads
  Heard heard;
  Engine engine(bundled(), small(2));
  Alone alone(bundled(), 256);
  const Request request = greedily(tokens("Once upon a time"), 60);
  const auto ticket = engine.submit(request);
  ticket->notify([&] {
    auto event = ticket->next(milliseconds(0));
    if (!event) return;
    heard.text += event->text;
    heard.finish = event->finish;
    if (ticket->ended()) ended.set_value();
  });
  ASSERT_EQ(ended.get_future().wait_for(kLong), std::future_status::ready);
  expect_as_alone(heard, request, alone);
}

TEST(Engine, ANoticeThatThrowsOrBlocksEndsOnlyItself) {
  auto engine = std::make_unique<Engine>(endless(), small(4, 4096));
  Alone alone(endless(), 4096);
  const auto thrower = engine->submit(greedily(tokens("Once upon a time"), -1));
  thrower->notify([] { throw std::runtime_error("no"); });
  EXPECT_EQ(hear(*thrower).finish->reason, StopReason::cancelled);
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  const auto blocker = engine->submit(greedily(tokens("Once upon a time"), -1));
  blocker->notify([released] { released.wait(); });
  const Request request = greedily(tokens("The bird"), 50);
  expect_as_alone(hear(*engine->submit(request)), request, alone);
  engine = nullptr;  // does not wait for it
  release.set_value();
  EXPECT_EQ(hear(*blocker).error->code(), ErrorCode::cancelled);
}

TEST(Engine, ManyThreadsAskAtOnce) {
  EngineOptions options = small(4);
  options.max_queue = 1000;
  Engine engine(bundled(), options);
  Alone alone(bundled(), 256);
  std::vector<Request> requests;
  for (int i = 0; i < 5; ++i)
    requests.push_back(greedily(tokens(std::string("The fox ") + "abcde"[i]), 12 + i));
  for (const Request& request : requests) alone.reply(request);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (std::size_t t = 0; t < 12; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 8; ++i) {
        const Request& request = requests[(t + i) % requests.size()];
        const auto ticket = engine.submit(request);
        if ((t + i) % 4 == 0) {
          ticket->cancel();
          if (!hear(*ticket).finish) ++wrong;
        } else if (hear(*ticket).text != alone.reply(request).text) {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  const llm::EngineStats stats = engine.stats();
  EXPECT_EQ(stats.completed + stats.cancelled, 96u);
  EXPECT_EQ(stats.failed, 0u);
  EXPECT_EQ(stats.request_seconds.count,
            std::accumulate(stats.request_seconds.counts.begin(),
                            stats.request_seconds.counts.end(), std::uint64_t{0}));
  expect_at_rest(engine);
}

// ---- The end

TEST(Engine, DrainingFinishesWhatThereIs) {
  Engine engine(bundled(), small(2));
  Alone alone(bundled(), 256);
  const Request request = greedily(tokens("Once upon a time"), 60);
  const auto tickets = engine.submit(std::vector<Request>(5, request));
  EXPECT_TRUE(engine.drain(kLong));
  EXPECT_THAT(message_of(ErrorCode::cancelled, [&] { engine.submit(request); }),
              HasSubstr("stopping"));
  for (const auto& ticket : tickets) expect_as_alone(hear(*ticket), request, alone);
}

TEST(Engine, DrainingIsBoundedAndStoppingEndsTheRest) {
  Engine engine(endless(), small(1, 65536));
  const auto running = engine.submit(greedily(tokens("Once upon a time"), -1));
  const auto queued = engine.submit(greedily(tokens("Once upon a time"), -1));
  EXPECT_FALSE(engine.drain(milliseconds(50)));
  engine.stop();
  engine.stop();
  for (const auto& ticket : {running, queued}) {
    const Heard heard = hear(*ticket);
    ASSERT_TRUE(heard.error);
    EXPECT_EQ(heard.error->code(), ErrorCode::cancelled);
  }
  EXPECT_EQ(engine.stats().failed, 2u);
  expect_at_rest(engine);
}

TEST(Engine, TicketsOutliveTheirEngine) {
  std::shared_ptr<llm::Ticket> ticket;
  {
    Engine engine(endless(), small(1, 65536));
    ticket = engine.submit(greedily(tokens("Once upon a time"), -1));
  }
  ticket->cancel();
  EXPECT_EQ(hear(*ticket).error->code(), ErrorCode::cancelled);
}

TEST(Engine, OneThatNobodyAsksCostsNothing) {
  for (int i = 0; i < 20; ++i) {
    Engine engine(bundled(), small());
    expect_at_rest(engine);
  }
}

}  // namespace
}  // namespace heddle::test
