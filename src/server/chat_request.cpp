#include "server/chat_request.h"

#include "server/api_error.h"

namespace heddle::server {

namespace {

constexpr std::size_t kMostTools = 128;

/// A message's content: a string, or a list of parts, of which only texts are understood.
std::string read_content(const Json& value, const std::string& path) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array())
    refuse_field(path, "{} is to be a string, or a list of parts of type text", path);
  std::string content;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const std::string at = fmt::format("{}[{}]", path, i);
    Fields part(value[i], at);
    const std::string type = part.get_text("type");
    if (type != "text" && type != "refusal")
      refuse_field(at + ".type", "{}.type is '{}'; this model takes parts of type text only", at,
                   type);
    content += part.get_text(type);
    part.ignore({"annotations", "cache_control"});
    part.finish();
  }
  return content;
}

Json read_arguments(Fields& function) {
  const Json& value = function.get("arguments");
  if (value.is_object()) return value;
  const std::string path = function.path("arguments");
  if (!value.is_string()) refuse_field(path, "{} is to be a string that holds JSON", path);
  const auto& text = value.get_ref<const std::string&>();
  if (text.empty()) return Json::object();
  try {
    Json arguments = parse_json(text);
    if (arguments.is_object()) return arguments;
  } catch (const ApiError&) {
    // Told below, with its place.
  }
  refuse_field(path, "{} holds no JSON object", path);
}

Json read_tool_calls(const Json& value, const std::string& path) {
  if (!value.is_array()) refuse_field(path, "{} is to be a list", path);
  Json calls = Json::array();
  for (std::size_t i = 0; i < value.size(); ++i) {
    Fields call(value[i], fmt::format("{}[{}]", path, i));
    const std::string id = call.text("id").value_or("");
    const std::string type = call.text("type").value_or("function");
    if (type != "function")
      refuse_field(call.path("type"), "{} is '{}'; expected function", call.path("type"), type);
    Fields function(call.get("function"), call.path("function"));
    Json read = {{"name", function.get_text("name")}, {"arguments", read_arguments(function)}};
    function.finish();
    call.ignore({"index"});
    call.finish();
    calls.push_back({{"id", id}, {"type", "function"}, {"function", std::move(read)}});
  }
  return calls;
}

Json read_message(const Json& value, const std::string& path) {
  Fields fields(value, path);
  std::string role = fields.get_text("role");
  static const std::set<std::string> kRoles{"system", "developer", "user", "assistant", "tool"};
  if (!kRoles.contains(role))
    refuse_field(fields.path("role"),
                 "{} is '{}'; expected system, developer, user, assistant or tool",
                 fields.path("role"), role);
  if (role == "developer") role = "system";  // its newer name, which few templates know
  Json message = {{"role", role}};
  const Json* calls = role == "assistant" ? fields.find("tool_calls") : nullptr;
  const Json* content = role == "assistant" ? fields.find("content") : &fields.get("content");
  if (role == "assistant" && !content && !calls)
    refuse_field(fields.path("content"), "{} is missing", fields.path("content"));
  message["content"] = content ? read_content(*content, fields.path("content")) : "";
  if (calls && !calls->empty())
    message["tool_calls"] = read_tool_calls(*calls, fields.path("tool_calls"));
  if (role == "tool") message["tool_call_id"] = fields.text("tool_call_id").value_or("");
  if (const auto name = fields.text("name")) message["name"] = *name;
  if (const auto thoughts = fields.text("reasoning_content"))
    message["reasoning_content"] = *thoughts;
  fields.refuse("function_call", "use tool_calls");
  fields.refuse("audio", "this model takes text only");
  fields.ignore({"refusal", "annotations"});
  fields.finish();
  return message;
}

Json read_messages(Fields& fields) {
  const Json& value = fields.get("messages");
  if (!value.is_array() || value.empty())
    refuse_field("messages", "messages is to be a list of at least one message");
  Json messages = Json::array();
  for (std::size_t i = 0; i < value.size(); ++i)
    messages.push_back(read_message(value[i], fmt::format("messages[{}]", i)));
  return messages;
}

