// One reply of a Chat.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "llm/chat_state.h"
#include "llm/stop_texts.h"

namespace heddle::llm {

class ChatAnswer {
 public:
  using OnText = std::function<bool(std::string_view)>;

  ChatAnswer(ChatState& state, const ChatOptions& options, const OnText& on_text);

  /// Answers the last turn. What was said by then is in `result` even if this throws.
  void run();
  const ChatReply& result() const noexcept { return result_; }
  /// Makes what was said the last turn's reply.
  void keep();

 private:
  void move_window(std::size_t first);
  /// Has the sequence hold these tokens. False if that was cancelled.
  bool read(const std::vector<TokenId>& tokens);
  void step(std::span<const TokenId> tokens, const Context::Progress& progress);
  StopReason write();
  /// Lets old turns go and reads the rest again. Otherwise the reason to stop.
  std::optional<StopReason> make_room();
  bool give(std::string_view text);
  StopReason stop(StopReason reason);

  ChatState& state_;
  const ChatOptions& options_;
  const OnText& on_text_;
  Sampler sampler_;
  Detokenizer detokenizer_;
  StopTexts stops_;
  ChatPrompt prompt_;
  std::vector<TokenId> tokens_;  // the reply's
  std::vector<float> logits_;
  bool text_is_whole_ = false;  // the reply's text is all that its tokens say
  ChatReply result_;
};

}  // namespace heddle::llm
