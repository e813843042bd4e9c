// A server over the bundled model, and requests to it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "server/raw_client.h"
#include "server/server.h"

namespace heddle::test {

using Json = nlohmann::ordered_json;

/// ChatML with tools in Hermes' form.
extern const char* const kToolTemplate;
/// Tools in Llama 3's form.
extern const char* const kLlamaToolTemplate;

server::ServerOptions server_options();

class TestServer {
 public:
  explicit TestServer(const std::function<void(server::ServerOptions&)>& change = nullptr);

  std::string url() const { return server_->url(); }
  server::Server& server() { return *server_; }

  RawResponse post(const std::string& path, const Json& body,
                   const std::string& more_headers = "") const;
  /// The JSON of a reply whose status must be this.
  Json ask(const std::string& path, const Json& body, int status = 200) const;
  Json get(const std::string& path, int status = 200) const;

 private:
  std::unique_ptr<server::Server> server_;
};

/// The data of each event of a stream.
std::vector<std::string> events_of(const std::string& body);
/// Those that are JSON; fails unless [DONE] comes last.
std::vector<Json> chunks_of(const RawResponse& response);

/// A body that asks for a story, always the same one.
Json chat_body(const std::string& text, int max_tokens = 24);
Json completion_body(const Json& prompt, int max_tokens = 24);
/// The error's message, after a look at its form.
std::string error_message(const Json& reply);

template <class Condition>
bool comes_true(Condition condition, std::chrono::milliseconds limit = std::chrono::seconds(60)) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace heddle::test
