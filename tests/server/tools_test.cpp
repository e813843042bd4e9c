// Tools: how calls are told from content, and required ones are made to happen.
#include "server/tool_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/test_server.h"

namespace heddle::test {
namespace {

using server::ReplyPiece;
using server::ToolCallReader;
using server::ToolFormat;
using testing::HasSubstr;

struct Read {
  std::string content;
  std::vector<std::string> calls;  // "name arguments"
  bool operator==(const Read&) const = default;
};
void PrintTo(const Read& read, std::ostream* out) {
  *out << testing::PrintToString(read.content) << testing::PrintToString(read.calls);
}

struct Form {
  ToolFormat format = ToolFormat::none;
  bool opened = false, parallel = true;
};

Read read(const Form& form, const std::string& text, std::size_t piece_size) {
  ToolCallReader::Options options;
  options.format = form.format;
  options.names = {"f", "g"};
  options.opened = form.opened;
  options.parallel = form.parallel;
  ToolCallReader reader(options);
  Read result;
  const auto take = [&](const ReplyPiece& piece) {
    result.content += piece.content;
    for (const server::ToolCall& call : piece.calls) {
      EXPECT_EQ(call.id.size(), 9u);
      result.calls.push_back(call.name + " " + call.arguments);
    }
  };
  for (std::size_t at = 0; at < text.size(); at += piece_size)
    take(reader.add(text.substr(at, piece_size)));
  take(reader.finish());
  EXPECT_EQ(reader.has_calls(), !result.calls.empty());
  return result;
}

struct Case {
  Form form;
  std::string text;
  Read expected;
};

TEST(ToolCalls, AreToldFromContentHoweverTheTextIsCut) {
  const Form tagged{.format = ToolFormat::tagged}, bare{.format = ToolFormat::parameters},
      list{.format = ToolFormat::list}, opened{.format = ToolFormat::tagged, .opened = true},
      single{.format = ToolFormat::tagged, .parallel = false};
  const std::string call = R"(<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>)";
  const std::string told = R"(f {"x":1})";
  const std::vector<Case> cases{
      {tagged, "plain text ", {"plain text ", {}}},
      {tagged, " a < b <tool", {" a < b <tool", {}}},
      {tagged, call, {"", {told}}},
      {tagged, "Let me see.\n" + call + "\n", {"Let me see.", {told}}},
      {tagged, call + "\n" + call, {"", {told, told}}},
      {tagged, call + "\nand\n" + call, {"and", {told, told}}},
      {tagged, "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n", {"", {"f {}"}}},
      {tagged, "<tool_call>{\"name\": \"f\"}</tool_call>", {"", {"f {}"}}},
      {tagged,
       R"(<tool_call>{"name": "f", "arguments": {"x": "</tool_call>"}}</tool_call>)",
       {"", {R"(f {"x":"</tool_call>"})"}}},
      {tagged, "<tool_call>no JSON</tool_call> then", {"<tool_call>no JSON</tool_call> then", {}}},
      {tagged, "<tool_call>{\"name\": \"f\", \"argu", {"<tool_call>{\"name\": \"f\", \"argu", {}}},
      {tagged,
       "<tool_call>{\"name\": 1}</tool_call>",
       {"<tool_call>{\"name\": 1}</tool_call>", {}}},
      {single, call + call, {"", {told}}},
      {opened, R"({"name": "g", "arguments": {"y": [1, 2]}})", {"", {R"(g {"y":[1,2]})"}}},
      {bare, R"( {"name": "f", "parameters": {"x": 1}})", {"", {told}}},
      {bare,
       R"({"name": "f", "parameters": {"x": 1}}; {"name": "g", "parameters": {}})",
       {"", {told, "g {}"}}},
      {bare,
       R"({"name": "unknown", "parameters": {}})",
       {R"({"name": "unknown", "parameters": {}})", {}}},
      {bare, R"({"answer": 42})", {R"({"answer": 42})", {}}},
      {bare, "{ no JSON", {"{ no JSON", {}}},
      {bare, "text {\"name\"", {"text {\"name\"", {}}},
      {list,
       R"([{"name": "f", "arguments": {"x": 1}}, {"name": "g", "arguments": {}}])",
       {"", {told, "g {}"}}},
      {list, R"([TOOL_CALLS][{"name": "f", "arguments": {"x": 1}}])", {"", {told}}},
      {list, "[1, 2]", {"[1, 2]", {}}},
      {{}, call, {call, {}}},
  };
  for (const Case& c : cases) {
    for (const std::size_t size : {std::size_t{1}, std::size_t{3}, std::size_t{1000}})
      EXPECT_EQ(read(c.form, c.text, size), c.expected) << c.text << ", by " << size;
  }
}

TEST(ToolCalls, FormatsAreFoundInTemplates) {
  EXPECT_EQ(server::tool_format_of(kToolTemplate), ToolFormat::tagged);
  EXPECT_EQ(server::tool_format_of(kLlamaToolTemplate), ToolFormat::parameters);
  EXPECT_EQ(server::tool_format_of("{{ tools }}[TOOL_CALLS]"), ToolFormat::list);
  EXPECT_EQ(server::tool_format_of("{{ tools }}"), ToolFormat::none);
  EXPECT_EQ(server::tool_format_of("<tool_call>"), ToolFormat::none);
}

Json tool(const std::string& name, const Json& parameters) {
  return {{"type", "function"}, {"function", {{"name", name}, {"parameters", parameters}}}};
}

Json tools_body() {
  Json body = chat_body("The weather in Oslo?", 200);
  body["tools"] = Json::array(
      {tool("get_weather", {{"type", "object"},
                            {"properties",
                             {{"place", {{"$ref", "#/$defs/place"}}},
                              {"days", {{"type", "integer"}, {"minimum", 1}, {"maximum", 9}}}}},
                            {"required", {"place", "days"}},
                            {"additionalProperties", false},
                            {"$defs", {{"place", {{"enum", {"Oslo", "Bergen"}}}}}}}),
       tool("stop", {{"type", "object"}, {"properties", Json::object()}})});
  return body;
}

void check_weather(const Json& call) {
  EXPECT_EQ(call["type"], "function");
  EXPECT_EQ(call["id"].get<std::string>().size(), 9u);
  ASSERT_EQ(call["function"]["name"], "get_weather");
  const Json arguments = Json::parse(call["function"]["arguments"].get<std::string>());
  EXPECT_THAT(arguments["place"].get<std::string>(), testing::AnyOf("Oslo", "Bergen"));
  EXPECT_GE(arguments["days"].get<int>(), 1);
}

TEST(Tools, ANamedOneIsCalled) {
  for (const char* chat_template : {kToolTemplate, kLlamaToolTemplate}) {
    const TestServer server([&](auto& options) { options.chat_template = chat_template; });
    Json body = tools_body();
    body["tool_choice"] = {{"type", "function"}, {"function", {{"name", "get_weather"}}}};
    const Json choice = server.ask("/v1/chat/completions", body)["choices"][0];
    EXPECT_TRUE(choice["message"]["content"].is_null());
    EXPECT_EQ(choice["finish_reason"], "tool_calls");
    ASSERT_EQ(choice["message"]["tool_calls"].size(), 1u);
    check_weather(choice["message"]["tool_calls"][0]);

    body["stream"] = true;
    std::vector<Json> calls;
    std::string finish;
    for (const Json& chunk : chunks_of(server.post("/v1/chat/completions", body))) {
      const Json& delta = chunk["choices"][0];
      if (delta["delta"].contains("tool_calls")) {
        for (const Json& call : delta["delta"]["tool_calls"]) calls.push_back(call);
      }
      EXPECT_EQ(delta["delta"].value("content", ""), "");
      if (!delta["finish_reason"].is_null()) finish = delta["finish_reason"];
    }
    ASSERT_EQ(calls.size(), 1u);
    EXPECT_EQ(calls[0]["index"], 0);
    check_weather(calls[0]);
    EXPECT_EQ(finish, "tool_calls");
  }
}

TEST(Tools, OneThatIsRequiredIsOneOfThem) {
  const TestServer server([](auto& options) { options.chat_template = kToolTemplate; });
  Json body = tools_body();
  body["tool_choice"] = "required";
  body["temperature"] = 1.5;
  std::set<std::string> names;
  for (int seed = 0; seed < 20; ++seed) {
    body["seed"] = seed;
    const Json choice = server.ask("/v1/chat/completions", body)["choices"][0];
    ASSERT_EQ(choice["message"]["tool_calls"].size(), 1u) << choice;
    names.insert(choice["message"]["tool_calls"][0]["function"]["name"]);
  }
  EXPECT_THAT(names, testing::IsSubsetOf({"get_weather", "stop"}));
}

// The grammar stands in for a model that has learnt to call tools.
TEST(Tools, CallsAreFoundInFreeText) {
  const TestServer server([](auto& options) { options.chat_template = kToolTemplate; });
  Json body = tools_body();
  body["grammar"] =
      "root ::= \"Let me see.\" call call\n"
      "call ::= \"\\n<tool_call>{\\\"name\\\": \\\"stop\\\"}</tool_call>\"";
  const Json reply = server.ask("/v1/chat/completions", body);
  const Json& message = reply["choices"][0]["message"];
  EXPECT_EQ(message["content"], "Let me see.");
  ASSERT_EQ(message["tool_calls"].size(), 2u) << reply;
  EXPECT_EQ(message["tool_calls"][1]["function"]["name"], "stop");
  EXPECT_EQ(message["tool_calls"][1]["function"]["arguments"], "{}");
  EXPECT_NE(message["tool_calls"][0]["id"], message["tool_calls"][1]["id"]);

  body["parallel_tool_calls"] = false;
  const Json single = server.ask("/v1/chat/completions", body)["choices"][0];
  EXPECT_EQ(single["message"]["tool_calls"].size(), 1u);
  EXPECT_EQ(single["finish_reason"], "tool_calls");
  body["tool_choice"] = "none";
  EXPECT_THAT(server.ask("/v1/chat/completions", body)["choices"][0]["message"]["content"]
                  .get<std::string>(),
              HasSubstr("<tool_call>"));
}

TEST(Tools, AConversationWithCallsGoesOn) {
  const TestServer server([](auto& options) { options.chat_template = kToolTemplate; });
  Json body = tools_body();
  body["max_tokens"] = 3;
  const Json call = {
      {"id", "abcdefghi"},
      {"type", "function"},
      {"function", {{"name", "get_weather"}, {"arguments", "{\"place\":\"Oslo\"}"}}}};
  body["messages"].push_back(
      {{"role", "assistant"}, {"content", nullptr}, {"tool_calls", Json::array({call})}});
  body["messages"].push_back(
      {{"role", "tool"}, {"tool_call_id", "abcdefghi"}, {"content", "3 degrees"}});
  server.ask("/v1/chat/completions", body);
  body["messages"][1]["tool_calls"][0]["function"]["arguments"] = "no JSON";
  EXPECT_EQ(server.ask("/v1/chat/completions", body, 400)["error"]["param"],
            "messages[1].tool_calls[0].function.arguments");
}

TEST(Tools, AreRefusedWhereTheTemplateHasNone) {
  const TestServer server;
  const Json reply = server.ask("/v1/chat/completions", tools_body(), 400);
  EXPECT_EQ(reply["error"]["param"], "tools");
}

}  // namespace
}  // namespace heddle::test
