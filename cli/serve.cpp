// heddle serve: a model behind HTTP, for OpenAI's clients.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <sstream>

#include "base/check.h"
#include "cli/commands.h"
#include "cli/model.h"
#include "cli/output.h"
#include "server/server.h"

namespace heddle::cli {

namespace {

using std::chrono::milliseconds;

/// What the end may take once all replies are over or cut off: the engine's step that goes on, on
/// devices whose waits are bounded.
constexpr unsigned kEndSeconds = 30;

std::atomic<int> signals_seen{0};
std::atomic<int> signal_pipe{-1};

void on_end_signal(int) {
  if (signals_seen.fetch_add(1) > 0) _exit(kOk);
  const int saved = errno;
  [[maybe_unused]] const auto written = write(signal_pipe, "x", 1);
  errno = saved;
}

void on_end_too_long(int) {
  constexpr char kWords[] = "heddle: the end took too long: left at once\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, kWords, sizeof kWords - 1);
  _exit(kFailure);
}

void on(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, nullptr);
}

/// SIGTERM and SIGINT: the first is waited for, a second one ends the process.
class EndSignals {
 public:
  EndSignals() {
    require(pipe2(ends_, O_CLOEXEC) == 0, ErrorCode::io, "no pipe can be made");
    signal_pipe = ends_[1];
    on(SIGTERM, on_end_signal);
    on(SIGINT, on_end_signal);
    on(SIGALRM, on_end_too_long);
  }

  void wait() const {
    char byte;
    while (read(ends_[0], &byte, 1) < 0 && errno == EINTR) {
    }
  }

 private:
  int ends_[2];
};

/// The lines of a file that hold something.
std::vector<std::string> keys_from(const std::string& path) {
  std::vector<std::string> keys;
  std::istringstream lines(read_file(path));
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) keys.push_back(line);
  }
  require(!keys.empty(), ErrorCode::io, "{} has no API key", path);
  return keys;
}

std::string model_id(const ServeArguments& arguments, const llm::Model& model) {
  if (!arguments.alias.empty()) return arguments.alias;
  if (!arguments.model.path.empty())
    return std::filesystem::path(arguments.model.path).stem().string();
  return model.config().name.empty() ? "heddle" : model.config().name;
}

milliseconds seconds(double count) {
  return milliseconds(static_cast<std::int64_t>(count * 1000));
}

server::ServerOptions server_options(const ServeArguments& arguments, const llm::Model& model) {
  server::ServerOptions options;
  options.http.host = arguments.host;
  options.http.port = static_cast<std::uint16_t>(arguments.port);
  options.http.limits.body_bytes = arguments.max_body;
  options.http.limits.connections = arguments.connections;
  options.http.limits.request_time = options.http.limits.write_time = seconds(arguments.timeout);
  options.engine.context = context_options(arguments.model);
  options.engine.n_parallel = arguments.parallel;
  options.engine.max_queue = arguments.queue;
  options.engine.n_kv = arguments.kv_size;
  options.model_id = model_id(arguments, model);
  if (!arguments.chat_template.empty()) options.chat_template = read_file(arguments.chat_template);
  options.api_keys = arguments.api_keys;
  if (!arguments.api_key_file.empty()) {
    for (std::string& key : keys_from(arguments.api_key_file))
      options.api_keys.push_back(std::move(key));
  }
  return options;
}

void warn(const server::Server& server, const server::ServerOptions& options) {
  if (!server.has_chat_template())
    fmt::print(stderr,
               "the model has no chat template: /v1/completions continues plain text, and "
               "--chat-template makes /v1/chat/completions work\n");
  if (!server.is_loopback() && options.api_keys.empty())
    fmt::print(stderr, "anyone who reaches {} may use the model: --api-key asks for a key\n",
               server.url());
}

}  // namespace

int serve(const ServeArguments& arguments) {
  std::signal(SIGPIPE, SIG_IGN);  // a log that nobody reads any more ends no requests
  const std::shared_ptr<const llm::Model> model = open_model(arguments.model.path);
  const server::ServerOptions options = server_options(arguments, *model);
  Watching watching(options.engine.context, arguments.observe, ObserveScope::Of::process);
  auto server = std::make_unique<server::Server>(model, options);
  const EndSignals signals;
  watching.during([&] {
    print_now(fmt::format("listening on {}\n", server->url()));
    warn(*server, options);
    signals.wait();
    fmt::print(stderr,
               "ending when all replies are done, in {} s at most; a second signal ends at "
               "once\n",
               arguments.drain);
    if (!server->drain(seconds(arguments.drain)))
      fmt::print(stderr, "replies were cut off after {} s\n", arguments.drain);
  });
  watching.finish();
  alarm(kEndSeconds);
  server = nullptr;
  return kOk;
}

}  // namespace heddle::cli
