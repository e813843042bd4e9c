// Requests to engines, and what the same requests get alone.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

#include "heddle/engine.h"

namespace heddle::test {

/// Everything that a request heard.
struct Heard {
  std::string text;
  std::vector<llm::SampledToken> tokens;
  std::optional<llm::Finish> finish;
  std::shared_ptr<const Error> error;
  std::size_t events = 0;
};

/// For machines that stand still at times.
inline constexpr std::chrono::seconds kLong{120};

/// Until the last event.
inline Heard hear(llm::Ticket& ticket) {
  Heard heard;
  const auto end = std::chrono::steady_clock::now() + kLong;
  while (!ticket.ended()) {
    if (std::chrono::steady_clock::now() > end) {
      ADD_FAILURE() << "no end after " << kLong.count() << " s, but '" << heard.text << "'";
      break;
    }
    std::optional<llm::Event> event = ticket.next(std::chrono::milliseconds(100));
    if (!event) continue;
    ++heard.events;
    heard.text += event->text;
    for (auto& token : event->tokens) heard.tokens.push_back(std::move(token));
    heard.finish = std::move(event->finish);
    heard.error = std::move(event->error);
  }
  return heard;
}

/// Waits, with a bound, for something that another thread is about to do.
template <class F>
bool soon(const F& is_so) {
  const auto end = std::chrono::steady_clock::now() + kLong;
  while (!is_so()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

inline llm::Request greedily(std::vector<TokenId> prompt, std::int64_t max_tokens) {
  llm::Request request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  request.sampler.temperature = 0;
  return request;
}

/// What `generate`, which knows of no engine, makes of requests, one at a time in a context of its
/// own.
class Alone {
 public:
  struct Reply {
    std::string text;
    llm::GenerateResult result;
  };

  Alone(std::shared_ptr<const llm::Model> model, std::int64_t n_ctx, bool lazy = false)
      : context_(std::move(model), options(n_ctx, lazy)) {}

  const Reply& reply(const llm::Request& request) {
    const Key key{request.prompt,       request.max_tokens,
                  request.stop,         request.sampler.temperature,
                  request.sampler.seed, request.sampler.presence_penalty};
    const auto known = replies_.find(key);
    if (known != replies_.end()) return known->second;
    Reply reply;
    llm::GenerateOptions o;
    o.max_tokens = request.max_tokens;
    o.stop = request.stop;
    o.sampler = request.sampler;
    const llm::SequenceId sequence = context_.create();
    reply.result = llm::generate(context_, sequence, request.prompt, o, [&](std::string_view text) {
      reply.text += text;
      return true;
    });
    context_.release(sequence);
    return replies_.emplace(key, std::move(reply)).first->second;
  }

  llm::Context& context() { return context_; }

 private:
  using Key = std::tuple<std::vector<TokenId>, std::int64_t, std::vector<std::string>, float,
                         std::uint64_t, float>;
  static llm::ContextOptions options(std::int64_t n_ctx, bool lazy) {
    llm::ContextOptions o;
    o.lazy = lazy;
    o.n_ctx = n_ctx;
    o.threads = 1;
    return o;
  }
  llm::Context context_;
  std::map<Key, Reply> replies_;
};

inline void expect_as_alone(const Heard& heard, const llm::Request& request, Alone& alone) {
  ASSERT_FALSE(heard.error) << heard.error->what();
  ASSERT_TRUE(heard.finish);
  const Alone::Reply& expected = alone.reply(request);
  EXPECT_EQ(heard.text, expected.text);
  EXPECT_EQ(heard.finish->reason, expected.result.reason);
  EXPECT_EQ(heard.finish->usage.generated_tokens, expected.result.generated_tokens);
  EXPECT_EQ(heard.finish->usage.prompt_tokens, expected.result.prompt_tokens);
}

/// Nobody holds KV but finished texts.
inline void expect_at_rest(const llm::Engine& engine) {
  const llm::EngineStats stats = engine.stats();
  EXPECT_EQ(stats.running, 0);
  EXPECT_EQ(stats.queued, 0);
  EXPECT_EQ(stats.blocks_used, 0);
  EXPECT_EQ(stats.blocks_free + stats.blocks_cached, stats.blocks);
}

}  // namespace heddle::test
