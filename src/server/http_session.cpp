#include "server/http_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <boost/beast/http/status.hpp>
#include <ctime>
#include <utility>

#include "base/log.h"

namespace heddle::server {

namespace http = boost::beast::http;

namespace {

using namespace std::chrono_literals;

/// How long to let a client read a last reply while what it still sends is thrown away. Closing a
/// socket with unread input would reset the connection, and the reply might never be seen.
constexpr auto kLinger = 2s;
/// Sent at once, so that the time for it bounds how slow a reader may be.
constexpr std::size_t kSlice = std::size_t{64} << 10;
/// What a client may send ahead of its reply. As long as we read on, we see when it hangs up.
constexpr std::size_t kMostAhead = std::size_t{64} << 10;

std::string http_date() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 64> text;
  const std::size_t size =
      std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &utc);
  return {text.data(), size};
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// "%2F" and its like become bytes; what only looks like them stays.
std::string percent_decoded(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escaped = text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 &&
                         hex_digit(text[i + 2]) >= 0;
    if (!escaped) {
      result += text[i];
      continue;
    }
    result += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
    i += 2;
  }
  return result;
}

/// The path and query of a request's target, which proxies send with scheme and host before it.
std::string_view without_origin(std::string_view target) {
  const std::size_t scheme = target.find("://");
  if (target.starts_with('/') || scheme == std::string_view::npos) return target;
  const std::size_t path = target.find('/', scheme + 3);
  return path == std::string_view::npos ? "/" : target.substr(path);
}

bool same_name(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

int status_of(error_code error) {
  if (error == http::error::header_limit) return 431;
  if (error == http::error::body_limit) return 413;
  if (error == http::error::bad_version) return 505;
  return 400;
}

class SessionReply : public Reply {
 public:
  SessionReply(std::shared_ptr<Session> session, std::shared_ptr<Loop> loop, std::uint64_t id)
      : session_(std::move(session)), loop_(std::move(loop)), id_(id) {}
  ~SessionReply() override {
    loop_->post([session = std::move(session_), id = id_] { session->drop(id); });
  }
  void send(HttpResponse response) override {
    loop_->post(
        [s = session_, id = id_, r = std::move(response)]() mutable { s->send(id, std::move(r)); });
  }
  void begin(HttpResponse head) override {
    loop_->post(
        [s = session_, id = id_, h = std::move(head)]() mutable { s->begin(id, std::move(h)); });
  }
  void write(std::string data) override {
    session_->unsent += data.size();
    loop_->post(
        [s = session_, id = id_, d = std::move(data)]() mutable { s->write(id, std::move(d)); });
  }
  void end() override {
    loop_->post([s = session_, id = id_] { s->end(id); });
  }
  std::size_t unsent() const override { return session_->unsent; }
  void post(std::function<void()> task) override { loop_->post(std::move(task)); }
  void on_gone(std::function<void()> gone) override {
    loop_->post(
        [s = session_, id = id_, g = std::move(gone)]() mutable { s->on_gone(id, std::move(g)); });
  }

 private:
  std::shared_ptr<Session> session_;
  std::shared_ptr<Loop> loop_;
  std::uint64_t id_;
};

}  // namespace

std::string_view HttpRequest::header(std::string_view name) const noexcept {
  for (const Header& header : headers) {
    if (same_name(header.name, name)) return header.value;
  }
  return {};
}

void Loop::post(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  asio::post(io, std::move(task));
}

void Loop::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

void SessionShared::add_busy(int change) {
  const std::lock_guard lock(mutex_);
  busy_ += change;
  if (busy_ == 0) idle_.notify_all();
}

bool SessionShared::wait_idle(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  return idle_.wait_for(lock, most, [this] { return busy_ == 0; });
}

