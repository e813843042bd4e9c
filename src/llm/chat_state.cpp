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

/// What follows `begun` in `pieces`, if they begin with it.
std::optional<Pieces> rest_after(const Pieces& begun, const Pieces& pieces) {
  if (begun.empty() || begun.size() > pieces.size()) return std::nullopt;
  const auto last = static_cast<std::ptrdiff_t>(begun.size() - 1);
  const TextPiece& end = begun.back();
  const TextPiece& there = pieces[begun.size() - 1];
  const bool begins = std::equal(begun.begin(), begun.begin() + last, pieces.begin()) &&
                      there.from_template == end.from_template && there.text.starts_with(end.text);
  if (!begins) return std::nullopt;
  Pieces rest(pieces.begin() + last, pieces.end());
  rest.front().text.erase(0, end.text.size());
  if (rest.front().text.empty()) rest.erase(rest.begin());
  return rest;
}

}  // namespace

ChatState::ChatState(Context& c, ChatFormat f)
    : context(c), format(std::move(f)), now(local_time()), sequence(context.create()) {}

std::vector<TokenId> ChatState::encode(const Pieces& pieces) const {
  const Tokenizer& tokenizer = context.model().tokenizer();
  if (const std::optional<Pieces> rest = rest_after(told, pieces)) {
    const std::vector<TokenId> more = tokenizer.encode_pieces(*rest);
    // Only what begins with a token of its own is encoded the same without what stands before it.
    if (!more.empty() && tokenizer.type(more.front()) == TokenType::control) {
      std::vector<TokenId> tokens = told_tokens;
      tokens.insert(tokens.end(), more.begin(), more.end());
      return tokens;
    }
  }
  return format.encode(pieces);
}

ChatPrompt ChatState::prompt(std::string_view system_text, std::span<const ChatTurn> some) const {
  std::vector<ChatMessage> messages;
  if (!system_text.empty()) messages.push_back({"system", std::string(system_text)});
  for (const ChatTurn& turn : some) {
    messages.push_back({"user", turn.user});
    if (&turn != &some.back()) messages.push_back({"assistant", *turn.reply});
  }
  ChatPrompt prompt;
  prompt.pieces = format.render(chat_context(messages), now);
  prompt.tokens = encode(prompt.pieces);
  return prompt;
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
