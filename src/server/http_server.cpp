#include <arpa/inet.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/resource.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <csignal>
#include <set>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "server/http_session.h"

namespace heddle::server {

namespace {

using asio::ip::tcp;
using namespace std::chrono_literals;

/// Connections beyond the limit that are told so; more are closed without a word.
constexpr std::size_t kMostRefused = 64;
/// Between two tries to accept when the process has no descriptors left.
constexpr auto kAcceptPause = 100ms;

tcp::endpoint resolve(asio::io_context& io, const HttpOptions& options) {
  error_code error;
  tcp::resolver resolver(io);
  const auto found =
      resolver.resolve(options.host, std::to_string(options.port),
                       tcp::resolver::passive | tcp::resolver::numeric_service, error);
  require(!error && !found.empty(), ErrorCode::io, "the host '{}' is not known: {}", options.host,
          error.message());
  return found.begin()->endpoint();
}

tcp::acceptor listen(asio::io_context& io, const HttpOptions& options) {
  const tcp::endpoint endpoint = resolve(io, options);
  tcp::acceptor acceptor(io);
  error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  require(!error, ErrorCode::io,
          "cannot listen on port {} of {}: {}; --port names another, and 0 any that is free",
          options.port, options.host, error.message());
  return acceptor;
}

/// A connection takes a descriptor, and the usual limit is 1024.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

/// So that a peer whose machine or network has gone without a word is noticed, within a minute.
void keep_watch(tcp::socket& socket) {
  using KeepIdle = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPIDLE>;
  using KeepInterval = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPINTVL>;
  using KeepCount = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPCNT>;
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  socket.set_option(KeepIdle(30), ignored);
  socket.set_option(KeepInterval(10), ignored);
  socket.set_option(KeepCount(3), ignored);
}

/// Signals are for the thread that waits for them.
void block_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace

struct HttpServer::Impl : std::enable_shared_from_this<HttpServer::Impl> {
  std::shared_ptr<Loop> loop = std::make_shared<Loop>();
  std::shared_ptr<SessionShared> shared = std::make_shared<SessionShared>();
  tcp::acceptor acceptor;
  asio::steady_timer pause;
  asio::executor_work_guard<asio::io_context::executor_type> work;
  std::set<std::shared_ptr<Session>> sessions;  // of the loop's thread
  tcp::endpoint endpoint;
  std::thread thread;

  explicit Impl(const HttpOptions& options)
      : acceptor(listen(loop->io, options)), pause(loop->io), work(loop->io.get_executor()) {
    shared->options = options;
    endpoint = acceptor.local_endpoint();
  }

  void run() {
    thread = std::thread([io = loop] {
      block_signals();
      io->io.run();
    });
  }

  void accept() {
    acceptor.async_accept([self = shared_from_this()](error_code error, tcp::socket socket) {
      if (!self->acceptor.is_open()) return;
      if (error) return self->accept_later(error);
      self->open(std::move(socket));
      self->accept();
    });
  }

  void accept_later(error_code error) {
    log(LogLevel::warn, fmt::format("a connection could not be accepted: {}", error.message()));
    pause.expires_after(kAcceptPause);
    pause.async_wait([self = shared_from_this()](error_code cancelled) {
      if (!cancelled && self->acceptor.is_open()) self->accept();
    });
  }

  void open(tcp::socket socket) {
    const std::size_t most = shared->options.limits.connections, now = shared->open;
    if (now >= most + kMostRefused) {
      ++shared->refused;
      return;
    }
    ++shared->accepted;
    keep_watch(socket);
    auto session = std::make_shared<Session>(
        loop, shared, std::move(socket), [self = std::weak_ptr(shared_from_this())](Session* one) {
          if (const auto impl = self.lock()) impl->sessions.erase(one->shared_from_this());
        });
    sessions.insert(session);
    if (now >= most)
      session->start_refused();
    else
      session->start();
  }

  void close() {
    error_code ignored;
    acceptor.close(ignored);
    pause.cancel();
    const auto all = sessions;  // as those that close leave the set
    for (const auto& session : all) session->abort();
    work.reset();
  }
};

HttpServer::HttpServer(const HttpOptions& options, Handler handler)
    : impl_(std::make_shared<Impl>(options)) {
  raise_descriptor_limit();
  impl_->shared->handler = std::move(handler);
}

void HttpServer::start() {
  impl_->accept();
  impl_->run();
}

HttpServer::~HttpServer() {
  stop();
}

std::string HttpServer::url() const {
  const std::string address = impl_->endpoint.address().to_string();
  const bool is_v6 = impl_->endpoint.address().is_v6();
  return fmt::format("http://{}:{}", is_v6 ? "[" + address + "]" : address, impl_->endpoint.port());
}

bool HttpServer::is_loopback() const {
  return impl_->endpoint.address().is_loopback();
}

HttpCounts HttpServer::counts() const {
  const SessionShared& shared = *impl_->shared;
  return {shared.open, shared.accepted, shared.refused, shared.malformed, shared.vanished};
}

void HttpServer::drain() {
  impl_->shared->draining = true;
  impl_->loop->post([impl = impl_] {
    const auto all = impl->sessions;  // as those that close leave the set
    for (const auto& session : all) session->close_if_idle();
  });
}

bool HttpServer::wait_idle(std::chrono::milliseconds most) {
  return impl_->shared->wait_idle(most);
}

void HttpServer::stop() {
  if (!impl_->thread.joinable()) return;
  impl_->loop->post([impl = impl_] { impl->close(); });
  impl_->loop->close();
  impl_->thread.join();
}

}  // namespace heddle::server