Session::Session(std::shared_ptr<Loop> loop, std::shared_ptr<SessionShared> shared,
                 asio::ip::tcp::socket socket, std::function<void(Session*)> on_closed)
    : loop_(std::move(loop)),
      shared_(std::move(shared)),
      socket_(std::move(socket)),
      reading_timer_(loop_->io),
      writing_timer_(loop_->io),
      on_closed_(std::move(on_closed)) {
  ++shared_->open;
}

void Session::start() {
  begin_request();
  read();
}

void Session::start_refused() {
  ++shared_->refused;
  begin_handling();
  keep_alive_ = false;
  HttpResponse response = shared_->options.refusal(
      503, fmt::format("there are {} connections already", shared_->options.limits.connections));
  response.headers.push_back({"Retry-After", "1"});
  send(request_, std::move(response));
  read();
}

void Session::close_if_idle() {
  const bool begun = !input_.empty() || (parser_ && parser_->got_some());
  if (state_ == State::receiving && !begun) abort();
}

void Session::abort() {
  if (state_ == State::closed) return;
  const bool unfinished = state_ == State::handling && !finished_;
  state_ = State::closed;
  reading_timer_.cancel();
  writing_timer_.cancel();
  error_code ignored;
  socket_.close(ignored);
  if (unfinished) client_gone();
  finished_ = true;
  set_busy(false);
  --shared_->open;
  on_closed_(this);
}

void Session::begin_request() {
  if (state_ == State::closed) return;
  state_ = State::receiving;
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(shared_->options.limits.header_bytes));
  parser_->body_limit(shared_->options.limits.body_bytes);
  parser_->eager(false);
  header_seen_ = false;
  const HttpLimits& limits = shared_->options.limits;
  arm_reading(input_.empty() ? limits.idle_time : limits.request_time);
  if (!input_.empty()) parse();
  if (state_ == State::receiving && input_ended_) on_input_end(asio::error::eof);
  const bool is_first = request_ == 0;  // which may still ask how the server is
  if (shared_->draining && !is_first) close_if_idle();
}

void Session::read() {
  socket_.async_read_some(asio::buffer(chunk_),
                          [self = shared_from_this()](error_code error, std::size_t count) {
                            self->on_read(error, count);
                          });
}

void Session::on_read(error_code error, std::size_t count) {
  if (state_ == State::closed) return;
  if (error) return on_input_end(error);
  if (state_ != State::lingering) {
    const bool first = input_.empty() && state_ == State::receiving && !parser_->got_some();
    if (first) arm_reading(shared_->options.limits.request_time);
    input_.append(chunk_.data(), count);
    if (state_ == State::receiving) parse();
    if (state_ == State::handling && input_.size() > kMostAhead) return abort();
  }
  if (state_ != State::closed) read();
}

void Session::on_input_end(error_code error) {
  input_ended_ = true;
  if (error != asio::error::eof || state_ == State::lingering) return abort();
  if (state_ == State::handling) {
    keep_alive_ = false;
    if (!finished_) client_gone();
    return;
  }
  if (!parser_->got_some()) return abort();
  refuse(400, "the connection was closed in the middle of the request");
}

void Session::parse() {
  std::size_t used = 0;
  error_code error;
  while (used < input_.size() && !parser_->is_done() && !error) {
    used += parser_->put(asio::buffer(input_.data() + used, input_.size() - used), error);
    if (parser_->is_header_done() && !header_seen_ && !error) {
      header_seen_ = true;
      on_header();
      if (state_ != State::receiving) return;
    }
  }
  input_.erase(0, used);
  if (error && error != http::error::need_more) return refuse(error);
  if (parser_->is_done()) return handle();
  // The parser wants lines whole: in a header, whose size it limits itself, and between chunks.
  if (input_.size() > shared_->options.limits.header_bytes)
    refuse(400, "a line between the body's chunks is too long");
}

