#include "heddle/chat.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "llm/chat_answer.h"
#include "llm/chat_state.h"
#include "text/utf8.h"

namespace heddle::llm {

namespace {

/// As templates, files and other programs expect text.
std::string valid_utf8(std::string_view bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size();) {
    const text::Utf8Unit unit = text::utf8_unit(bytes, i);
    const bool valid = unit.status == text::Utf8Status::valid;
    text += valid ? bytes.substr(i, unit.length) : text::kReplacementCharacter;
    i += unit.length;
  }
  return text;
}

bool is_unanswered(const std::vector<ChatTurn>& turns) {
  return !turns.empty() && !turns.back().reply;
}

}  // namespace

struct Chat::Impl : ChatState {
  using ChatState::ChatState;
};

Chat::Chat(Context& context, ChatFormat format)
    : impl_(std::make_unique<Impl>(context, std::move(format))) {}

Chat::~Chat() {
  impl_->context.release(impl_->sequence);
}

const std::string& Chat::system() const noexcept {
  return impl_->system;
}

void Chat::set_system(std::string text) {
  text = valid_utf8(text);
  impl_->require_system_fits(text);
  impl_->system = std::move(text);
}

const std::vector<ChatTurn>& Chat::turns() const noexcept {
  return impl_->turns;
}

void Chat::set(std::string system, std::vector<ChatTurn> turns) {
  for (ChatTurn& turn : turns) {
    require(turn.reply || &turn == &turns.back(), ErrorCode::invalid_argument,
            "turn {} of {} has no reply; only the last may lack one", &turn - turns.data() + 1,
            turns.size());
    turn.user = valid_utf8(turn.user);
    if (turn.reply) turn.reply = valid_utf8(*turn.reply);
  }
  set_system(std::move(system));
  impl_->turns = std::move(turns);
  impl_->first = 0;
  impl_->first_known = false;
}

void Chat::clear() noexcept {
  impl_->turns.clear();
  impl_->first = 0;
  impl_->first_known = true;
}

void Chat::ask(std::string text) {
  ChatTurn turn{valid_utf8(text), std::nullopt};
  impl_->require_message_fits(impl_->prompt(impl_->system, {&turn, 1}));
  if (is_unanswered(impl_->turns))
    impl_->turns.back() = std::move(turn);
  else
    impl_->turns.push_back(std::move(turn));
}

ChatReply Chat::reply(const ChatOptions& options,
                      const std::function<bool(std::string_view)>& on_text) {
  require(!impl_->turns.empty(), ErrorCode::invalid_argument, "there is no message to reply to");
  ChatAnswer answer(*impl_, options, on_text);
  try {
    answer.run();
  } catch (...) {
    if (!answer.result().text.empty()) answer.keep();
    throw;
  }
  const ChatReply& result = answer.result();
  if (result.reason != StopReason::cancelled || !result.text.empty()) answer.keep();
  return result;
}

std::size_t Chat::forgotten() const noexcept {
  return impl_->first;
}

std::int64_t Chat::length() const {
  return impl_->context.length(impl_->sequence);
}

}  // namespace heddle::llm
