// Tokens a second that an engine writes for 1, 2, 4, ... clients at once, against one; and what a
// long prompt costs those that are being written.
//
//   engine_bench MODEL [THREADS] [CLIENTS...]      1 8 by default
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "heddle/engine.h"

namespace heddle {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kTokens = 24;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

llm::Request request(std::size_t prompt_tokens, std::int64_t max_tokens, TokenId first) {
  llm::Request r;
  for (std::size_t i = 0; i < prompt_tokens; ++i)
    r.prompt.push_back(static_cast<TokenId>((static_cast<std::size_t>(first) + 7 * i) % 300 + 1));
  r.max_tokens = max_tokens;
  r.ignore_end_tokens = true;
  r.sampler.temperature = 0;
  return r;
}

void finish(llm::Ticket& ticket) {
  while (!ticket.ended()) {
    const auto event = ticket.next(std::chrono::seconds(10));
    if (event && event->error) throw *event->error;
  }
}

struct Rate {
  double tokens = 0;      // a second, of all clients together
  double step_share = 0;  // of the time, in the model's steps
};

Rate rate(llm::Engine& engine, int clients) {
  const llm::EngineStats before = engine.stats();
  std::vector<llm::Request> requests;
  for (int c = 0; c < clients; ++c) requests.push_back(request(8, kTokens, 20 * c));
  const Clock::time_point start = Clock::now();
  for (const auto& ticket : engine.submit(requests)) finish(*ticket);
  const double seconds = seconds_since(start);
  const llm::EngineStats after = engine.stats();
  return {static_cast<double>(after.generated_tokens - before.generated_tokens) / seconds,
          (after.step_seconds.sum - before.step_seconds.sum) / seconds};
}

/// The longest wait for a token while a prompt of `count` tokens is read beside.
double longest_wait(llm::Engine& engine, std::size_t count) {
  llm::Request writing = request(8, -1, 3);
  writing.top_logprobs = 0;
  const auto writer = engine.submit(writing);
  writer->next(std::chrono::seconds(10));
  const auto reader = engine.submit(request(count, 1, 5));
  double longest = 0;
  Clock::time_point last = Clock::now();
  while (!reader->ended() && !writer->ended()) {
    reader->next(std::chrono::milliseconds(0));
    if (!writer->next(std::chrono::milliseconds(1))) continue;
    longest = std::max(longest, seconds_since(last));
    last = Clock::now();
  }
  return longest;
}

void run(const char* path, int threads, const std::vector<int>& clients) {
  const std::shared_ptr<const llm::Model> model = llm::Model::open(path);
  llm::EngineOptions options;
  options.context.n_ctx = std::min<std::int64_t>(2048, model->config().n_ctx_train);
  options.context.threads = threads;
  options.n_parallel = std::max(*std::ranges::max_element(clients), 2);
  options.max_cached = 0;
  const Clock::time_point start = Clock::now();
  llm::Engine engine(model, options);
  finish(*engine.submit(request(8, 1, 1)));
  fmt::print("first token after {:.0f} ms, of which the plan and the weights are most\n",
             1e3 * seconds_since(start));
  for (const int c : clients) rate(engine, c);  // plans are compiled, weights packed
  double alone = 0;
  for (const int c : clients) {
    const Rate now = rate(engine, c);
    if (alone == 0) alone = now.tokens / c;
    fmt::print("{:3} clients: {:8.1f} tokens/s, {:5.2f} times one; {:.0f}% of it in steps\n", c,
               now.tokens, now.tokens / alone, 100 * now.step_share);
  }
  const auto prompt = static_cast<std::size_t>(options.context.n_ctx / 2);
  fmt::print("longest wait beside a prompt of {} tokens: {:.0f} ms\n", prompt,
             1e3 * longest_wait(engine, prompt));
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "engine_bench MODEL [THREADS] [CLIENTS...]\n");
    return 2;
  }
  std::vector<int> clients;
  for (int i = 3; i < argc; ++i) clients.push_back(std::max(std::atoi(argv[i]), 1));
  if (clients.empty()) clients = {1, 8};
  heddle::run(argv[1], argc > 2 ? std::atoi(argv[2]) : 0, clients);
}
