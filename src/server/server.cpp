#include "server/server.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "heddle/grammar.h"
#include "server/app.h"
#include "server/workers.h"

namespace heddle::server {

namespace {

enum class Where { loop, worker };
enum class Needs { nothing, key };  // an API key, if there are any

struct Route {
  std::string_view method, path;  // a path that ends with a slash has more behind it
  Where where;
  Needs needs;
  Answer answer;
};

constexpr std::array kRoutes{
    Route{"POST", "/v1/chat/completions", Where::worker, Needs::key, chat_completions},
    Route{"POST", "/v1/completions", Where::worker, Needs::key, completions},
    Route{"POST", "/v1/embeddings", Where::worker, Needs::key, embeddings},
    Route{"GET", "/v1/models", Where::loop, Needs::key, models},
    Route{"GET", "/v1/models/", Where::loop, Needs::key, model},
    Route{"POST", "/tokenize", Where::worker, Needs::key, tokenize},
    Route{"POST", "/detokenize", Where::worker, Needs::key, detokenize},
    Route{"GET", "/health", Where::loop, Needs::nothing, health},
    Route{"GET", "/metrics", Where::loop, Needs::key, metrics},
    Route{"GET", "/trace/live", Where::loop, Needs::key, trace_live},
};
constexpr Route kPage{"GET", "/", Where::loop, Needs::nothing, page};

bool matches(const Route& route, std::string_view path) {
  const bool is_prefix = route.path.ends_with('/');
  return is_prefix ? path.starts_with(route.path) && path.size() > route.path.size()
                   : path == route.path;
}

const Route* find_route(const std::string& path) {
  for (const Route& route : kRoutes) {
    if (matches(route, path)) return &route;
  }
  return is_page_file(path) ? &kPage : nullptr;
}

const Route& route_of(const HttpRequest& request) {
  const Route* route = find_route(request.path);
  if (!route)
    throw ApiError(404, fmt::format("there is nothing at {} {}", request.method, request.path));
  if (request.method == route->method || (request.method == "HEAD" && route->method == "GET"))
    return *route;
  ApiError error(405, fmt::format("{} takes {} only", request.path, route->method));
  error.allow = route->method == "GET" ? "GET, HEAD" : std::string(route->method);
  throw error;
}

/// Without a hint of how much of it was right in how long it takes.
bool same_secret(std::string_view given, std::string_view wanted) {
  unsigned difference = given.size() == wanted.size() ? 0 : 1;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const char c = given.empty() ? '\0' : given[i % given.size()];
    difference |= static_cast<unsigned char>(c ^ wanted[i]);
  }
  return difference == 0;
}

void check_key(const HttpRequest& request, const std::vector<std::string>& keys) {
  if (keys.empty()) return;
  std::string_view given = request.header("Authorization");
  constexpr std::string_view kScheme = "Bearer ";
  given = given.starts_with(kScheme) ? given.substr(kScheme.size()) : std::string_view();
  bool known = false;
  for (const std::string& key : keys) known |= same_secret(given, key);
  if (known) return;
  ApiError error(401, given.empty() ? "an API key is needed: Authorization: Bearer KEY"
                                    : "this API key is not known");
  error.code = "invalid_api_key";
  throw error;
}

std::string_view host_of(std::string_view authority) {
  if (authority.starts_with('[')) return authority.substr(0, authority.find(']') + 1);
  return authority.substr(0, authority.find(':'));
}

bool is_this_machine(std::string_view host) {
  const bool is_address =
      host.starts_with('[') || host.find_first_not_of("0123456789.") == std::string_view::npos;
  return is_address || host == "localhost" || host.ends_with(".localhost");
}

/// Keeps other sites' pages, in a browser on this machine, from using a server that asks for no
/// key: by requests of their own (Origin), or by a name of theirs that points here (Host).
void check_site(const HttpRequest& request, bool loopback, bool has_keys) {
  const std::string_view host = request.header("Host"), origin = request.header("Origin");
  if (loopback && !has_keys && !host.empty() && !is_this_machine(host_of(host)))
    throw ApiError(403, fmt::format("this server answers to localhost and addresses only, not to "
                                    "'{}'; with an API key it answers to any name",
                                    host));
  const std::size_t scheme = origin.find("://");
  const std::string_view from =
      scheme == std::string_view::npos ? origin : origin.substr(scheme + 3);
  if (!origin.empty() && from != host)
    throw ApiError(403, fmt::format("pages from {} may not use this server", origin));
}

/// JSON in a body that says it is something else is a mistake, or another site's form.
void check_type(const HttpRequest& request) {
  const std::string_view whole = request.header("Content-Type");
  std::string type(whole.substr(0, whole.find(';')));
  while (type.ends_with(' ')) type.pop_back();
  std::ranges::transform(type, type.begin(), [](unsigned char c) { return std::tolower(c); });
  if (type.empty() || type == "application/json") return;
  throw ApiError(415, fmt::format("the body is {}; expected Content-Type: application/json", type));
}

/// Counts how requests are answered.
class CountedReply : public Reply {
 public:
  CountedReply(std::shared_ptr<Reply> reply, ReplyCounts& counts, std::string route)
      : reply_(std::move(reply)), counts_(counts), route_(std::move(route)) {}