Json read_tools(Fields& fields, std::set<std::string>& names) {
  Json tools = Json::array();
  const Json* value = fields.find("tools");
  if (!value) return tools;
  if (!value->is_array() || value->size() > kMostTools)
    refuse_field("tools", "tools is to be a list of {} tools at most", kMostTools);
  for (std::size_t i = 0; i < value->size(); ++i) {
    Fields tool((*value)[i], fmt::format("tools[{}]", i));
    const std::string type = tool.get_text("type");
    if (type != "function")
      refuse_field(tool.path("type"), "{} is '{}'; expected function", tool.path("type"), type);
    const Json& function = tool.get("function");
    tool.finish();
    Fields members(function, tool.path("function"));
    const std::string name = members.get_text("name");
    if (name.empty() || !names.insert(name).second)
      refuse_field(members.path("name"), "{} is '{}'; expected a name of its own",
                   members.path("name"), name);
    const Json* parameters = members.find("parameters");
    if (parameters) Fields(*parameters, members.path("parameters"));
    members.text("description");
    members.flag("strict");
    members.finish();
    tools.push_back({{"type", "function"}, {"function", function}});
  }
  return tools;
}

/// Leaves the only tool that may be called, if one is named.
void choose_tool(const Json& choice, ChatRequest& request) {
  Fields fields(choice, "tool_choice");
  const std::string type = fields.get_text("type");
  if (type != "function")
    refuse_field("tool_choice.type", "tool_choice.type is '{}'; expected function", type);
  Fields function(fields.get("function"), "tool_choice.function");
  const std::string name = function.get_text("name");
  function.finish();
  fields.finish();
  request.tool_choice = ToolChoice::required;
  for (const Json& tool : request.tools) {
    if (tool.at("function").at("name") != name) continue;
    request.tools = Json::array({Json(tool)});
    request.tool_names = {name};
    return;
  }
  refuse_field("tool_choice", "tool_choice names '{}', which is not among the tools", name);
}

void read_tool_choice(Fields& fields, ChatRequest& request) {
  const Json* choice = fields.find("tool_choice");
  if (!choice) return;
  if (!choice->is_string()) return choose_tool(*choice, request);
  const auto& text = choice->get_ref<const std::string&>();
  if (text == "none") {
    request.tool_choice = ToolChoice::none;
    request.tools = Json::array();
  } else if (text == "required") {
    request.tool_choice = ToolChoice::required;
    if (request.tools.empty())
      refuse_field("tool_choice", "tool_choice is 'required', but there are no tools");
  } else if (text != "auto") {
    refuse_field("tool_choice", "tool_choice is '{}'; expected none, auto, required or a function",
                 text);
  }
}

void read_logprobs(Fields& fields, llm::Request& request) {
  const bool wanted = fields.flag("logprobs").value_or(false);
  const auto top = fields.whole("top_logprobs", 0, 20);
  if (top && !wanted) refuse_field("top_logprobs", "top_logprobs makes sense only with logprobs");
  if (wanted) request.top_logprobs = top.value_or(0);
}

/// Names that only the server says.
void read_template_names(Fields& fields, ChatRequest& request) {
  if (const Json* names = fields.find("chat_template_kwargs")) {
    Fields(*names, "chat_template_kwargs");
    for (const char* own : {"messages", "tools", "add_generation_prompt"}) {
      if (names->contains(own))
        refuse_field("chat_template_kwargs", "chat_template_kwargs may not set '{}'", own);
    }
    request.template_names = *names;
  }
  if (const auto effort = fields.text("reasoning_effort"))
    request.template_names["reasoning_effort"] = *effort;
}

void refuse_others(Fields& fields) {
  fields.refuse("functions", "use tools");
  fields.refuse("function_call", "use tool_choice");
  fields.refuse("audio", "this model writes text only");
  fields.refuse("modalities", "this model writes text only", Json::array({"text"}));
  fields.refuse("web_search_options", "this server searches nothing");
  fields.ignore({"prediction", "verbosity"});
}

}  // namespace

ChatRequest read_chat_request(const Json& body, std::size_t vocabulary) {
  Fields fields(body);
  fields.text("model");
  ChatRequest request;
  request.messages = read_messages(fields);
  request.generation = read_generation(fields, vocabulary);
  read_logprobs(fields, request.generation.request);
  request.tools = read_tools(fields, request.tool_names);
  read_tool_choice(fields, request);
  request.parallel_calls = fields.flag("parallel_tool_calls").value_or(true);
  read_template_names(fields, request);
  refuse_others(fields);
  fields.finish();
  if (request.tool_choice == ToolChoice::required && request.generation.request.grammar)
    refuse_field("tool_choice", "a tool call that is required, and a grammar, exclude each other");
  return request;
}

}  // namespace heddle::server