void Session::on_header() {
  const auto& fields = parser_->get();
  const boost::beast::string_view coding = fields[http::field::transfer_encoding];
  if (!coding.empty() && !boost::beast::iequals(coding, "chunked"))
    return refuse(501, fmt::format("the transfer coding '{}' is not known; expected chunked",
                                   std::string_view(coding.data(), coding.size())));
  parser_->eager(true);
  if (boost::beast::iequals(fields[http::field::expect], "100-continue") && !parser_->is_done()) {
    waiting_ += "HTTP/1.1 100 Continue\r\n\r\n";
    flush();
  }
}

HttpRequest Session::take_request() {
  auto message = parser_->release();
  HttpRequest request;
  request.method = std::string(message.method_string());
  const std::string_view whole(message.target().data(), message.target().size());
  const std::string_view target = without_origin(whole);
  const std::size_t mark = std::min(target.find('?'), target.size());
  request.path = percent_decoded(target.substr(0, mark));
  if (mark < target.size()) request.query = target.substr(mark + 1);
  for (const auto& field : message)
    request.headers.push_back({std::string(field.name_string()), std::string(field.value())});
  request.body = std::move(message.body());
  return request;
}

void Session::begin_handling() {
  state_ = State::handling;
  reading_timer_.cancel();
  ++request_;
  head_only_ = begun_ = finished_ = gone_ = false;
  set_busy(true);
}

void Session::set_busy(bool busy) {
  if (busy != busy_) shared_->add_busy(busy ? 1 : -1);
  busy_ = busy;
}

void Session::handle() {
  begin_handling();
  keep_alive_ = parser_->keep_alive() && !shared_->draining;
  http_version_ = parser_->get().version();
  HttpRequest request = take_request();
  head_only_ = request.method == "HEAD";
  auto reply = std::make_shared<SessionReply>(shared_from_this(), loop_, request_);
  try {
    shared_->handler(std::move(request), reply);
  } catch (const std::exception& error) {
    log(LogLevel::error, fmt::format("a request's handler failed: {}", error.what()));
  }
}

void Session::refuse(int status, const std::string& message) {
  if (state_ == State::closed) return;
  ++shared_->malformed;
  begin_handling();
  keep_alive_ = false;
  send(request_, shared_->options.refusal(status, message));
}

void Session::refuse(error_code error) {
  const HttpLimits& limits = shared_->options.limits;
  const int status = status_of(error);
  if (status == 413)
    return refuse(status, fmt::format("the body is larger than {} bytes", limits.body_bytes));
  if (status == 431)
    return refuse(status, fmt::format("the header is larger than {} bytes", limits.header_bytes));
  refuse(status, fmt::format("this is no HTTP request: {}", error.message()));
}

bool Session::is_current(std::uint64_t request) const {
  return request == request_ && !finished_ && state_ == State::handling;
}

std::string Session::head(const HttpResponse& response, std::optional<std::size_t> length) const {
  const auto status = http::int_to_status(static_cast<unsigned>(response.status));
  const boost::beast::string_view reason = http::obsolete_reason(status);
  std::string text =
      fmt::format("HTTP/1.1 {} {}\r\nDate: {}\r\nServer: heddle\r\n", response.status,
                  std::string_view(reason.data(), reason.size()), http_date());
  if (!response.content_type.empty())
    text += fmt::format("Content-Type: {}\r\n", response.content_type);
  for (const Header& header : response.headers)
    text += fmt::format("{}: {}\r\n", header.name, header.value);
  if (length)
    text += fmt::format("Content-Length: {}\r\n", *length);
  else if (http_version_ >= 11)
    text += "Transfer-Encoding: chunked\r\n";
  text += fmt::format("Connection: {}\r\n\r\n", keep_alive_ ? "keep-alive" : "close");
  return text;
}

void Session::send(std::uint64_t request, HttpResponse response) {
  if (!is_current(request) || begun_) return;
  waiting_ += head(response, response.body.size());
  if (!head_only_) waiting_ += response.body;
  finish_reply();
}

