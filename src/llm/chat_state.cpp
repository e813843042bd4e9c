#include "llm/chat_state.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "llm/chat_window.h"

namespace heddle::llm {

namespace {

using Pieces = std::vector<TextPiece>;

std::tm local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return local;
}

Pieces slice(const Pieces& pieces, std::size_t begin, std::size_t end) {
  Pieces some;
  std::size_t at = 0;
  for (const TextPiece& piece : pieces) {
    const std::size_t from = std::max(begin, at), to = std::min(end, at + piece.text.size());
    if (from < to) some.push_back({piece.text.substr(from - at, to - from), piece.from_template});
    at += piece.text.size();
  }
  return some;
}

}  // namespace

void ChatPrompt::add(ChatSegment segment) {
  tokens.insert(tokens.end(), segment.tokens.begin(), segment.tokens.end());
  segments.push_back(std::move(segment));
}

ChatState::ChatState(Context& c, ChatFormat f)
    : context(c), format(std::move(f)), now(local_time()), sequence(context.create()) {}

/// With the replies that were sampled as they were, as long as all before them reads as it did.
ChatPrompt ChatState::encode(const Pieces& pieces) const {
  const std::string text = joined(pieces);
  std::size_t at = 0, kept = 0, kept_to = 0;  // segments, and where they end
  for (std::size_t i = 0; i < told.size(); ++i) {
    const ChatSegment& segment = told[i];
    const std::size_t begin = std::exchange(at, at + segment.text.size());
    if (text.compare(begin, segment.text.size(), segment.text) != 0) break;
    if (segment.is_reply) {
      kept = i + 1;
      kept_to = at;
      continue;
    }
    const Pieces same = slice(pieces, begin, at);
    if (segment.tokens != (i == 0 ? format.encode(same) : encode_rest(same))) break;
  }
  ChatPrompt prompt;
  for (std::size_t i = 0; i < kept; ++i) prompt.add(told[i]);
  std::vector<TokenId> rest = encode_rest(slice(pieces, kept_to, text.size()));
  const Tokenizer& tokenizer = context.model().tokenizer();
  // Only what begins with a token of its own is encoded the same without what stands before it.
  if (kept > 0 && !rest.empty() && tokenizer.type(rest.front()) == TokenType::control) {
    prompt.add({text.substr(kept_to), std::move(rest), false});
    return prompt;
  }
  prompt = {};
  prompt.add({text, format.encode(pieces), false});
  return prompt;
}

std::vector<TokenId> ChatState::encode_rest(const Pieces& pieces) const {
  return context.model().tokenizer().encode_pieces(pieces);
}

ChatPrompt ChatState::prompt(std::string_view system_text, std::span<const ChatTurn> some) const {
  std::vector<ChatMessage> messages;
  if (!system_text.empty()) messages.push_back({"system", std::string(system_text)});
  for (const ChatTurn& turn : some) {
    messages.push_back({"user", turn.user});
    if (&turn != &some.back()) messages.push_back({"assistant", *turn.reply});
  }
  return encode(format.render(chat_context(messages), now));
}

ChatPrompt ChatState::prompt_from(std::size_t turn) const {
  return prompt(system, std::span(turns).subspan(turn));
}

std::size_t ChatState::first_with_room(std::size_t from, std::int64_t more) const {
  return first_that_fits(from, last(), n_ctx() - n_ctx() / 4 - more,
                         [this](std::size_t i) { return prompt_from(i).length(); });
}

std::size_t ChatState::next_first() const {
  if (first_known && prompt_from(first).length() < n_ctx()) return first;
  const std::size_t whole = first_that_fits(
      first, last(), n_ctx() - 1, [this](std::size_t i) { return prompt_from(i).length(); });
  return whole == first ? first : first_with_room(whole, 0);
}

void ChatState::require_message_fits(const ChatPrompt& alone) const {
  require(alone.length() < n_ctx(), ErrorCode::invalid_argument,
          "the message is too long: with the system message and the template it takes {} tokens, "
          "and the context has {} (-c); some must be left for the reply",
          alone.length(), n_ctx());
}

void ChatState::require_system_fits(std::string_view text) const {
  const ChatTurn shortest{"?", std::nullopt};
  const std::int64_t length = prompt(text, {&shortest, 1}).length();
  require(length < n_ctx(), ErrorCode::invalid_argument,
          "the system message is too long: with the shortest message and the template it takes {} "
          "tokens, and the context has {} (-c)",
          length, n_ctx());
}

std::size_t ChatState::held_of(std::span<const TokenId> tokens) const {
  const auto [here, there] = std::mismatch(held.begin(), held.end(), tokens.begin(), tokens.end());
  return static_cast<std::size_t>(here - held.begin());
}

void ChatState::truncate(std::size_t length) {
  context.truncate(sequence, static_cast<std::int64_t>(length));
  held.resize(length);
}

}  // namespace heddle::llm
