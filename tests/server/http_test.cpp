// The transport, with handlers of the test's own: what clients send in pieces, wrongly, slowly,
// too much of, or not at all.
#include "server/http.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <future>
#include <mutex>
#include <random>
#include <thread>

#include "heddle/error.h"
#include "server/raw_client.h"

namespace heddle::server {
namespace {

using namespace std::chrono_literals;
using test::RawClient;
using test::RawResponse;
using testing::HasSubstr;

HttpOptions options_for_tests() {
  HttpOptions options;
  options.limits.body_bytes = 1 << 20;
  options.limits.request_time = 1s;
  options.limits.write_time = 1s;
  options.limits.idle_time = 2s;
  options.refusal = [](int status, const std::string& message) {
    return HttpResponse{.status = status, .body = message};
  };
  return options;
}

/// From its construction on.
class Serving : public HttpServer {
 public:
  Serving(const HttpOptions& options, Handler handler) : HttpServer(options, std::move(handler)) {
    start();
  }
};

/// Repeats what it is sent.
void echo(const HttpRequest& request, const std::shared_ptr<Reply>& reply) {
  reply->send(
      {.content_type = "text/plain",
       .body = request.method + " " + request.path + "?" + request.query + " " + request.body});
}

/// Keeps replies until the test answers them.
class Held {
 public:
  Handler handler() {
    return [this](HttpRequest, std::shared_ptr<Reply> reply) {
      reply->on_gone([this] { ++gone; });
      const std::lock_guard lock(mutex_);
      replies_.push_back(std::move(reply));
    };
  }
  std::shared_ptr<Reply> take() {
    for (int i = 0; i < 2000; ++i) {
      {
        const std::lock_guard lock(mutex_);
        if (!replies_.empty()) {
          auto reply = replies_.back();
          replies_.pop_back();
          return reply;
        }
      }
      std::this_thread::sleep_for(10ms);
    }
    throw std::runtime_error("no request came");
  }
  std::atomic<int> gone{0};

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<Reply>> replies_;
};

template <class Condition>
bool comes_true(Condition condition, std::chrono::milliseconds limit = 20s) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

TEST(Http, AnswersWhatItIsAsked) {
  Serving server(options_for_tests(), echo);
  const RawResponse response = test::request(server.url(), "POST", "/a%20b/%zz?c=%20", "body");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "POST /a b/%zz?c=%20 body");
  EXPECT_EQ(response.headers.at("content-type"), "text/plain");
  EXPECT_TRUE(server.is_loopback());
}

TEST(Http, TakesARequestByteByByte) {
  Serving server(options_for_tests(), echo);
  RawClient client(server.url());
  for (const char c : test::request_text("POST", "/x", "hello")) ASSERT_TRUE(client.send({&c, 1}));
  EXPECT_EQ(client.read_response().body, "POST /x? hello");
}

TEST(Http, TakesChunks) {
  Serving server(options_for_tests(), echo);
  RawClient client(server.url());
  client.send("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 1000; ++i) client.send("1\r\nz\r\n");
  client.send("3;note=1\r\nend\r\n0\r\n\r\n");
  EXPECT_EQ(client.read_response().body, "POST /x? " + std::string(1000, 'z') + "end");
}

TEST(Http, ServesSeveralRequestsOnAConnectionSentAheadOrNot) {
  Serving server(options_for_tests(), echo);
  RawClient client(server.url());
  std::string ahead;
  for (int i = 0; i < 500; ++i) ahead += test::request_text("GET", "/" + std::to_string(i));
  client.send(ahead);
  for (int i = 0; i < 500; ++i) {
    const RawResponse response = client.read_response();
    ASSERT_EQ(response.body, "GET /" + std::to_string(i) + "? ");
    ASSERT_EQ(response.headers.at("connection"), "keep-alive");
  }
  client.send(test::request_text("GET", "/later"));
  EXPECT_EQ(client.read_response().body, "GET /later? ");
  EXPECT_EQ(server.counts().accepted, 1u);
}

TEST(Http, ClosesWhenAskedToAndForOldClients) {
  Serving server(options_for_tests(), echo);
  for (const char* head :
       {"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", "GET / HTTP/1.0\r\n\r\n"}) {
    RawClient client(server.url());
    client.send(head);
    EXPECT_EQ(client.read_response().headers.at("connection"), "close") << head;
    EXPECT_TRUE(client.is_closed_within(1s)) << head;
  }
}

TEST(Http, AnswersHeadWithoutABody) {
  Serving server(options_for_tests(), echo);
  RawClient client(server.url());
  client.send(test::request_text("HEAD", "/x"));
  const RawResponse response = client.read_response(20s, true);
  EXPECT_EQ(response.headers.at("content-length"), "9");
  client.send(test::request_text("GET", "/y"));
  EXPECT_EQ(client.read_response().body, "GET /y? ");
}

TEST(Http, InvitesABodyThatWaitsForIt) {
  Serving server(options_for_tests(), echo);
  RawClient client(server.url());
  client.send("POST /x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  ASSERT_TRUE(client.read_until("HTTP/1.1 100 Continue\r\n\r\n"));
  client.send("ok");
  EXPECT_EQ(client.read_response().body, "POST /x? ok");
}

TEST(Http, RefusesWhatIsNoRequest) {
  Serving server(options_for_tests(), echo);
  const std::string zeros(100, '\0');
  const std::vector<std::pair<std::string, int>> cases{
      {"hello\r\n\r\n", 400},
      {zeros, 400},
      {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400},  // TLS
      {"GET / HTTP/2.0\r\n\r\n", 505},
      {"GET / HTTP/1.1\r\nbad header\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 501},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 400},
      {"GET /" + std::string(20'000, 'a') + " HTTP/1.1\r\n\r\n", 431},
      {"GET / HTTP/1.1\r\nA: " + std::string(20'000, 'a') + "\r\n\r\n", 431},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;" + std::string(20'000, 'a'), 400},
      {"POST / HTTP/1.1\r\nContent-Length: 1073741824\r\n\r\n", 413},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n40000000\r\n", 413},
  };
  for (const auto& [text, status] : cases) {
    RawClient client(server.url());
    client.send(text);
    EXPECT_EQ(client.read_response().status, status) << text.substr(0, 80);
    EXPECT_TRUE(client.is_closed_within(5s)) << text.substr(0, 80);
  }
  EXPECT_EQ(server.counts().malformed, cases.size());
  EXPECT_EQ(test::request(server.url(), "GET", "/").status, 200);
}

TEST(Http, ToldOfAGigabyteItAnswersBeforeAnyOfItComes) {
  Serving server(options_for_tests(), echo);
  RawClient client(server.url());
  client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1073741824\r\n\r\n");
  const std::string piece(1 << 16, 'x');
  bool open = true;
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (open && std::chrono::steady_clock::now() < deadline) open = client.send(piece);
  EXPECT_FALSE(open) << "it takes whatever is sent";
  EXPECT_EQ(test::request(server.url(), "GET", "/").status, 200);
}

TEST(Http, ASlowRequestEndsInTime) {
  Serving server(options_for_tests(), echo);
  RawClient client(server.url());
  const std::string text = test::request_text("POST", "/x", "hello");
  for (const char c : text) {
    if (server.counts().malformed > 0) break;
    client.send({&c, 1});
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_EQ(client.read_response().status, 408);
  EXPECT_TRUE(client.is_closed_within(5s));
}

TEST(Http, AnIdleConnectionEndsInTime) {
  Serving server(options_for_tests(), echo);
  RawClient silent(server.url()), once(server.url());
  once.send(test::request_text("GET", "/"));
  EXPECT_EQ(once.read_response().status, 200);
  EXPECT_TRUE(silent.is_closed_within(10s));
  EXPECT_TRUE(once.is_closed_within(10s));
}

TEST(Http, SaysThatARequestBrokeOff) {
  Serving server(options_for_tests(), echo);
  RawClient client(server.url());
  client.send("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nab");
  client.half_close();
  EXPECT_EQ(client.read_response().status, 400);
  EXPECT_TRUE(client.is_closed_within(5s));
}

TEST(Http, StreamsInChunksOrUntilTheEnd) {
  Serving server(options_for_tests(), [](HttpRequest, std::shared_ptr<Reply> reply) {
    reply->begin({.content_type = "text/event-stream", .body = "a"});
    std::thread([reply] {
      for (const char* piece : {"b", "", "c"}) reply->write(piece);
      reply->end();
      reply->write("after the end");
      reply->send({.body = "another"});
    }).join();
  });
  RawClient client(server.url());
  for (int i = 0; i < 2; ++i) {
    client.send(test::request_text("GET", "/"));
    const RawResponse response = client.read_response();
    EXPECT_EQ(response.body, "abc");
    EXPECT_TRUE(response.whole);
  }
  RawClient old(server.url());
  old.send("GET / HTTP/1.0\r\n\r\n");
  const RawResponse response = old.read_response();
  EXPECT_EQ(response.body, "abc");
  EXPECT_FALSE(response.headers.contains("transfer-encoding"));
}

TEST(Http, SeesClientsGo) {
  Held held;
  Serving server(options_for_tests(), held.handler());
  using Leave = void (*)(RawClient&);
  int left = 0;
  for (const Leave leave :
       {Leave([](RawClient& c) { c.close(); }), Leave([](RawClient& c) { c.reset(); }),
        Leave([](RawClient& c) { c.half_close(); })}) {
    for (const bool begun : {false, true}) {
      RawClient client(server.url());
      client.send(test::request_text("POST", "/", "x"));
      const auto reply = held.take();
      if (begun) reply->begin({.body = "some"});
      leave(client);
      EXPECT_TRUE(comes_true([&] { return held.gone == left + 1; })) << left;
      ++left;
      reply->write("more");
      reply->end();
    }
  }
  EXPECT_TRUE(comes_true([&] { return server.counts().open == 0; }));
  EXPECT_EQ(server.counts().vanished, 6u);
}

TEST(Http, ToldLateItStillSaysThatAClientHasGone) {
  std::promise<std::shared_ptr<Reply>> came;
  Serving server(options_for_tests(),
                 [&](HttpRequest, std::shared_ptr<Reply> reply) { came.set_value(reply); });
  {
    RawClient client(server.url());
    client.send(test::request_text("GET", "/"));
    client.close();
  }
  const auto reply = came.get_future().get();
  std::this_thread::sleep_for(100ms);
  std::promise<void> gone;
  reply->on_gone([&] { gone.set_value(); });
  EXPECT_EQ(gone.get_future().wait_for(20s), std::future_status::ready);
}

TEST(Http, AClientThatDoesNotReadIsCutOff) {
  Held held;
  HttpOptions options = options_for_tests();
  options.limits.unsent_bytes = 1 << 18;
  Serving server(options, held.handler());
  RawClient flooded(server.url()), stalled(server.url());
  flooded.shrink_receive_buffer();
  flooded.send(test::request_text("GET", "/"));
  auto reply = held.take();
  reply->begin({});
  for (int i = 0; i < 1000 && held.gone == 0; ++i) {
    reply->write(std::string(1 << 16, 'x'));
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_TRUE(comes_true([&] { return held.gone == 1; })) << "of what is not read, it keeps all";

  stalled.send(test::request_text("GET", "/"));
  reply = held.take();
  reply->send({.body = std::string(64 << 20, 'x')});
  EXPECT_TRUE(comes_true([&] { return server.counts().open == 0; })) << "it waits for ever";
}

TEST(Http, ALargeReplyComesWhole) {
  Serving server(options_for_tests(), [](HttpRequest, std::shared_ptr<Reply> reply) {
    reply->send({.body = std::string(20 << 20, 'y')});
  });
  EXPECT_EQ(test::request(server.url(), "GET", "/").body, std::string(20 << 20, 'y'));
}

TEST(Http, MoreSentAheadThanItKeepsEndsTheConnection) {
  Held held;
  Serving server(options_for_tests(), held.handler());
  RawClient client(server.url());
  client.send(test::request_text("GET", "/"));
  const auto reply = held.take();
  const std::string piece(1 << 14, 'x');
  for (int i = 0; i < 100 && client.send(piece); ++i) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(comes_true([&] { return held.gone == 1; }));
}

TEST(Http, ADroppedReplyIsAFault) {
  Serving server(options_for_tests(), [](const HttpRequest& request, std::shared_ptr<Reply> reply) {
    if (request.path == "/throw") throw std::runtime_error("on purpose");
    if (request.path == "/begun") reply->begin({.body = "some"});
  });
  EXPECT_EQ(test::request(server.url(), "GET", "/").status, 500);
  EXPECT_EQ(test::request(server.url(), "GET", "/throw").status, 500);
  const RawResponse begun = test::request(server.url(), "GET", "/begun");
  EXPECT_EQ(begun.body, "some");
  EXPECT_FALSE(begun.whole);
}

TEST(Http, BeyondTheLimitConnectionsAreTurnedAway) {
  HttpOptions options = options_for_tests();
  options.limits.connections = 3;
  options.limits.idle_time = 60s;
  Serving server(options, echo);
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<RawClient>(server.url()));
    clients.back()->send(test::request_text("GET", "/"));
    EXPECT_EQ(clients.back()->read_response().status, 200);
  }
  RawClient refused(server.url());
  const RawResponse response = refused.read_response();
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.headers.at("retry-after"), "1");
  for (int i = 0; i < 200; ++i) clients.push_back(std::make_unique<RawClient>(server.url()));
  clients.clear();
  EXPECT_TRUE(comes_true([&] { return server.counts().open == 0; }));
  EXPECT_EQ(test::request(server.url(), "GET", "/").status, 200);
}

TEST(Http, DrainsAndStops) {
  Held held;
  Serving server(options_for_tests(), held.handler());
  RawClient idle(server.url()), busy(server.url());
  busy.send(test::request_text("GET", "/"));
  auto reply = held.take();
  reply->begin({.body = "a"});
  server.drain();
  EXPECT_TRUE(idle.is_closed_within(1s));
  EXPECT_FALSE(server.wait_idle(50ms));
  reply->write("b");
  reply->end();
  EXPECT_EQ(busy.read_response().body, "ab");
  EXPECT_TRUE(busy.is_closed_within(5s));
  EXPECT_TRUE(server.wait_idle(10s));

  RawClient late(server.url());
  late.send(test::request_text("GET", "/"));
  reply = held.take();
  server.stop();
  EXPECT_EQ(held.gone, 1);
  EXPECT_TRUE(late.is_closed_within(1s));
  reply->send({});
  bool ran = false;
  reply->post([&] { ran = true; });
  reply = nullptr;
  EXPECT_FALSE(ran);
  EXPECT_THROW(RawClient(server.url()), std::system_error);
}

TEST(Http, SaysWhyItCannotListen) {
  Serving server(options_for_tests(), echo);
  HttpOptions taken = options_for_tests();
  taken.port =
      static_cast<std::uint16_t>(std::stoi(server.url().substr(server.url().rfind(':') + 1)));
  HttpOptions unknown = options_for_tests();
  unknown.host = "no such host.invalid";
  for (const auto& [options, words] :
       {std::pair(taken, "Address already in use"), std::pair(unknown, "no such host.invalid")}) {
    try {
      const HttpServer second(options, echo);
      FAIL() << words;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::io);
      EXPECT_THAT(error.what(), HasSubstr(words));
    }
  }
}

/// A sound request with some bytes changed, left out, doubled or put in.
std::string mutated(std::mt19937& random) {
  static const std::vector<std::string> seeds{
      test::request_text("POST", "/a?b", "hello"),
      test::request_text("GET", "/") + test::request_text("HEAD", "/x"),
      "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n3;n=\"v\"\r\n"
      "abc\r\n0\r\nTrailer: t\r\n\r\n",
      "POST /x HTTP/1.0\r\nExpect: 100-continue\r\nConnection: keep-alive, x\r\nContent-Length: "
      "3\r\n\r\nabc"};
  static const std::string odd("\r\n\0:;,= \t\"0fF\x80\xff", 15);
  std::string text = seeds[random() % seeds.size()];
  for (auto changes = random() % 4 + 1; changes > 0 && !text.empty(); --changes) {
    const std::size_t at = random() % text.size();
    const char c = odd[random() % odd.size()];
    switch (random() % 4) {
      case 0:
        text[at] = c;
        break;
      case 1:
        text.erase(at, random() % 8 + 1);
        break;
      case 2:
        text.insert(at, text.substr(at, random() % 40));
        break;
      default:
        text.insert(at, 1, c);
        break;
    }
  }
  return text;
}

TEST(Http, BrokenRequestsBreakNothing) {
  const char* rounds = std::getenv("FUZZ_ROUNDS");
  Serving server(options_for_tests(), echo);
  std::mt19937 random(1);
  for (int left = rounds ? std::atoi(rounds) : 2000; left > 0; --left) {
    const std::string text = mutated(random);
    RawClient client(server.url());
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t count = random() % 3 == 0 ? random() % 20 + 1 : text.size();
      if (!client.send(text.substr(at, count))) break;
      at += count;
    }
    client.half_close();
    ASSERT_TRUE(client.is_closed_within(30s)) << testing::PrintToString(text);
  }
  EXPECT_EQ(test::request(server.url(), "GET", "/").status, 200);
}

// Threads that reply, clients that come and go, and a server that ends among them.
TEST(Http, EndsAmidTraffic) {
  for (int round = 0; round < 5; ++round) {
    auto server = std::make_unique<Serving>(options_for_tests(),
                                            [](HttpRequest, std::shared_ptr<Reply> reply) {
                                              std::thread([reply = std::move(reply)] {
                                                reply->begin({.body = "a"});
                                                for (int i = 0; i < 20; ++i)
                                                  reply->write(std::string(1000, 'b'));
                                                reply->end();
                                              }).detach();
                                            });
    std::vector<std::thread> clients;
    std::atomic<bool> over{false};
    for (int i = 0; i < 4; ++i) {
      clients.emplace_back([&, url = server->url()] {
        for (int k = 0; !over; ++k) {
          try {
            RawClient client(url);
            client.send(test::request_text("GET", "/"));
            if (k % 3 != 0) client.read_response(2s);
          } catch (const std::system_error&) {
            return;
          }
        }
      });
    }
    std::this_thread::sleep_for(100ms);
    server = nullptr;
    over = true;
    for (std::thread& client : clients) client.join();
  }
}

}  // namespace
}  // namespace heddle::server
