#include "server/test_server.h"

#include <gtest/gtest.h>

namespace heddle::test {

const char* const kToolTemplate =
    "{%- if tools %}<|im_start|>system\nTools:{% for tool in tools %}\n{{ tool | tojson }}{% "
    "endfor "
    "%}\nCall them so: <tool_call>{\"name\": ..., \"arguments\": ...}</tool_call><|im_end|>\n{% "
    "endif %}"
    "{%- for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}"
    "{%- for call in message.tool_calls or [] %}<tool_call>\n{\"name\": \"{{ call.function.name "
    "}}\", \"arguments\": {{ call.function.arguments | tojson }}}\n</tool_call>{% endfor %}"
    "<|im_end|>\n{% endfor %}"
    "{%- if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

const char* const kLlamaToolTemplate =
    "{%- for tool in tools or [] %}{{ tool | tojson }}\n{% endfor %}"
    "Respond in the format {\"name\": function name, \"parameters\": dictionary of argument name "
    "and its value}.\n"
    "{%- for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content "
    "}}<|im_end|>\n{% endfor %}<|im_start|>assistant\n";

server::ServerOptions server_options() {
  server::ServerOptions options;
  options.engine.context.n_ctx = 512;
  options.engine.context.threads = 1;
  options.engine.n_parallel = 4;
  options.engine.max_queue = 16;
  options.model_id = "fable";
  return options;
}

TestServer::TestServer(const std::function<void(server::ServerOptions&)>& change) {
  server::ServerOptions options = server_options();
  if (change) change(options);
  server_ = std::make_unique<server::Server>(llm::Model::bundled(), std::move(options));
}

RawResponse TestServer::post(const std::string& path, const Json& body,
                             const std::string& more_headers) const {
  return request(url(), "POST", path, body.dump(), more_headers, std::chrono::seconds(120));
}

Json TestServer::ask(const std::string& path, const Json& body, int status) const {
  const RawResponse response = post(path, body);
  EXPECT_EQ(response.status, status) << path << " " << body.dump() << "\n" << response.body;
  EXPECT_EQ(response.headers.at("content-type"), "application/json");
  return Json::parse(response.body);
}

Json TestServer::get(const std::string& path, int status) const {
  const RawResponse response = request(url(), "GET", path);
  EXPECT_EQ(response.status, status) << path << "\n" << response.body;
  return Json::parse(response.body);
}

std::vector<std::string> events_of(const std::string& body) {
  std::vector<std::string> events;
  for (std::size_t at = 0; at < body.size();) {
    const std::size_t end = body.find("\n\n", at);
    EXPECT_NE(end, std::string::npos) << "an event without an end";
    if (end == std::string::npos) break;
    const std::string event = body.substr(at, end - at);
    if (event.starts_with("data: ")) events.push_back(event.substr(6));
    at = end + 2;
  }
  return events;
}

std::vector<Json> chunks_of(const RawResponse& response) {
  EXPECT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(response.headers.at("content-type"), "text/event-stream");
  EXPECT_TRUE(response.whole);
  std::vector<std::string> events = events_of(response.body);
  EXPECT_FALSE(events.empty());
  if (events.empty()) return {};
  EXPECT_EQ(events.back(), "[DONE]");
  events.pop_back();
  std::vector<Json> chunks;
  for (const std::string& event : events) chunks.push_back(Json::parse(event));
  return chunks;
}

Json chat_body(const std::string& text, int max_tokens) {
  return {{"model", "fable"},
          {"messages", Json::array({{{"role", "user"}, {"content", text}}})},
          {"temperature", 0},
          {"max_tokens", max_tokens}};
}

Json completion_body(const Json& prompt, int max_tokens) {
  return {{"model", "fable"}, {"prompt", prompt}, {"temperature", 0}, {"max_tokens", max_tokens}};
}

std::string error_message(const Json& reply) {
  EXPECT_TRUE(reply.contains("error")) << reply.dump();
  for (const char* name : {"message", "type", "param", "code"})
    EXPECT_TRUE(reply["error"].contains(name)) << reply.dump();
  return reply["error"]["message"];
}

}  // namespace heddle::test
