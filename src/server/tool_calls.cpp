#include "server/tool_calls.h"

#include <algorithm>
#include <array>
#include <random>

#include "server/api_error.h"

namespace heddle::server {

namespace {

constexpr std::string_view kOpen = "<tool_call>", kClose = "</tool_call>";
constexpr std::string_view kListOpen = "[TOOL_CALLS]";
constexpr std::string_view kSpaces = " \t\r\n";

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// The end of `text` that may be the beginning of `word`.
std::size_t begun(std::string_view text, std::string_view word) {
  for (std::size_t size = std::min(text.size(), word.size() - 1); size > 0; --size) {
    if (text.ends_with(word.substr(0, size))) return size;
  }
  return 0;
}

/// References within a tool's parameters, from the root of the schema that they become a part of.
void move_references(Json& schema, const std::string& prefix) {
  if (schema.is_object()) {
    for (auto& [name, value] : schema.items()) {
      const bool is_reference = name == "$ref" && value.is_string();
      if (is_reference && value.get_ref<const std::string&>().starts_with('#'))
        value = "#" + prefix + value.get_ref<const std::string&>().substr(1);
      else
        move_references(value, prefix);
    }
  } else if (schema.is_array()) {
    for (Json& value : schema) move_references(value, prefix);
  }
}

const char* arguments_name(ToolFormat format) {
  return format == ToolFormat::parameters ? "parameters" : "arguments";
}

Json one_call_schema(ToolFormat format, const Json& function, const std::string& place) {
  const std::string arguments = arguments_name(format);
  const auto found = function.find("parameters");
  Json parameters = found != function.end() && found->is_object() && !found->empty()
                        ? *found
                        : Json({{"type", "object"}, {"properties", Json::object()}});
  move_references(parameters, place + "/properties/" + arguments);
  return {{"type", "object"},
          {"properties", {{"name", {{"const", function.at("name")}}}, {arguments, parameters}}},
          {"required", {"name", arguments}},
          {"additionalProperties", false}};
}

}  // namespace

ToolFormat tool_format_of(std::string_view chat_template) {
  if (!contains(chat_template, "tools")) return ToolFormat::none;
  if (contains(chat_template, kOpen)) return ToolFormat::tagged;
  if (contains(chat_template, kListOpen)) return ToolFormat::list;
  if (contains(chat_template, "\"parameters\": dictionary of argument name"))
    return ToolFormat::parameters;
  return ToolFormat::none;
}

Json call_schema(ToolFormat format, const Json& tools) {
  const std::string root = format == ToolFormat::list ? "/items" : "";
  Json schema;
  if (tools.size() == 1) {
    schema = one_call_schema(format, tools[0].at("function"), root);
  } else {
    Json any = Json::array();
    for (std::size_t i = 0; i < tools.size(); ++i)
      any.push_back(
          one_call_schema(format, tools[i].at("function"), fmt::format("{}/anyOf/{}", root, i)));
    schema = {{"anyOf", std::move(any)}};
  }
  if (format != ToolFormat::list) return schema;
  return {{"type", "array"}, {"items", std::move(schema)}, {"minItems", 1}, {"maxItems", 1}};
}

std::string_view call_opening(ToolFormat format) {
  switch (format) {
    case ToolFormat::tagged:
      return "<tool_call>\n";
    case ToolFormat::list:
      return "[TOOL_CALLS]";
    default:
      return "";
  }
}

ToolCallReader::ToolCallReader(Options options)
    : options_(std::move(options)),
      inside_(options_.opened && options_.format == ToolFormat::tagged) {}

ReplyPiece ToolCallReader::add(std::string_view text) {
  ReplyPiece piece;
  if (options_.format == ToolFormat::none) {
    piece.content = text;
    return piece;
  }
  held_ += text;
  if (options_.format == ToolFormat::tagged) {
    read_tagged(piece);
    return piece;
  }
  // The whole reply is calls, or none of it: its first character tells which it may be.
  const std::size_t first = held_.find_first_not_of(kSpaces);
  if (first == std::string::npos) return piece;
  const bool may_be_calls = held_[first] == '{' || held_[first] == '[';
  if (!may_be_calls || decided_) {
    decided_ = true;
    piece.content = std::exchange(held_, {});
  }
  return piece;
}

void ToolCallReader::read_tagged(ReplyPiece& piece) {
  while (!held_.empty()) {
    if (!inside_) {
      const std::size_t open = held_.find(kOpen);
      const std::size_t end = open == std::string::npos ? held_.size() - begun(held_, kOpen) : open;
      give(piece, std::string_view(held_).substr(0, end));
      held_.erase(0, end);
      if (open == std::string::npos) return;
      inside_ = true;
      held_.erase(0, kOpen.size());
    }
    // An argument may hold the closing tag too: what is no JSON up to one may be so up to the next.
    std::size_t close = held_.find(kClose);
    while (close != std::string::npos &&
           !read_call_text(std::string_view(held_).substr(0, close), piece))
      close = held_.find(kClose, close + 1);
    if (close == std::string::npos) return;
    held_.erase(0, close + kClose.size());
    inside_ = false;
  }
}

ReplyPiece ToolCallReader::finish() {
  ReplyPiece piece;
  const std::string rest = std::exchange(held_, {});
  const bool whole =
      options_.format == ToolFormat::parameters || options_.format == ToolFormat::list;
  const bool is_call = (inside_ || (whole && !decided_)) && read_call_text(rest, piece);
  if (is_call) return piece;
  if (inside_ && !options_.opened) give(piece, kOpen);
  give(piece, rest);
  if (calls_ == 0) piece.content += std::exchange(space_, {});
  return piece;
}

bool ToolCallReader::read_call_text(std::string_view text, ReplyPiece& piece) {
  // Where the vocabulary has no such control token, it is text.
  if (options_.format == ToolFormat::list && text.starts_with(kListOpen))
    text.remove_prefix(kListOpen.size());
  // Llama writes several calls one after the other, with semicolons between them.
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) {
    std::string list = "[" + std::string(text) + "]";
    std::ranges::replace(list, ';', ',');
    json = options_.format == ToolFormat::parameters ? Json::parse(list, nullptr, false) : json;
  }
  if (json.is_object()) return take_call(json, piece);
  if (!json.is_array() || json.empty()) return false;
  ReplyPiece calls;
  for (const Json& call : json) {
    if (!take_call(call, calls)) return false;
  }
  std::ranges::move(calls.calls, std::back_inserter(piece.calls));
  return true;
}

