// Conversations with a model: many turns, of which each computes only what is new.
#pragma once

#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/chat_template.h"
#include "heddle/llm.h"

namespace heddle::llm {

struct ChatMessage {
  std::string role, content;
  bool operator==(const ChatMessage&) const = default;
};

/// The context of a template that is to render these messages and have a reply begin; a JSON
/// object. Bytes that are no UTF-8 become U+FFFD.
std::string chat_context(std::span<const ChatMessage> messages);

/// How a model is spoken to: a chat template, and the names its vocabulary has for the beginning
/// and the end. Immutable; any number of threads may use one.
class ChatFormat {
 public:
  /// The template of the model's own file. Throws unsupported where there is none.
  explicit ChatFormat(std::shared_ptr<const Model> model);
  /// Another template. Throws invalid_argument where that is no template.
  ChatFormat(std::shared_ptr<const Model> model, std::string_view template_source,
             const TemplateLimits& limits = {});

  /// What the template makes of a context (a JSON object: messages, tools, ...).
  std::vector<TextPiece> render(std::string_view context,
                                std::optional<std::tm> now = std::nullopt) const;
  /// The tokens of a rendered text, after the beginning token that the vocabulary asks for, which
  /// many templates write themselves: there is one in any case, not two.
  std::vector<TokenId> encode(std::span<const TextPiece> pieces) const;

 private:
  std::shared_ptr<const Model> model_;
  std::shared_ptr<const ChatTemplate> template_;
  std::string names_;  // bos_token and eos_token, as JSON
  std::optional<TokenId> begin_;
};

/// What a user said, and what came back; only a conversation's last turn may lack a reply.
struct ChatTurn {
  std::string user;
  std::optional<std::string> reply;
  bool operator==(const ChatTurn&) const = default;
};

/// What had to leave the context.
struct Forgotten {
  std::size_t turns = 0;         // that went now
  std::size_t turns_left = 0;    // that the model still sees, the one it answers included
  std::int64_t tokens_read = 0;  // that are read again
};

struct ChatOptions {
  /// The sampler's seed counts for one reply: the same seed draws the same numbers again.
  GenerateOptions generate;
  /// Told before the rest is read again: before a reply, or in the midst of one.
  std::function<void(const Forgotten&)> on_forget;
};

struct ChatReply {
  StopReason reason = StopReason::end_token;
  std::string text;
  std::int64_t reused_tokens = 0;     // of the prompt, that the KV state had
  std::int64_t prompt_tokens = 0;     // computed, those that were read again included
  std::int64_t generated_tokens = 0;  // sampled, without the end token
  double prompt_seconds = 0, generate_seconds = 0;
};

/// One conversation, in a sequence of its own. Not thread-safe; others may use the same context.
///
/// For each reply the whole conversation is rendered anew, and what the sequence does not hold of
/// that is computed. When the context is full, the oldest turns leave it, so many that a quarter of
/// it is free; the system message and the last turn stay. `turns` still has them all.
class Chat {
 public:
  /// Takes a sequence of the context, which must outlive the chat.
  Chat(Context& context, ChatFormat format);
  ~Chat();
  Chat(const Chat&) = delete;
  Chat& operator=(const Chat&) = delete;

  /// What comes before all turns; empty: nothing.
  const std::string& system() const noexcept;
  /// Throws invalid_argument, and changes nothing, where the template refuses it or it fills the
  /// context.
  void set_system(std::string text);

  const std::vector<ChatTurn>& turns() const noexcept;
  /// Replaces the conversation. Throws invalid_argument, and changes nothing, if a turn before the
  /// last has no reply, or as set_system.
  void set(std::string system, std::vector<ChatTurn> turns);
  void clear() noexcept;  // forgets all turns

  /// Begins a turn, in the place of one without a reply. Throws invalid_argument, and changes
  /// nothing, where the template refuses the message, or it does not fit the context with the
  /// system message alone.
  void ask(std::string text);

  /// Answers the last turn. A reply that is stopped keeps what had been said; one stopped or failed
  /// before anything was said leaves the turn as it was, with the reply that it had, if any.
  /// `on_text` as in `generate`; it may not use the chat. Throws invalid_argument when there is no
  /// turn, or the last one does not fit the context, and what Context::step throws.
  ChatReply reply(const ChatOptions& options, const std::function<bool(std::string_view)>& on_text);

  /// Turns that have left the context, from the first on.
  std::size_t forgotten() const noexcept;
  /// Tokens in the KV state.
  std::int64_t length() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace heddle::llm
