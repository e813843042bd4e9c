#include "llm/chat_answer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "heddle/error.h"

namespace heddle::llm {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

ChatAnswer::ChatAnswer(ChatState& state, const ChatOptions& options, const OnText& on_text)
    : state_(state),
      options_(options),
      on_text_(on_text),
      sampler_(options.generate.sampler),
      detokenizer_(state.context.model().tokenizer()),
      stops_(options.generate.stop) {}

void ChatAnswer::run() {
  const std::size_t first = state_.next_first();
  prompt_ = state_.prompt_from(first);
  state_.require_message_fits(prompt_);
  move_window(first);
  result_.reused_tokens = static_cast<std::int64_t>(state_.held_of(prompt_.tokens));
  sampler_.accept_prompt(prompt_.tokens);
  if (!read(prompt_.tokens)) {
    result_.reason = StopReason::cancelled;
    return;
  }
  const Clock::time_point start = Clock::now();
  const double read_before = result_.prompt_seconds;
  result_.reason = write();
  result_.generate_seconds = seconds_since(start) - (result_.prompt_seconds - read_before);
}

/// To where `prompt_` begins.
void ChatAnswer::move_window(std::size_t first) {
  const std::size_t gone = first - state_.first;
  state_.first = first;
  state_.first_known = true;
  if (gone == 0 || !options_.on_forget) return;
  const std::size_t all = prompt_.tokens.size() + tokens_.size();
  // The last one is read in any case: what follows it is asked.
  const std::size_t kept = std::min(state_.held_of(prompt_.tokens), all - 1);
  options_.on_forget({.turns = gone,
                      .turns_left = state_.turns.size() - first,
                      .tokens_read = static_cast<std::int64_t>(all - kept)});
}

bool ChatAnswer::read(const std::vector<TokenId>& tokens) {
  const Clock::time_point start = Clock::now();
  const std::size_t kept = std::min(state_.held_of(tokens), tokens.size() - 1);
  state_.truncate(kept);
  bool cancelled = false;
  Context::Progress progress;
  if (options_.generate.progress) {
    progress = [&](std::int64_t done, std::int64_t all) {
      cancelled = !options_.generate.progress(done, all);
      return !cancelled;
    };
  }
  try {
    step(std::span(tokens).subspan(kept), progress);
  } catch (const Error& error) {
    if (cancelled && error.code() == ErrorCode::cancelled) return false;
    throw;
  }
  result_.prompt_tokens += static_cast<std::int64_t>(tokens.size() - kept);
  result_.prompt_seconds += seconds_since(start);
  return !cancelled;
}

void ChatAnswer::step(std::span<const TokenId> tokens, const Context::Progress& progress) {
  const StepItem item{state_.sequence, tokens, false};
  try {
    logits_ = state_.context.step({&item, 1}, progress);
  } catch (const Error& error) {
    // What the sequence had may have gone with a device.
    if (error.code() != ErrorCode::cancelled) state_.truncate(0);
    throw;
  }
  state_.held.insert(state_.held.end(), tokens.begin(), tokens.end());
}

StopReason ChatAnswer::write() {
  const std::int64_t most = options_.generate.max_tokens;
  while (result_.generated_tokens != most) {
    const TokenId token = sampler_.sample(logits_);
    if (state_.context.model().tokenizer().is_end(token)) return stop(StopReason::end_token);
    ++result_.generated_tokens;
    sampler_.accept(token);
    tokens_.push_back(token);
    if (!give(stops_.add(detokenizer_.add(token)))) return stop(StopReason::cancelled);
    if (stops_.found()) return StopReason::stop_text;
    if (result_.generated_tokens == most) break;
    if (static_cast<std::int64_t>(state_.held.size()) < state_.n_ctx()) {
      step({&tokens_.back(), 1}, nullptr);
    } else if (const std::optional<StopReason> reason = make_room()) {
      return stop(*reason);
    }
  }
  return stop(StopReason::max_tokens);
}

std::optional<StopReason> ChatAnswer::make_room() {
  if (state_.first == state_.last()) return StopReason::context_full;
  const std::size_t first =
      state_.first_with_room(state_.first + 1, static_cast<std::int64_t>(tokens_.size()));
  ChatPrompt prompt = state_.prompt_from(first);
  std::vector<TokenId> all = prompt.tokens;
  all.insert(all.end(), tokens_.begin(), tokens_.end());
  if (static_cast<std::int64_t>(all.size()) > state_.n_ctx()) return StopReason::context_full;
  prompt_ = std::move(prompt);
  move_window(first);
  return read(all) ? std::nullopt : std::optional(StopReason::cancelled);
}

bool ChatAnswer::give(std::string_view text) {
  result_.text += text;
  return on_text_(text);
}

/// Gives out what was held back, unless nobody listens any more.
StopReason ChatAnswer::stop(StopReason reason) {
  std::string text = stops_.add(detokenizer_.finish());
  if (stops_.found()) {
    if (reason != StopReason::cancelled) reason = StopReason::stop_text;
  } else {
    text += stops_.finish();
    text_is_whole_ = reason != StopReason::cancelled || text.empty();
  }
  const bool silent = text.empty() || reason == StopReason::cancelled;
  return silent || give(text) ? reason : StopReason::cancelled;
}

void ChatAnswer::keep() {
  state_.turns.back().reply = result_.text;
  state_.told.clear();
  if (!text_is_whole_) return;
  prompt_.add({result_.text, tokens_, true});
  state_.told = std::move(prompt_.segments);
}

}  // namespace heddle::llm
