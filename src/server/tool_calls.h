// Functions that a model may call: how its chat template has it say so, and what it said.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "server/json.h"

namespace heddle::server {

/// How a call is written.
enum class ToolFormat {
  none,
  tagged,      // <tool_call>{"name": ..., "arguments": {...}}</tool_call>: Hermes, Qwen, Granite
  parameters,  // {"name": ..., "parameters": {...}}, the whole reply: Llama 3
  list,        // [{"name": ..., "arguments": {...}}, ...], the whole reply: Mistral
};

/// What a template teaches its model; none if it takes no tools, or has them called otherwise.
ToolFormat tool_format_of(std::string_view chat_template);

struct ToolCall {
  std::string id, name;
  std::string arguments;  // a JSON object
};

/// A reply, or a piece of one.
struct ReplyPiece {
  std::string content;
  std::vector<ToolCall> calls;
};

/// A schema that only calls of these tools fulfil, in the format's own form (the text between the
/// tags). `tools` is an array as requests have it.
Json call_schema(ToolFormat format, const Json& tools);
/// What stands before such a call, and belongs to the prompt where a call is a must.
std::string_view call_opening(ToolFormat format);

/// Tells calls from content in a reply that comes in pieces. What may yet become a call is held
/// back; what looked like one and is none, is content. White space beside calls is dropped.
class ToolCallReader {
 public:
  struct Options {
    ToolFormat format = ToolFormat::none;
    std::set<std::string> names;  // of the tools
    bool opened = false;          // the prompt ended with `call_opening`
    bool parallel = true;         // false: only the first call counts
  };
  explicit ToolCallReader(Options options);

  ReplyPiece add(std::string_view text);
  ReplyPiece finish();
  bool has_calls() const noexcept { return calls_ > 0; }

 private:
  void read_tagged(ReplyPiece& piece);
  bool read_call_text(std::string_view text, ReplyPiece& piece);
  bool take_call(const Json& json, ReplyPiece& piece);
  void give(ReplyPiece& piece, std::string_view text);

  Options options_;
  std::string held_;   // not decided yet
  std::string space_;  // white space that may stand beside a call
  bool inside_ = false, after_call_ = false;
  bool decided_ = false;  // whether the reply, in a format that takes all of it, is content
  std::size_t calls_ = 0;
};

/// A new identifier: a prefix and `count` random letters and digits.
std::string random_id(std::string_view prefix, std::size_t count);

}  // namespace heddle::server
