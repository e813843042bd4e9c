// Clients that vanish, queues that are full, an engine that fails: the others are served.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "heddle/error.h"
#include "server/test_server.h"

namespace heddle::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

/// Each step takes a while, so that there is time to do something meanwhile.
void slow_down(server::ServerOptions& options) {
  options.engine.before_step = [](std::uint64_t) { std::this_thread::sleep_for(20ms); };
}

/// One that goes on until it has as many tokens as it may.
Json endless(Json body) {
  body["ignore_eos"] = true;
  return body;
}

Json streaming(Json body) {
  body["stream"] = true;
  return body;
}

/// A request whose first text has come.
std::unique_ptr<RawClient> begun(const TestServer& server) {
  auto client = std::make_unique<RawClient>(server.url());
  client->send(request_text("POST", "/v1/completions",
                            streaming(endless(completion_body("Once upon a time", 300))).dump()));
  EXPECT_TRUE(client->read_until("\"text\":"));
  return client;
}

bool idle(TestServer& server) {
  const llm::EngineStats stats = server.server().stats();
  return stats.running == 0 && stats.queued == 0;
}

TEST(Vanish, AClientInMidStreamFreesWhatItHeld) {
  TestServer server(slow_down);
  const auto other = begun(server);
  for (const bool abruptly : {false, true}) {
    const auto client = begun(server);
    EXPECT_TRUE(comes_true([&] { return server.server().stats().running == 2; }));
    if (abruptly)
      client->reset();
    else
      client->close();
    EXPECT_TRUE(comes_true([&] { return server.server().stats().running == 1; }));
  }
  EXPECT_EQ(server.server().stats().cancelled, 2u);
  EXPECT_TRUE(other->read_until("\"text\":")) << "it goes on";
}

TEST(Vanish, AClientThatWaitsForAWholeReplyIsSeenToGo) {
  TestServer server(slow_down);
  RawClient client(server.url());
  client.send(
      request_text("POST", "/v1/completions", endless(completion_body("Once", 400)).dump()));
  ASSERT_TRUE(comes_true([&] { return server.server().stats().running == 1; }));
  client.close();
  EXPECT_TRUE(comes_true([&] { return idle(server); }));
  EXPECT_EQ(server.server().stats().cancelled, 1u);
}

TEST(Vanish, AQueuedClientLeavesTheQueue) {
  TestServer server([](auto& options) {
    slow_down(options);
    options.engine.n_parallel = 1;
  });
  const auto running = begun(server);
  std::vector<std::unique_ptr<RawClient>> waiting;
  for (int i = 0; i < 5; ++i) {
    waiting.push_back(std::make_unique<RawClient>(server.url()));
    waiting.back()->send(request_text("POST", "/v1/completions", completion_body("A", 3).dump()));
  }
  ASSERT_TRUE(comes_true([&] { return server.server().stats().queued == 5; }));
  for (int i = 0; i < 4; ++i) waiting[static_cast<std::size_t>(i)]->close();
  EXPECT_TRUE(comes_true([&] { return server.server().stats().queued == 1; }));
  EXPECT_EQ(server.server().stats().running, 1);
  running->close();
  EXPECT_EQ(waiting.back()->read_response(60s).status, 200);
}

TEST(Vanish, DuringAnothersPrompt) {
  TestServer server([](auto& options) {
    slow_down(options);
    options.engine.context.chunk = 16;
  });
  const std::vector<int> prompt(400, 7);
  const Json body = completion_body(prompt, 8);
  const Json alone = server.ask("/v1/completions", body)["choices"];
  RawClient reading(server.url());
  std::vector<int> another = prompt;
  another[0] = 8;
  reading.send(request_text("POST", "/v1/completions", completion_body(another, 8).dump()));
  ASSERT_TRUE(comes_true([&] { return server.server().stats().running == 1; }));
  {
    const auto gone = begun(server);
    gone->reset();
  }
  EXPECT_EQ(reading.read_response(60s).status, 200);
  EXPECT_EQ(server.ask("/v1/completions", body)["choices"], alone);
}

TEST(Vanish, AReplyWithManyTexts) {
  TestServer server(slow_down);
  RawClient client(server.url());
  Json body = endless(completion_body("Once", 400));
  body["n"] = 50;
  client.send(request_text("POST", "/v1/completions", body.dump()));
  ASSERT_TRUE(comes_true([&] { return server.server().stats().running == 4; }));
  client.close();
  EXPECT_TRUE(comes_true([&] { return idle(server); }));
  EXPECT_EQ(server.ask("/v1/completions", completion_body("Once", 3))["usage"]["completion_tokens"],
            3);
}

TEST(Queue, WhenItIsFullClientsAreToldToComeBack) {
  TestServer server([](auto& options) {
    slow_down(options);
    options.engine.n_parallel = 1;
    options.engine.max_queue = 1;
  });
  const auto running = begun(server);
  RawClient waiting(server.url());
  waiting.send(request_text("POST", "/v1/completions", completion_body("A", 3).dump()));
  ASSERT_TRUE(comes_true([&] { return server.server().stats().queued == 1; }));
  for (const bool stream : {false, true}) {
    Json body = completion_body("B", 3);
    body["stream"] = stream;
    const RawResponse refused = server.post("/v1/completions", body);
    EXPECT_EQ(refused.status, 429);
    EXPECT_GE(std::stoi(refused.headers.at("retry-after")), 1);
    EXPECT_EQ(Json::parse(refused.body)["error"]["type"], "rate_limit_error");
  }
  EXPECT_EQ(server.post("/v1/embeddings", {{"input", "x"}}).status, 429);
  running->close();
  EXPECT_EQ(waiting.read_response(60s).status, 200);
}

