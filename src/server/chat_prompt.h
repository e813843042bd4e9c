// From a conversation to the tokens of a prompt, by the model's chat template.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heddle/chat.h"
#include "server/chat_request.h"
#include "server/tool_calls.h"

namespace heddle::server {

/// Immutable; any number of threads may use one.
class ChatPrompt {
 public:
  /// Without a source, every conversation is refused. Throws invalid_argument for one that is no
  /// template.
  ChatPrompt(const std::shared_ptr<const llm::Model>& model,
             const std::optional<std::string>& source);

  struct Prompt {
    std::vector<TokenId> tokens;
    ToolCallReader::Options tools;  // how to read the reply
  };
  /// Throws ApiError 400 with what the template says, or if it cannot do what is asked. Gives
  /// `request` the grammar of a call that is required.
  Prompt make(ChatRequest& request) const;

  ToolFormat tool_format() const noexcept { return tool_format_; }

 private:
  std::vector<TextPiece> render(const ChatRequest& request) const;
  std::vector<TextPiece> try_render(const Json& context) const;
  bool wants_arguments_as_text() const;

  std::optional<llm::ChatFormat> format_;
  ToolFormat tool_format_ = ToolFormat::none;
  bool arguments_as_text_ = false;
};

}  // namespace heddle::server
