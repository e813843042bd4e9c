// What the handlers of requests share, and who they are.
#pragma once

#include <atomic>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "heddle/engine.h"
#include "server/api_error.h"
#include "server/chat_prompt.h"
#include "server/json.h"
#include "server/server.h"

namespace heddle::server {

/// Replies by route and status.
class ReplyCounts {
 public:
  void add(const std::string& route, int status);
  std::map<std::pair<std::string, int>, std::uint64_t> all() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, std::uint64_t> counts_;
};

/// Replies that have no end of their own.
class EndlessReplies {
 public:
  void add(const std::shared_ptr<Reply>& reply);
  void end_all();

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<Reply>> replies_;
};

struct App {
  ServerOptions options;
  std::shared_ptr<const llm::Model> model;
  ChatPrompt prompt;
  bool has_template;
  llm::Engine engine;
  std::time_t started = std::time(nullptr);
  std::atomic<bool> draining{false};
  ReplyCounts counts;
  EndlessReplies endless;
  std::atomic<int> watchers{0};  // of /trace/live
  std::function<HttpCounts()> http_counts;

  const Tokenizer& tokenizer() const { return model->tokenizer(); }
  std::int64_t n_ctx() const { return engine.options().context.n_ctx; }
};

struct Call {
  HttpRequest request;
  std::shared_ptr<Reply> reply;
};

/// Answers a request, now or later. What it throws is told to the client.
using Answer = void (*)(App& app, Call call);

// On a worker's thread.
void chat_completions(App& app, Call call);
void completions(App& app, Call call);
void embeddings(App& app, Call call);
void tokenize(App& app, Call call);
void detokenize(App& app, Call call);

// On the HTTP server's thread.
void health(App& app, Call call);
void metrics(App& app, Call call);
void models(App& app, Call call);
void model(App& app, Call call);  // /v1/models/{id}
void page(App& app, Call call);   // a file of the page
bool is_page_file(const std::string& path);
void trace_live(App& app, Call call);  // what runs, as it runs

void send_json(Reply& reply, const Json& json);

/// Texts or token lists, one or several, as `prompt` and `input` take them.
struct TokenInput {
  std::vector<TokenId> tokens;
  std::string text;  // of which they were made, or what they say
};
/// Refuses more than `most`, ids outside the vocabulary, texts without a token, and what is longer
/// than the context.
std::vector<TokenInput> read_inputs(const App& app, const Json& value, const std::string& field,
                                    std::size_t most, const EncodeOptions& encode);
std::vector<TokenId> read_token_ids(const App& app, const Json& value, const std::string& field);
/// Refuses a prompt that is longer than the context, with the code context_length_exceeded.
void check_length(const App& app, std::size_t tokens, const std::string& field);

}  // namespace heddle::server
