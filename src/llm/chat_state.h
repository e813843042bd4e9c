// What a Chat knows: the conversation, and what the model has read of it.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/chat.h"

namespace heddle::llm {

/// A part of a conversation, as text and as the tokens that it was: a reply may have been sampled
/// as others than its text would be encoded to.
struct ChatSegment {
  std::string text;
  std::vector<TokenId> tokens;
  bool is_reply;
};

struct ChatPrompt {
  std::vector<ChatSegment> segments;
  std::vector<TokenId> tokens;  // of all segments

  void add(ChatSegment segment);
  std::int64_t length() const { return static_cast<std::int64_t>(tokens.size()); }
};

struct ChatState {
  Context& context;
  ChatFormat format;
  std::tm now;  // of all renderings: of a text that told the time, nothing could be kept
  SequenceId sequence;
  std::string system;
  std::vector<ChatTurn> turns;
  std::size_t first = 0;          // of the turns in the context
  bool first_known = true;        // false: nobody has looked yet which turns have room
  std::vector<TokenId> held;      // what the sequence has
  std::vector<ChatSegment> told;  // the last reply, and what it was a reply to

  ChatState(Context& context, ChatFormat format);

  std::int64_t n_ctx() const { return context.options().n_ctx; }
  std::size_t last() const { return turns.size() - 1; }

  /// Turns whose last one is to be answered.
  ChatPrompt prompt(std::string_view system_text, std::span<const ChatTurn> some) const;
  ChatPrompt prompt_from(std::size_t turn) const;
  /// The first turn from `from` on with which a prompt and `more` tokens leave a quarter of the
  /// context free; the last one if none does.
  std::size_t first_with_room(std::size_t from, std::int64_t more) const;
  /// Where the context is to begin for the next reply.
  std::size_t next_first() const;

  void require_message_fits(const ChatPrompt& alone) const;
  void require_system_fits(std::string_view text) const;

  /// How many of these tokens the sequence begins with.
  std::size_t held_of(std::span<const TokenId> tokens) const;
  void truncate(std::size_t length);

 private:
  ChatPrompt encode(const std::vector<TextPiece>& pieces) const;
  std::vector<TokenId> encode_rest(const std::vector<TextPiece>& pieces) const;
};

}  // namespace heddle::llm
