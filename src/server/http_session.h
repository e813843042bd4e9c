// One connection: reads requests, one after the other, and writes their replies.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "server/http.h"

namespace heddle::server {

namespace asio = boost::asio;
using boost::system::error_code;

/// The event loop, which what is posted from other threads may outlive.
class Loop {
 public:
  /// Without the hint that one thread runs it: then its own posts would be overtaken by those that
  /// other threads make later.
  asio::io_context io;

  /// Runs `task` on the loop's thread, after those before it. Drops it once the loop is closed.
  void post(std::function<void()> task);
  /// Takes no more tasks.
  void close();

 private:
  std::mutex mutex_;
  bool closed_ = false;
};

/// What the sessions of a server share.
struct SessionShared {
  HttpOptions options;
  Handler handler;
  std::atomic<bool> draining{false};
  std::atomic<std::size_t> open{0};
  std::atomic<std::uint64_t> accepted{0}, refused{0}, malformed{0}, vanished{0};

  void add_busy(int change);  // requests whose reply has not been taken whole
  bool wait_idle(std::chrono::milliseconds most);

 private:
  std::mutex mutex_;
  std::condition_variable idle_;
  int busy_ = 0;
};

/// All functions are called on the loop's thread.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(std::shared_ptr<Loop> loop, std::shared_ptr<SessionShared> shared,
          asio::ip::tcp::socket socket, std::function<void(Session*)> on_closed);

  void start();
  /// Tells the client that there are too many, and closes.
  void start_refused();
  /// Closes if no request has begun.
  void close_if_idle();
  /// Closes at once; whoever waits for the client learns that it has gone.
  void abort();

  // What replies do; `request` is theirs, and they are ignored if it is not the current one.
  void send(std::uint64_t request, HttpResponse response);
  void begin(std::uint64_t request, HttpResponse head);
  void write(std::uint64_t request, std::string data);
  void end(std::uint64_t request);
  void on_gone(std::uint64_t request, std::function<void()> gone);
  void drop(std::uint64_t request);

  /// Of what replies were given, on its way here included. Thread-safe.
  std::atomic<std::size_t> unsent{0};

 private:
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;
  enum class State { receiving, handling, lingering, closed };

  void begin_request();
  void read();
  void on_read(error_code error, std::size_t count);
  void on_input_end(error_code error);
  void parse();
  void on_header();
  void handle();
  HttpRequest take_request();
  void refuse(int status, const std::string& message);
  void refuse(error_code error);
  bool is_current(std::uint64_t request) const;
  std::string head(const HttpResponse& response, std::optional<std::size_t> length) const;
  void begin_handling();
  void set_busy(bool busy);
  void finish_reply();
  void client_gone();
  void flush();
  void on_written(error_code error);
  void after_flush();
  void linger();
  void arm_reading(std::chrono::milliseconds time);
  void on_reading_time();

  std::shared_ptr<Loop> loop_;
  std::shared_ptr<SessionShared> shared_;
  asio::ip::tcp::socket socket_;
  asio::steady_timer reading_timer_, writing_timer_;
  std::function<void(Session*)> on_closed_;
  State state_ = State::receiving;

  std::array<char, 16384> chunk_;
  std::string input_;  // read, but not parsed yet
  bool input_ended_ = false;
  std::optional<Parser> parser_;
  bool header_seen_ = false;

  std::uint64_t request_ = 0;  // counts them
  unsigned http_version_ = 11;
  bool keep_alive_ = true, head_only_ = false;
  bool begun_ = false, finished_ = true;  // the current reply
  bool busy_ = false;                     // its client has not taken it yet
  bool gone_ = false;                     // its client has gone before its end
  std::function<void()> on_gone_;

  std::string sending_, waiting_;  // being written now, and after it
  std::size_t sent_ = 0;           // of sending_
  bool writing_ = false;
};

}  // namespace heddle::server
