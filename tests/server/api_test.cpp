// What is refused, and with which words; and the routes beside text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "server/test_server.h"

namespace heddle::test {
namespace {

using testing::HasSubstr;

struct BadField {
  std::string path;  // of what is changed, as a JSON pointer
  Json value;
  std::string param;
};

void expect_refused(const TestServer& server, const std::string& route, const Json& sound,
                    const std::vector<BadField>& fields) {
  server.ask(route, sound);
  for (const BadField& field : fields) {
    Json body = sound;
    body[Json::json_pointer(field.path)] = field.value;
    const Json reply = server.ask(route, body, 400);
    EXPECT_FALSE(error_message(reply).empty());
    EXPECT_EQ(reply["error"]["type"], "invalid_request_error");
    EXPECT_EQ(reply["error"]["param"], field.param) << field.path << " " << field.value << "\n"
                                                    << reply;
  }
}

const std::vector<BadField>& sampling_fields() {
  static const std::vector<BadField> fields{
      {"/temperature", "hot", "temperature"},
      {"/temperature", -0.1, "temperature"},
      {"/temperature", 2.1, "temperature"},
      {"/top_p", 1.1, "top_p"},
      {"/min_p", -1, "min_p"},
      {"/top_k", -1, "top_k"},
      {"/top_k", 1.5, "top_k"},
      {"/max_tokens", 0, "max_tokens"},
      {"/max_tokens", -1, "max_tokens"},
      {"/max_tokens", "many", "max_tokens"},
      {"/max_tokens", 1e300, "max_tokens"},
      {"/max_completion_tokens", 18446744073709551615ull, "max_completion_tokens"},
      {"/n", 0, "n"},
      {"/n", 129, "n"},
      {"/seed", 1.5, "seed"},
      {"/seed", "x", "seed"},
      {"/stop", 1, "stop"},
      {"/stop", "", "stop"},
      {"/stop", Json::array({"a", 1}), "stop"},
      {"/stop", Json(std::vector<std::string>(17, "x")), "stop"},
      {"/presence_penalty", 3, "presence_penalty"},
      {"/frequency_penalty", -3, "frequency_penalty"},
      {"/repeat_penalty", 0, "repeat_penalty"},
      {"/logit_bias", Json::array(), "logit_bias"},
      {"/logit_bias", {{"907", 1}}, "logit_bias"},
      {"/logit_bias", {{"-1", 1}}, "logit_bias"},
      {"/logit_bias", {{"fox", 1}}, "logit_bias"},
      {"/logit_bias", {{"1", 101}}, "logit_bias.1"},
      {"/stream", 1, "stream"},
      {"/stream_options", {{"include_usage", true}}, "stream_options"},
      {"/grammar", "root ::= (", "grammar"},
      {"/grammar", 1, "grammar"},
      {"/response_format", "json", "response_format"},
      {"/response_format", {{"type", "yaml"}}, "response_format.type"},
      {"/response_format", {{"type", "json_schema"}}, "response_format.json_schema"},
      {"/response_format",
       {{"type", "json_schema"}, {"json_schema", {{"name", "a"}, {"schema", {{"type", "thing"}}}}}},
       "response_format"},
      {"/model", 1, "model"},
      {"/max_token", 3, "max_token"},
  };
  return fields;
}

TEST(Refusals, NameTheFieldOfAChatRequest) {
  const TestServer server;
  const Json sound = chat_body("Hi", 1);
  expect_refused(server, "/v1/chat/completions", sound, sampling_fields());
  expect_refused(server, "/v1/chat/completions", sound,
                 {{"/messages", "Hi", "messages"},
                  {"/messages", Json::array(), "messages"},
                  {"/messages", Json::array({"Hi"}), "messages[0]"},
                  {"/messages/0/role", "robot", "messages[0].role"},
                  {"/messages/0/content", 1, "messages[0].content"},
                  {"/messages/0/content", nullptr, "messages[0].content"},
                  {"/messages/0/extra", 1, "messages[0].extra"},
                  {"/logprobs", 1, "logprobs"},
                  {"/top_logprobs", 2, "top_logprobs"},
                  {"/functions", Json::array(), "functions"},
                  {"/audio", Json::object(), "audio"},
                  {"/modalities", {"audio"}, "modalities"},
                  {"/tools", Json::object(), "tools"},
                  {"/tools", Json::array({{{"type", "retrieval"}}}), "tools[0].type"},
                  {"/tools", Json::array({{{"type", "function"}, {"function", {{"name", ""}}}}}),
                   "tools[0].function.name"},
                  {"/tool_choice", "sometimes", "tool_choice"},
                  {"/tool_choice", "required", "tool_choice"},
                  {"/chat_template_kwargs", {{"messages", 1}}, "chat_template_kwargs"}});
}

TEST(Refusals, NameTheFieldOfACompletionRequest) {
  const TestServer server;
  const Json sound = completion_body("Hi", 1);
  expect_refused(server, "/v1/completions", sound, sampling_fields());
  expect_refused(server, "/v1/completions", sound,
                 {{"/prompt", nullptr, "prompt"},
                  {"/prompt", 1, "prompt"},
                  {"/prompt", "", "prompt"},
                  {"/prompt", Json::array(), "prompt"},
                  {"/prompt", {1, "a"}, "prompt"},
                  {"/prompt", {"a", 1}, "prompt[1]"},
                  {"/prompt", {907}, "prompt"},
                  {"/prompt", {-1}, "prompt"},
                  {"/prompt", Json::array({Json::array({1}), Json::array()}), "prompt[1]"},
                  {"/logprobs", 6, "logprobs"},
                  {"/logprobs", true, "logprobs"},
                  {"/best_of", 2, "best_of"},
                  {"/suffix", "x", "suffix"}});
}

TEST(Refusals, FieldsOfNoEffectAreTaken) {
  const TestServer server;
  Json body = chat_body("Hi", 1);
  for (const char* name : {"user", "store", "metadata", "service_tier", "prediction"})
    body[name] = "x";
  body["modalities"] = {"text"};
  for (const char* name : {"stop", "seed", "tools", "response_format", "stream_options", "unknown"})
    body[name] = nullptr;
  body["model"] = "gpt-4o";
  EXPECT_EQ(server.ask("/v1/chat/completions", body)["model"], "fable");
}

TEST(Refusals, ABodyThatIsNoJson) {
  const TestServer server;
  const std::string deep(100'000, '[');
  std::string wide = "{\"a\":0";
  for (int i = 0; i < 2000; ++i) wide += ",\"k" + std::to_string(i) + "\":0";
  wide += "}";
  for (const std::string& body :
       {std::string(), std::string("{"), std::string("[]"), std::string("null"),
        std::string("\"x\""), std::string("{\"prompt\": \"\xff\"}"),
        std::string("{\"prompt\": 1e999}"), std::string("{\"prompt\": \"\\ud800\"}"), deep, wide}) {
    const RawResponse response = request(server.url(), "POST", "/v1/completions", body);
    EXPECT_EQ(response.status, 400) << body.substr(0, 40);
    EXPECT_FALSE(error_message(Json::parse(response.body)).empty());
  }
}

TEST(Refusals, APromptLongerThanTheContext) {
  const TestServer server;
  std::string text;
  for (int i = 0; i < 600; ++i) text += " fox";
  for (const auto& [route, body] : {std::pair("/v1/completions", completion_body(text)),
                                    std::pair("/v1/chat/completions", chat_body(text))}) {
    const Json reply = server.ask(route, body, 400);
    EXPECT_EQ(reply["error"]["code"], "context_length_exceeded");
    EXPECT_THAT(error_message(reply), HasSubstr("512"));
  }
  const Json full = server.ask("/v1/completions", completion_body(std::vector<int>(512, 5), 100));
  EXPECT_EQ(full["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(server.ask("/v1/completions", completion_body(std::vector<int>(513, 5)),
                       400)["error"]["param"],
            "prompt");
}

TEST(Routes, UnknownOnesMethodsAndTypes) {
  const TestServer server;
  EXPECT_EQ(request(server.url(), "GET", "/v2/models").status, 404);
  EXPECT_EQ(request(server.url(), "GET", "/../../etc/passwd").status, 404);
  const RawResponse method = request(server.url(), "GET", "/v1/completions");
  EXPECT_EQ(method.status, 405);
  EXPECT_EQ(method.headers.at("allow"), "POST");
  EXPECT_EQ(request(server.url(), "DELETE", "/health").headers.at("allow"), "GET, HEAD");
  EXPECT_EQ(request(server.url(), "HEAD", "/health").status, 200);
  RawClient form(server.url());
  form.send(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
      "Content-Length: 2\r\n\r\n{}");
  EXPECT_EQ(form.read_response().status, 415);
}

TEST(Routes, OtherSitesPagesAreKeptOut) {
  const TestServer server;
  EXPECT_EQ(request(server.url(), "GET", "/health", "", "Origin: http://evil.example\r\n").status,
            403);
  EXPECT_EQ(request(server.url(), "GET", "/health", "", "Origin: null\r\n").status, 403);
  EXPECT_EQ(request(server.url(), "GET", "/health", "", "Origin: http://127.0.0.1\r\n").status,
            200);
  for (const auto& [host, status] :
       {std::pair("evil.example:80", 403), {"localhost:1", 200}, {"[::1]:1", 200}}) {
    RawClient client(server.url());
    client.send(std::string("GET /health HTTP/1.1\r\nHost: ") + host + "\r\n\r\n");
    EXPECT_EQ(client.read_response().status, status) << host;
  }
}

TEST(Routes, AKeyIsAskedFor) {
  const TestServer server([](auto& options) { options.api_keys = {"first", "second"}; });
  const std::string body = completion_body("Hi", 1).dump();
  for (const char* header : {"", "Authorization: Bearer third\r\n", "Authorization: Bearer \r\n",
                             "Authorization: Bearer firs\r\n", "Authorization: Basic first\r\n",
                             "Authorization: Bearer firstfirst\r\n"}) {
    const RawResponse response = request(server.url(), "POST", "/v1/completions", body, header);
    EXPECT_EQ(response.status, 401) << header;
    EXPECT_EQ(Json::parse(response.body)["error"]["code"], "invalid_api_key");
  }
  for (const char* header : {"Authorization: Bearer first\r\n", "authorization: Bearer second\r\n"})
    EXPECT_EQ(request(server.url(), "POST", "/v1/completions", body, header).status, 200);
  EXPECT_EQ(request(server.url(), "GET", "/health").status, 200);
  for (const char* path : {"/v1/models", "/metrics", "/trace/live"})
    EXPECT_EQ(request(server.url(), "GET", path).status, 401) << path;
}

TEST(Routes, Models) {
  const TestServer server([](auto& options) { options.model_id = "a/b c"; });
  const Json list = server.get("/v1/models");
  EXPECT_EQ(list["object"], "list");
  EXPECT_EQ(list["data"][0]["id"], "a/b c");
  EXPECT_EQ(list["data"][0]["meta"]["n_ctx"], 512);
  EXPECT_EQ(server.get("/v1/models/a%2Fb%20c"), list["data"][0]);
  EXPECT_EQ(server.get("/v1/models/other", 404)["error"]["code"], "model_not_found");
}

TEST(Routes, TokensThereAndBack) {
  const TestServer server;
  const std::string text = "Once upon a time, é 你";
  const Json tokens = server.ask("/tokenize", {{"content", text}})["tokens"];
  EXPECT_EQ(tokens, Json(llm::Model::bundled()->tokenizer().encode(text)));
  EXPECT_EQ(server.ask("/detokenize", {{"tokens", tokens}})["content"], text);
  std::string joined;
  const Json pieces = server.ask("/tokenize", {{"content", text}, {"with_pieces", true}});
  for (const Json& token : pieces["tokens"]) {
    if (token["piece"].is_string()) {
      joined += token["piece"].get<std::string>();
      continue;
    }
    for (const Json& byte : token["piece"]) joined += static_cast<char>(byte.get<int>());
  }
  EXPECT_EQ(joined, text);
  EXPECT_EQ(server.ask("/tokenize", {{"content", "<|im_end|>"}})["tokens"].size(), 1u);
  EXPECT_GT(server.ask("/tokenize", {{"content", "<|im_end|>"}, {"parse_special", false}})["tokens"]
                .size(),
            1u);
  EXPECT_EQ(server.ask("/detokenize", {{"tokens", {9999}}}, 400)["error"]["param"], "tokens");
  EXPECT_EQ(server.ask("/tokenize", Json::object(), 400)["error"]["param"], "content");
}

std::vector<float> from_base64(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<std::uint32_t>(digits.find(c));
    count += 6;
    if (count >= 8) bytes += static_cast<char>(bits >> (count -= 8) & 255);
  }
  std::vector<float> numbers(bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(float));
  return numbers;
}

TEST(Embeddings, AreUnitVectorsInBothEncodings) {
  const TestServer server;
  Json body = {{"model", "fable"}, {"input", {"A fox.", "A fox.", "The owl slept."}}};
  const Json reply = server.ask("/v1/embeddings", body);
  body["encoding_format"] = "base64";
  const Json encoded = server.ask("/v1/embeddings", body);
  ASSERT_EQ(reply["data"].size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(reply["data"][i]["index"], i);
    const auto numbers = reply["data"][i]["embedding"].get<std::vector<float>>();
    ASSERT_EQ(numbers.size(), 128u);
    double square = 0;
    for (const float number : numbers) square += double{number} * number;
    EXPECT_NEAR(square, 1, 1e-5);
    EXPECT_EQ(from_base64(encoded["data"][i]["embedding"]), numbers);
  }
  EXPECT_EQ(reply["data"][0]["embedding"], reply["data"][1]["embedding"]);
  EXPECT_NE(reply["data"][0]["embedding"], reply["data"][2]["embedding"]);
  EXPECT_EQ(reply["usage"]["prompt_tokens"], reply["usage"]["total_tokens"]);
  const Json one = server.ask(
      "/v1/embeddings",
      {{"input", llm::Model::bundled()->tokenizer().encode("A fox.")}, {"dimensions", 128}});
  EXPECT_EQ(one["data"][0]["embedding"], reply["data"][0]["embedding"]);
}

TEST(Embeddings, RefuseWhatTheyCannotDo) {
  const TestServer server;
  expect_refused(server, "/v1/embeddings", {{"input", "A fox."}},
                 {{"/input", nullptr, "input"},
                  {"/input", "", "input"},
                  {"/input", Json::array(), "input"},
                  {"/input", {"a", ""}, "input[1]"},
                  {"/dimensions", 64, "dimensions"},
                  {"/encoding_format", "hex", "encoding_format"},
                  {"/pooling", "max", "pooling"}});
  EXPECT_EQ(
      server.ask("/v1/embeddings", {{"input", std::vector<int>(513, 5)}}, 400)["error"]["code"],
      "context_length_exceeded");
}

TEST(Embeddings, ABatchLargerThanTheQueueIsServed) {
  const TestServer server([](auto& options) { options.engine.max_queue = 2; });
  std::vector<std::string> inputs;
  for (int i = 0; i < 100; ++i) inputs.push_back("fox " + std::to_string(i));
  EXPECT_EQ(server.ask("/v1/embeddings", {{"input", inputs}})["data"].size(), 100u);
}

double metric(const std::string& text, const std::string& name) {
  const std::size_t at = text.find("\n" + name + " ");
  EXPECT_NE(at, std::string::npos) << name;
  return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
}

TEST(Routes, MetricsCount) {
  const TestServer server;
  server.ask("/v1/completions", completion_body("Once upon a time", 5));
  server.ask("/v1/completions", completion_body("", 5), 400);
  const RawResponse response = request(server.url(), "GET", "/metrics");
  EXPECT_EQ(response.headers.at("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  const std::string& text = response.body;
  EXPECT_EQ(metric(text, "heddle_tokens_total{kind=\"generated\"}"), 5);
  EXPECT_EQ(metric(text, "heddle_requests_total{end=\"completed\"}"), 1);
  EXPECT_EQ(metric(text, "heddle_http_replies_total{route=\"/v1/completions\",status=\"400\"}"), 1);
  EXPECT_EQ(metric(text, "heddle_request_seconds_bucket{le=\"+Inf\"}"), 1);
  EXPECT_EQ(metric(text, "heddle_request_seconds_count"), 1);
  // Each sample belongs to a family that was announced once.
  std::set<std::string> families;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# TYPE ")) {
      EXPECT_TRUE(families.insert(line.substr(7, line.find(' ', 7) - 7)).second) << line;
    } else if (!line.starts_with("#")) {
      std::string name = line.substr(0, line.find_first_of("{ "));
      for (const char* suffix : {"_bucket", "_sum", "_count"}) {
        const std::string base =
            name.substr(0, name.size() - std::min(name.size(), std::strlen(suffix)));
        if (name.ends_with(suffix) && families.contains(base)) name = base;
      }
      EXPECT_TRUE(families.contains(name)) << line;
    }
  }
}

TEST(Routes, ThePageIsServedWithItsRules) {
  const TestServer server;
  const RawResponse page = request(server.url(), "GET", "/");
  ASSERT_EQ(page.status, 200);
  if (!page.headers.contains("etag")) {
    EXPECT_THAT(page.body, HasSubstr("built without its page"));
    GTEST_SKIP() << "skipped: " << page.body;
  }
  EXPECT_EQ(page.headers.at("content-type"), "text/html; charset=utf-8");
  EXPECT_THAT(page.headers.at("content-security-policy"), HasSubstr("script-src 'self'"));
  EXPECT_EQ(request(server.url(), "GET", "/index.html").body, page.body);
  const RawResponse known =
      request(server.url(), "GET", "/", "", "If-None-Match: " + page.headers.at("etag") + "\r\n");
  EXPECT_EQ(known.status, 304);
  EXPECT_TRUE(known.body.empty());
  const std::size_t script = page.body.find("page-");
  ASSERT_NE(script, std::string::npos);
  const std::string path =
      "/" + page.body.substr(script, page.body.find(".js", script) + 3 - script);
  const RawResponse file = request(server.url(), "GET", path);
  EXPECT_EQ(file.headers.at("content-type"), "text/javascript; charset=utf-8");
  EXPECT_THAT(file.headers.at("cache-control"), HasSubstr("immutable"));
}

TEST(Routes, WhatRunsIsTold) {
  const TestServer server;
  RawClient watcher(server.url());
  watcher.send(request_text("GET", "/trace/live"));
  ASSERT_TRUE(watcher.read_until(": heddle"));
  const Json body = completion_body("Once upon a time", 3);
  const Json watched = server.ask("/v1/completions", body);
  std::set<std::string> seen;
  std::string text;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!seen.contains("end") && std::chrono::steady_clock::now() < deadline) {
    text += watcher.read_some();
    for (const char* type : {"plan", "run", "record", "end"}) {
      if (text.find("{\"type\":\"" + std::string(type) + "\"") != std::string::npos)
        seen.insert(type);
    }
  }
  EXPECT_EQ(seen.size(), 4u) << text.substr(0, 300);
  watcher.close();
  EXPECT_EQ(server.ask("/v1/completions", body)["choices"], watched["choices"]);
}

}  // namespace
}  // namespace heddle::test