/// Fails the step with this number.
struct Fault {
  std::atomic<std::uint64_t> at{~std::uint64_t{0}};
  std::atomic<std::uint64_t> steps{0};
  void install(server::ServerOptions& options) {
    options.engine.before_step = [this](std::uint64_t) {
      if (steps++ == at) throw Error(ErrorCode::backend, "the device caught fire");
    };
  }
};

TEST(Faults, AtEachStepEndTheRequestWith500AndTheNextIsServed) {
  Fault fault;
  TestServer server([&](auto& options) {
    fault.install(options);
    options.engine.context.chunk = 8;
    options.engine.max_cached = 0;
  });
  const Json body = completion_body(std::vector<int>(30, 9), 6);
  const std::uint64_t before = fault.steps;
  const Json expected = server.ask("/v1/completions", body)["choices"];
  const std::uint64_t steps = fault.steps - before;
  ASSERT_GE(steps, 9u);
  for (std::uint64_t step = 0; step < steps; ++step) {
    fault.at = fault.steps + step;
    const Json reply = server.ask("/v1/completions", body, 500);
    EXPECT_EQ(reply["error"]["type"], "server_error");
    EXPECT_THAT(error_message(reply), HasSubstr("the device caught fire"));
    EXPECT_EQ(server.ask("/v1/completions", body)["choices"], expected) << step;
  }
}

TEST(Faults, InAStreamAreAnEventOfTheirOwn) {
  Fault fault;
  TestServer server([&](auto& options) {
    fault.install(options);
    // Steps must not be over before the first words are on their way.
    options.engine.before_step = [step = options.engine.before_step](std::uint64_t number) {
      std::this_thread::sleep_for(10ms);
      step(number);
    };
  });
  fault.at = 30;
  const RawResponse response =
      server.post("/v1/chat/completions", streaming(chat_body("Tell me of a fox.", 50)));
  EXPECT_EQ(response.status, 200);
  EXPECT_TRUE(response.whole);
  const std::vector<std::string> events = events_of(response.body);
  ASSERT_GT(events.size(), 1u);
  EXPECT_THAT(error_message(Json::parse(events.back())), HasSubstr("the device caught fire"));
  fault.at = fault.steps.load();
  EXPECT_EQ(server.post("/v1/chat/completions", streaming(chat_body("Hi", 5))).status, 500)
      << "before anything was sent, a stream too has a status";
  EXPECT_EQ(server.post("/v1/chat/completions", streaming(chat_body("Hi", 5))).status, 200);
}

TEST(Faults, AnEmbeddingsToo) {
  Fault fault;
  TestServer server([&](auto& options) { fault.install(options); });
  fault.at = 0;
  server.ask("/v1/embeddings", {{"input", "A fox."}}, 500);
  server.ask("/v1/embeddings", {{"input", "A fox."}}, 200);
}

TEST(Drain, RunningRepliesEndAndNewOnesAreRefused) {
  TestServer server(slow_down);
  const auto running = begun(server);
  RawClient kept(server.url());
  kept.send(request_text("GET", "/health"));
  EXPECT_EQ(kept.read_response().status, 200);
  std::thread drain([&] { EXPECT_TRUE(server.server().drain(120s)); });
  EXPECT_TRUE(kept.is_closed_within(10s));
  EXPECT_TRUE(comes_true([&] { return request(server.url(), "GET", "/health").status == 503; }));
  const RawResponse refused = server.post("/v1/completions", completion_body("A", 1));
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.headers.contains("retry-after"));
  EXPECT_TRUE(running->read_until("[DONE]", 120s));
  drain.join();
}

TEST(Drain, AWatcherDoesNotHoldItUp) {
  TestServer server;
  RawClient watcher(server.url());
  watcher.send(request_text("GET", "/trace/live"));
  ASSERT_TRUE(watcher.read_until(": heddle"));
  EXPECT_TRUE(server.server().drain(20s));
}

TEST(Drain, TheEndComesInTheMidstOfReplies) {
  std::vector<std::unique_ptr<RawClient>> clients;
  {
    TestServer server(slow_down);
    for (int i = 0; i < 6; ++i) {
      clients.push_back(std::make_unique<RawClient>(server.url()));
      clients.back()->send(request_text("POST", "/v1/completions",
                                        streaming(endless(completion_body("Once", 300))).dump()));
    }
    ASSERT_TRUE(comes_true([&] { return server.server().stats().running == 4; }));
    EXPECT_FALSE(server.server().drain(50ms));
  }
  for (const auto& client : clients) EXPECT_TRUE(client->is_closed_within(10s));
}

}  // namespace
}  // namespace heddle::test
