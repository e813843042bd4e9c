// HTTP/1.1 over TCP: connections, requests and replies, and nothing of what they say.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::server {

struct Header {
  std::string name, value;
};

struct HttpRequest {
  std::string method;
  std::string path;   // decoded, without the query
  std::string query;  // as it came, without the question mark
  std::vector<Header> headers;
  std::string body;

  /// The first header of that name (in whatever case), or nothing.
  std::string_view header(std::string_view name) const noexcept;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<Header> headers;  // beside those that say how the body comes
  std::string body;
};

/// The reply to one request: either `send`, or `begin`, any number of `write` and `end`. Dropping
/// it unfinished is a fault: the client gets status 500, or a stream that breaks off. Thread-safe;
/// calls from one thread take effect in their order, and those after the end, or after the client
/// has gone, do nothing.
class Reply {
 public:
  virtual ~Reply() = default;
  virtual void send(HttpResponse response) = 0;
  virtual void begin(HttpResponse head) = 0;
  virtual void write(std::string data) = 0;
  virtual void end() = 0;
  /// Bytes of what was written that the client has not taken yet.
  virtual std::size_t unsent() const = 0;
  /// Runs `task` on the server's thread, after what was asked of this reply before. Dropped if the
  /// server has ended.
  virtual void post(std::function<void()> task) = 0;
  /// `gone` is called, on the server's thread, once, when the client goes before the reply's end:
  /// at once if it has. A client that closes its sending side counts as gone. Destroyed when the
  /// reply ends.
  virtual void on_gone(std::function<void()> gone) = 0;
};

/// Called on the server's thread, which serves everybody: what takes long belongs elsewhere.
using Handler = std::function<void(HttpRequest, std::shared_ptr<Reply>)>;

struct HttpLimits {
  std::size_t header_bytes = std::size_t{16} << 10;  // beyond: 431
  std::size_t body_bytes = std::size_t{8} << 20;     // beyond: 413
  std::size_t connections = 256;                     // beyond: 503
  /// Of a stream that its client does not read. Beyond, the connection is closed.
  std::size_t unsent_bytes = std::size_t{4} << 20;
  /// From a request's first byte to its last. Beyond: 408.
  std::chrono::milliseconds request_time{60'000};
  /// For a client to take 64 KiB. Beyond, the connection is closed.
  std::chrono::milliseconds write_time{30'000};
  /// Until the first byte of a connection's first or next request.
  std::chrono::milliseconds idle_time{75'000};
};

struct HttpOptions {
  std::string host = "127.0.0.1";  // a name or an address
  std::uint16_t port = 0;          // 0: one that is free
  HttpLimits limits;
  /// The response to what never becomes a request.
  std::function<HttpResponse(int status, const std::string& message)> refusal;
};

struct HttpCounts {
  std::size_t open = 0;         // connections
  std::uint64_t accepted = 0;   // connections, since the start
  std::uint64_t refused = 0;    // connections beyond the limit
  std::uint64_t malformed = 0;  // requests that were refused before they were whole
  std::uint64_t vanished = 0;   // clients that went before their reply's end, or did not take it
};

/// Listens, on a thread of its own that serves all connections. Thread-safe, but for beginning and
/// ending.
class HttpServer {
 public:
  /// Takes the address; clients wait until `start`. Throws Error(io) saying why it cannot be had.
  HttpServer(const HttpOptions& options, Handler handler);
  /// stop().
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  void start();
  std::string url() const;  // "http://127.0.0.1:8080"
  bool is_loopback() const;
  HttpCounts counts() const;
  /// From now on, connections are closed after their reply, and those without a request at once.
  void drain();
  /// Waits until no request is without its whole reply, but no longer than `most`. Says whether
  /// that is so.
  bool wait_idle(std::chrono::milliseconds most);
  /// Closes everything. Returns when no handler runs any more.
  void stop();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace heddle::server