void Session::begin(std::uint64_t request, HttpResponse response) {
  if (!is_current(request) || begun_) return;
  begun_ = true;
  if (http_version_ < 11) keep_alive_ = false;  // the end of the connection is that of the stream
  waiting_ += head(response, std::nullopt);
  write(request, std::move(response.body));
  flush();
}

void Session::write(std::uint64_t request, std::string data) {
  if (!is_current(request) || !begun_ || data.empty() || head_only_) return;
  if (http_version_ >= 11)
    waiting_ += fmt::format("{:x}\r\n{}\r\n", data.size(), data);
  else
    waiting_ += data;
  if (sending_.size() - sent_ + waiting_.size() > shared_->options.limits.unsent_bytes)
    return abort();
  flush();
}

void Session::end(std::uint64_t request) {
  if (!is_current(request) || !begun_) return;
  if (http_version_ >= 11 && !head_only_) waiting_ += "0\r\n\r\n";
  finish_reply();
}

void Session::on_gone(std::uint64_t request, std::function<void()> gone) {
  if (request != request_) return;
  if (gone_) return gone();
  if (!finished_) on_gone_ = std::move(gone);
}

void Session::drop(std::uint64_t request) {
  if (!is_current(request)) return;
  if (begun_ || input_ended_) return abort();
  send(request, shared_->options.refusal(500, "the request ended without a reply"));
}

void Session::finish_reply() {
  finished_ = true;
  on_gone_ = nullptr;
  flush();
}

void Session::client_gone() {
  if (std::exchange(gone_, true)) return;
  ++shared_->vanished;
  const std::function<void()> gone = std::exchange(on_gone_, nullptr);
  if (gone) gone();
}

void Session::flush() {
  if (writing_ || state_ == State::closed) return;
  if (sent_ == sending_.size()) {
    sent_ = 0;
    sending_.clear();
    sending_.swap(waiting_);
  }
  if (sending_.empty()) return after_flush();
  writing_ = true;
  writing_timer_.expires_after(shared_->options.limits.write_time);
  writing_timer_.async_wait([self = shared_from_this()](error_code error) {
    if (error || self->writing_timer_.expiry() > std::chrono::steady_clock::now()) return;
    if (self->finished_) ++self->shared_->vanished;
    self->abort();
  });
  const std::size_t count = std::min(kSlice, sending_.size() - sent_);
  asio::async_write(socket_, asio::buffer(sending_.data() + sent_, count),
                    [self = shared_from_this(), count](error_code error, std::size_t) {
                      self->sent_ += count;
                      self->on_written(error);
                    });
}

void Session::on_written(error_code error) {
  writing_ = false;
  writing_timer_.cancel();
  // Heads and chunk sizes are in there too: it is an estimate.
  unsent = sending_.size() - sent_ + waiting_.size();
  if (state_ == State::closed) return;
  if (error) return abort();
  flush();
}

void Session::after_flush() {
  if (state_ != State::handling || !finished_) return;
  set_busy(false);
  // Not within the call that ended the reply: requests sent ahead would pile up on the stack.
  if (keep_alive_ && !shared_->draining)
    asio::post(loop_->io, [self = shared_from_this(), request = request_] {
      if (self->state_ == State::handling && self->request_ == request) self->begin_request();
    });
  else
    linger();
}

void Session::linger() {
  state_ = State::lingering;
  if (input_ended_) return abort();
  error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  arm_reading(kLinger);
}

void Session::arm_reading(std::chrono::milliseconds time) {
  reading_timer_.expires_after(time);
  reading_timer_.async_wait([self = shared_from_this()](error_code error) {
    if (!error && self->reading_timer_.expiry() <= std::chrono::steady_clock::now())
      self->on_reading_time();
  });
}

void Session::on_reading_time() {
  if (state_ == State::lingering) return abort();
  if (state_ != State::receiving) return;
  if (input_.empty() && !parser_->got_some()) return abort();
  refuse(408, "the request took too long to arrive");
}

}  // namespace heddle::server
