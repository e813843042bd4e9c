#include "server/chat_prompt.h"

#include "heddle/error.h"
#include "heddle/grammar.h"
#include "server/api_error.h"

namespace heddle::server {

namespace {

/// A prompt of a million tokens is some MiB, and no template needs a second for it.
constexpr TemplateLimits kLimits{.source_bytes = std::size_t{1} << 20,
                                 .steps = 5'000'000,
                                 .output_bytes = std::size_t{32} << 20,
                                 .string_bytes = std::size_t{128} << 20};

/// Some templates put a call's arguments together as text, where Hugging Face hands them an object.
Json with_arguments_as_text(Json messages) {
  for (Json& message : messages) {
    const auto calls = message.find("tool_calls");
    if (calls == message.end()) continue;
    for (Json& call : *calls) {
      Json& arguments = call["function"]["arguments"];
      if (arguments.is_object()) arguments = json_text(arguments);
    }
  }
  return messages;
}

/// Some templates count on a description, which OpenAI's API does not ask for.
Json with_descriptions(Json tools) {
  for (Json& tool : tools) {
    if (!tool["function"].contains("description")) tool["function"]["description"] = "";
  }
  return tools;
}

}  // namespace

ChatPrompt::ChatPrompt(const std::shared_ptr<const llm::Model>& model,
                       const std::optional<std::string>& source) {
  if (!source) return;
  format_.emplace(model, *source, kLimits);
  tool_format_ = tool_format_of(*source);
  arguments_as_text_ = tool_format_ != ToolFormat::none && wants_arguments_as_text();
}

std::vector<TextPiece> ChatPrompt::try_render(const Json& context) const {
  return format_->render(json_text(context));
}

/// Tried once, with a call that any template can show.
bool ChatPrompt::wants_arguments_as_text() const {
  const Json call = {{"id", "abcdefghi"},
                     {"type", "function"},
                     {"function", {{"name", "f"}, {"arguments", {{"x", 1}}}}}};
  Json messages = {{{"role", "user"}, {"content", "a"}},
                   {{"role", "assistant"}, {"content", ""}, {"tool_calls", Json::array({call})}}};
  const auto works = [&](const Json& tried) {
    try {
      try_render({{"messages", tried}, {"add_generation_prompt", false}});
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  return !works(messages) && works(with_arguments_as_text(messages));
}

std::vector<TextPiece> ChatPrompt::render(const ChatRequest& request) const {
  Json context = request.template_names;
  context["messages"] =
      arguments_as_text_ ? with_arguments_as_text(request.messages) : request.messages;
  if (!request.tools.empty()) context["tools"] = request.tools;
  context["add_generation_prompt"] = true;
  try {
    return try_render(context);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw;
    const Json described = with_descriptions(request.tools);
    if (described == request.tools) refuse_field("messages", "{}", error.what());
    ChatRequest again = request;
    again.tools = described;
    return render(again);
  }
}

ChatPrompt::Prompt ChatPrompt::make(ChatRequest& request) const {
  if (!format_)
    refuse_field("messages",
                 "this model has no chat template; /v1/completions continues plain text, and the "
                 "server's --chat-template gives it one");
  const bool has_tools = !request.tools.empty();
  if (has_tools && tool_format_ == ToolFormat::none)
    refuse_field("tools",
                 "this model's chat template has no tools, or calls them in a way that is "
                 "not known here");
  std::vector<TextPiece> pieces = render(request);
  Prompt prompt;
  if (has_tools) {
    prompt.tools = {.format = tool_format_,
                    .names = request.tool_names,
                    .opened = request.tool_choice == ToolChoice::required,
                    .parallel = request.parallel_calls};
  }
  if (prompt.tools.opened) {
    pieces.push_back({std::string(call_opening(tool_format_)), true});
    try {
      request.generation.request.grammar =
          Grammar::from_json_schema(json_text(call_schema(tool_format_, request.tools)));
    } catch (const Error& error) {
      refuse_field("tools", "tools: {}", error.what());
    }
  }
  prompt.tokens = format_->encode(pieces);
  return prompt;
}

}  // namespace heddle::server
