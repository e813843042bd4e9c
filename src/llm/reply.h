// One reply in the making: which token comes next, and what text may be given out.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heddle/engine.h"
#include "heddle/grammar.h"
#include "llm/stop_texts.h"

namespace heddle::llm {

/// Not thread-safe.
class Reply {
 public:
  /// Throws invalid_argument for options that make no sense. `index` may be null without a grammar.
  Reply(const Model& model, Request request, std::shared_ptr<const VocabularyIndex> index);

  struct Next {
    std::string text;                  // that may be given out now
    std::vector<SampledToken> tokens;  // that it is made of, if logprobs were asked for
    std::optional<TokenId> token;      // to be computed, unless the reply has ended
    std::optional<StopReason> ended;
  };
  /// Picks a token from what the model says of it. `has_room`: the context can hold it.
  Next next(std::span<const float> logits, bool has_room);

  const Request& request() const noexcept { return request_; }
  std::int64_t generated() const noexcept { return generated_; }

 private:
  struct Held {
    SampledToken token;
    std::size_t begin, end;  // of its text, in bytes of the whole reply
  };
  TokenId pick(std::span<const float> logits);
  void add_text(const std::string& piece, Next& next);
  void finish(StopReason reason, Next& next);
  void release_tokens(Next& next);

  const Tokenizer& tokenizer_;
  Request request_;
  Sampler sampler_;
  Detokenizer detokenizer_;
  StopTexts stops_;
  std::optional<GrammarMatcher> matcher_;
  std::vector<float> masked_;
  std::deque<Held> held_;
  std::size_t made_ = 0, released_ = 0;  // bytes of text
  std::int64_t generated_ = 0;
};

}  // namespace heddle::llm