bool ToolCallReader::take_call(const Json& json, ReplyPiece& piece) {
  if (!json.is_object()) return false;
  const auto name = json.find("name");
  auto arguments = json.find("arguments");
  if (arguments == json.end()) arguments = json.find("parameters");
  if (name == json.end() || !name->is_string()) return false;
  const bool has_arguments = arguments != json.end() && arguments->is_object();
  if (options_.format == ToolFormat::tagged ? arguments != json.end() && !has_arguments
                                            : !has_arguments)
    return false;
  // JSON may be a plain answer, too, where calls are not marked.
  if (options_.format != ToolFormat::tagged && !options_.names.contains(name->get<std::string>()))
    return false;
  if (calls_ > 0 && !options_.parallel) return true;
  ++calls_;
  // Nine letters and digits: Mistral's template accepts no other.
  piece.calls.push_back(
      {random_id("", 9), name->get<std::string>(), has_arguments ? json_text(*arguments) : "{}"});
  space_.clear();
  after_call_ = true;
  return true;
}

void ToolCallReader::give(ReplyPiece& piece, std::string_view text) {
  if (after_call_) {
    const std::size_t first = text.find_first_not_of(kSpaces);
    if (first == std::string_view::npos) return;
    text.remove_prefix(first);
    after_call_ = false;
  }
  const std::size_t last = text.find_last_not_of(kSpaces);
  const std::size_t end = last == std::string_view::npos ? 0 : last + 1;
  if (end > 0) {
    piece.content += std::exchange(space_, {});
    piece.content += text.substr(0, end);
  }
  space_ += text.substr(end);
}

std::string random_id(std::string_view prefix, std::size_t count) {
  constexpr std::string_view kLetters =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  thread_local std::mt19937_64 random{std::random_device{}()};
  std::uniform_int_distribution<std::size_t> pick(0, kLetters.size() - 1);
  std::string id(prefix);
  for (std::size_t i = 0; i < count; ++i) id += kLetters[pick(random)];
  return id;
}

}  // namespace heddle::server
