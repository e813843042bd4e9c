// Many clients at once: every reply is the one that the same request gets alone.
//
// LOAD_SECONDS and LOAD_CLIENTS make it longer and wider: 120 and 64 are the measure.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <random>
#include <thread>

#include "server/test_server.h"

namespace heddle::test {
namespace {

using Clock = std::chrono::steady_clock;

int from_environment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : otherwise;
}

double resident_mib() {
  std::ifstream in("/proc/self/statm");
  std::uint64_t all = 0, resident = 0;
  in >> all >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

struct Work {
  std::string path;
  Json body;
  std::string expected;
};

std::string text_of(const Json& choice) {
  return choice.contains("message") ? choice["message"]["content"] : choice["text"];
}

/// Short and long ones, of which some begin in the same way.
std::vector<Work> mixed_work(const TestServer& server) {
  const std::string tale =
      "Once upon a time a fox and an owl lived in the same old wood. The fox was quick and the owl "
      "was wise, and each thought little of the other. One day the river rose. ";
  std::vector<Work> all;
  for (int i = 0; i < 24; ++i) {
    const int tokens = 1 + i * i / 4;
    std::string text = tale.substr(0, 20 + static_cast<std::size_t>(i * 7));
    if (i % 5 == 0) text += tale + tale;
    Work work;
    if (i % 2 == 0)
      work = {"/v1/completions", completion_body(text, tokens), ""};
    else
      work = {"/v1/chat/completions", chat_body(text, tokens), ""};
    work.body["stream"] = i % 3 == 0;
    Json whole = work.body;
    whole["stream"] = false;
    work.expected = text_of(server.ask(work.path, whole)["choices"][0]);
    all.push_back(std::move(work));
  }
  return all;
}

std::string reply_text(const RawResponse& response, bool stream) {
  if (!stream) return text_of(Json::parse(response.body)["choices"][0]);
  std::string text;
  for (const Json& chunk : chunks_of(response)) {
    const Json& choice = chunk["choices"][0];
    text += choice.contains("delta") ? choice["delta"].value("content", "")
                                     : choice["text"].get<std::string>();
  }
  return text;
}

struct Totals {
  std::atomic<std::uint64_t> replies{0}, busy{0}, left{0}, wrong{0};
  std::mutex mutex;
  std::string first_fault;

  void fault(const std::string& what) {
    const std::lock_guard lock(mutex);
    if (wrong++ == 0) first_fault = what;
  }
};

/// One client's life until `end`: mostly it asks, sometimes it goes before the reply is whole.
void live(const std::string& url, const std::vector<Work>& all, unsigned seed,
          Clock::time_point end, Totals& totals) {
  std::mt19937 random(seed);
  while (Clock::now() < end) {
    const Work& work = all[random() % all.size()];
    const std::string text = request_text("POST", work.path, work.body.dump());
    RawClient client(url);
    client.send(text);
    if (random() % 10 == 0) {
      client.read_some(std::chrono::milliseconds(random() % 30));
      ++totals.left;
      continue;
    }
    const RawResponse response = client.read_response(std::chrono::seconds(120));
    if (response.status == 429) {
      ++totals.busy;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    } else if (response.status != 200 || !response.whole) {
      totals.fault("status " + std::to_string(response.status) + ": " + response.body);
    } else if (const std::string got = reply_text(response, work.body["stream"]);
               got != work.expected) {
      totals.fault(work.body.dump() + "\nsays  " + got + "\nalone " + work.expected);
    } else {
      ++totals.replies;
    }
  }
}

TEST(Load, EveryReplyIsTheOneItGetsAlone) {
  const int seconds = from_environment("LOAD_SECONDS", 8);
  const auto clients = static_cast<unsigned>(from_environment("LOAD_CLIENTS", 16));
  TestServer server([&](auto& options) {
    options.engine.n_parallel = 8;
    options.engine.max_queue = clients;
    options.engine.n_kv = 2048;  // too little for eight whole contexts: some have to give way
  });
  const std::vector<Work> all = mixed_work(server);
  Totals totals;
  const auto spend = [&](int time) {
    const auto end = Clock::now() + std::chrono::seconds(time);
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < clients; ++i)
      threads.emplace_back([&, i] { live(server.url(), all, i, end, totals); });
    for (std::thread& thread : threads) thread.join();
  };
  spend(std::max(1, seconds / 4));
  const double warm = resident_mib();
  spend(seconds - seconds / 4);
  const double grown = resident_mib() - warm;
  EXPECT_EQ(totals.wrong, 0u) << totals.first_fault;
  EXPECT_GT(totals.replies, static_cast<std::uint64_t>(seconds));
  EXPECT_LT(grown, 32) << "MiB of resident memory";
  EXPECT_TRUE(comes_true([&] {
    const llm::EngineStats stats = server.server().stats();
    return stats.running == 0 && stats.queued == 0;
  }));
  const llm::EngineStats stats = server.server().stats();
  EXPECT_EQ(stats.failed, 0u);
  EXPECT_EQ(stats.blocks_used, 0);
  std::printf(
      "%llu replies, %llu refused as busy, %llu clients left; %llu tokens; %.1f MiB grown\n",
      static_cast<unsigned long long>(totals.replies), static_cast<unsigned long long>(totals.busy),
      static_cast<unsigned long long>(totals.left),
      static_cast<unsigned long long>(stats.generated_tokens), grown);
}

}  // namespace
}  // namespace heddle::test