  void send(HttpResponse response) override {
    counts_.add(route_, response.status);
    reply_->send(std::move(response));
  }
  void begin(HttpResponse head) override {
    counts_.add(route_, head.status);
    reply_->begin(std::move(head));
  }
  void write(std::string data) override { reply_->write(std::move(data)); }
  void end() override { reply_->end(); }
  std::size_t unsent() const override { return reply_->unsent(); }
  void post(std::function<void()> task) override { reply_->post(std::move(task)); }
  void on_gone(std::function<void()> gone) override { reply_->on_gone(std::move(gone)); }

 private:
  std::shared_ptr<Reply> reply_;
  ReplyCounts& counts_;
  std::string route_;
};

std::optional<std::string> chosen_template(const llm::Model& model, const ServerOptions& options) {
  if (options.chat_template) return options.chat_template;
  const auto found = model.file().metadata().find_string("tokenizer.chat_template");
  return found ? std::optional<std::string>(*found) : std::nullopt;
}

/// A model whose own template cannot be read still completes texts.
ChatPrompt make_prompt(const std::shared_ptr<const llm::Model>& model,
                       const ServerOptions& options) {
  const auto source = chosen_template(*model, options);
  try {
    return {model, source};
  } catch (const Error& error) {
    if (options.chat_template) throw;
    log(LogLevel::error, fmt::format("the model's chat template cannot be used: {}", error.what()));
    return {model, std::nullopt};
  }
}

}  // namespace

void EndlessReplies::add(const std::shared_ptr<Reply>& reply) {
  const std::lock_guard lock(mutex_);
  std::erase_if(replies_, [](const auto& one) { return one.expired(); });
  replies_.push_back(reply);
}

void EndlessReplies::end_all() {
  const std::lock_guard lock(mutex_);
  for (const auto& one : replies_) {
    if (const auto reply = one.lock()) reply->end();
  }
}

struct Server::Impl {
  App app;
  Workers workers;
  std::unique_ptr<HttpServer> http;

  Impl(std::shared_ptr<const llm::Model> model, ServerOptions options)
      : app{.options = options,
            .model = model,
            .prompt = make_prompt(model, options),
            .has_template = chosen_template(*model, options).has_value(),
            .engine = llm::Engine(model, options.engine)},
        workers(options.workers) {
    HttpOptions http_options = options.http;
    http_options.refusal = [](int status, const std::string& message) {
      return error_response(ApiError(status, message));
    };
    app.http_counts = [this] { return http->counts(); };
    http = std::make_unique<HttpServer>(http_options,
                                        [this](HttpRequest request, std::shared_ptr<Reply> reply) {
                                          handle(std::move(request), std::move(reply));
                                        });
    http->start();  // now that its handler finds it
  }

  ~Impl() { http->stop(); }

  void handle(HttpRequest request, std::shared_ptr<Reply> reply) {
    const Route* named = find_route(request.path);
    auto counted = std::make_shared<CountedReply>(std::move(reply), app.counts,
                                                  std::string(named ? named->path : "other"));
    attempt(counted, [&] {
      const Route& route = admit(request);
      Call call{std::move(request), counted};
      if (route.where == Where::loop) return route.answer(app, std::move(call));
      workers.run([this, &route, waiting = std::move(call)]() mutable {
        const std::shared_ptr<Reply> to = waiting.reply;
        attempt(to, [&] { route.answer(app, std::move(waiting)); });
      });
    });
  }

  /// The request's route, if it may be answered.
  const Route& admit(const HttpRequest& request) {
    const bool has_keys = !app.options.api_keys.empty();
    check_site(request, http->is_loopback(), has_keys);
    const Route& route = route_of(request);
    if (route.needs == Needs::key) check_key(request, app.options.api_keys);
    if (route.method == "POST") check_type(request);
    if (route.where == Where::worker && app.draining) {
      ApiError error(503, "the server is shutting down");
      error.retry_after = 5;
      throw error;
    }
    return route;
  }

  template <class Task>
  static void attempt(const std::shared_ptr<Reply>& reply, Task task) {
    try {
      task();
    } catch (...) {
      reply->send(error_response(current_api_error()));
    }
  }
};

Server::Server(std::shared_ptr<const llm::Model> model, ServerOptions options)
    : impl_(std::make_unique<Impl>(std::move(model), std::move(options))) {}

Server::~Server() = default;

std::string Server::url() const {
  return impl_->http->url();
}

bool Server::is_loopback() const {
  return impl_->http->is_loopback();
}

bool Server::has_chat_template() const {
  return impl_->app.has_template;
}

bool Server::drain(std::chrono::milliseconds most) {
  impl_->app.draining = true;
  impl_->http->drain();
  impl_->app.endless.end_all();
  return impl_->http->wait_idle(most);
}

llm::EngineStats Server::stats() const {
  return impl_->app.engine.stats();
}

HttpCounts Server::http_counts() const {
  return impl_->http->counts();
}

}  // namespace heddle::server
