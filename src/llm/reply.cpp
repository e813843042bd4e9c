#include "llm/reply.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "llm/logprobs.h"

namespace heddle::llm {

namespace {

constexpr float kNever = -100;  // as a logit bias

SamplerOptions sampler_options(const Request& request, const Tokenizer& tokenizer) {
  SamplerOptions options = request.sampler;
  for (const auto& [id, bias] : options.logit_bias) {
    require(0 <= id && static_cast<std::size_t>(id) < tokenizer.size(), ErrorCode::invalid_argument,
            "logit_bias: token {} is outside the vocabulary of {}", id, tokenizer.size());
  }
  if (!request.ignore_end_tokens) return options;
  for (std::size_t id = 0; id < tokenizer.size(); ++id) {
    if (tokenizer.is_end(static_cast<TokenId>(id)))
      options.logit_bias[static_cast<TokenId>(id)] = kNever;
  }
  return options;
}

GrammarMatcher make_matcher(const Request& request, const Tokenizer& tokenizer,
                            std::shared_ptr<const VocabularyIndex> index) {
  // A Detokenizer drops the first space only of what begins the text.
  const bool has_text = std::ranges::any_of(
      request.prompt, [&](TokenId id) { return !tokenizer.token_bytes(id).empty(); });
  return {request.grammar, std::move(index),
          has_text ? TextStart::after_prompt : TextStart::at_beginning};
}

}  // namespace

Reply::Reply(const Model& model, Request request, std::shared_ptr<const VocabularyIndex> index)
    : tokenizer_(model.tokenizer()),
      request_(std::move(request)),
      sampler_(sampler_options(request_, tokenizer_)),
      detokenizer_(tokenizer_),
      stops_(request_.stop) {
  require(request_.max_tokens >= -1, ErrorCode::invalid_argument,
          "max_tokens is {}; expected -1 (no limit) or more", request_.max_tokens);
  require(request_.top_logprobs >= -1, ErrorCode::invalid_argument,
          "top_logprobs is {}; expected -1 (no logprobs) or more", request_.top_logprobs);
  if (request_.grammar) matcher_ = make_matcher(request_, tokenizer_, std::move(index));
  sampler_.accept_prompt(request_.prompt);
  // So that a character begun in the prompt is whole, and only the text's first space is dropped.
  for (const TokenId token : request_.prompt) detokenizer_.add(token);
}

TokenId Reply::pick(std::span<const float> logits) {
  if (!matcher_) return sampler_.sample(logits);
  if (request_.sampler.temperature == 0) {  // what all would pick is what the allowed ones would
    const TokenId likeliest = sampler_.sample(logits);
    if (matcher_->allows(likeliest)) return likeliest;
  }
  masked_.assign(logits.begin(), logits.end());
  matcher_->mask(masked_);
  return sampler_.sample(masked_);
}

Reply::Next Reply::next(std::span<const float> logits, bool has_room) {
  Next next;
  if (request_.max_tokens == 0) {
    finish(StopReason::max_tokens, next);
    return next;
  }
  if (matcher_ && matcher_->must_end()) {
    finish(StopReason::end_token, next);
    return next;
  }
  const TokenId token = pick(logits);
  if (tokenizer_.is_end(token)) {
    finish(StopReason::end_token, next);
    return next;
  }
  ++generated_;
  sampler_.accept(token);
  if (matcher_) matcher_->accept(token);
  const std::string piece = detokenizer_.add(token);
  if (request_.top_logprobs >= 0) {
    held_.push_back({logprobs_of(logits, token, request_.top_logprobs), made_, 0});
    held_.back().end = made_ + piece.size();
  }
  add_text(piece, next);
  if (stops_.found())
    finish(StopReason::stop_text, next);
  else if (matcher_ && matcher_->must_end())
    finish(StopReason::end_token, next);
  else if (generated_ == request_.max_tokens)
    finish(StopReason::max_tokens, next);
  else if (!has_room)
    finish(StopReason::context_full, next);
  else
    next.token = token;
  release_tokens(next);
  return next;
}

void Reply::add_text(const std::string& piece, Next& next) {
  made_ += piece.size();
  const std::string ready = stops_.add(piece);
  released_ += ready.size();
  next.text += ready;
}

/// Gives out what was held back.
void Reply::finish(StopReason reason, Next& next) {
  if (!stops_.found()) add_text(detokenizer_.finish(), next);
  if (!stops_.found()) {
    const std::string rest = stops_.finish();
    released_ += rest.size();
    next.text += rest;
  }
  next.ended = stops_.found() ? StopReason::stop_text : reason;
  release_tokens(next);
}

/// Tokens come with their text: what a stop text takes away, it takes with its tokens.
void Reply::release_tokens(Next& next) {
  const auto is_out = [&](const Held& held) {
    if (next.ended && stops_.found()) return held.begin < released_;
    return next.ended || held.end <= released_;
  };
  while (!held_.empty() && is_out(held_.front())) {
    next.tokens.push_back(std::move(held_.front().token));
    held_.pop_front();
  }
}

}  // namespace heddle::llm
