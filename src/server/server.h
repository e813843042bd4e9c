// The OpenAI-compatible server: a model's engine behind HTTP. docs/server.md has routes and fields.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heddle/engine.h"
#include "server/http.h"

namespace heddle::server {

struct ServerOptions {
  HttpOptions http;  // its `refusal` is the server's own
  llm::EngineOptions engine;
  std::string model_id;                      // what clients call the model
  std::optional<std::string> chat_template;  // none: the model's own, if it has one
  std::vector<std::string> api_keys;         // none: everybody may
  int workers = 2;  // threads that read requests: JSON, templates, tokens, grammars
};

/// Serves from its construction to its end. Thread-safe.
class Server {
 public:
  /// Throws what Engine's and HttpServer's constructors throw, and invalid_argument for a chat
  /// template that is none.
  Server(std::shared_ptr<const llm::Model> model, ServerOptions options);
  /// Ends all connections at once.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::string url() const;
  bool is_loopback() const;
  bool has_chat_template() const;
  /// Refuses new requests with status 503, and waits until all others have their reply, but no
  /// longer than `most`. Says whether they have.
  bool drain(std::chrono::milliseconds most);

  llm::EngineStats stats() const;
  HttpCounts http_counts() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace heddle::server
