#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "heddle/llm.h"
#include "llm/stop_texts.h"

namespace heddle::llm {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::vector<TokenId> prompt_or_bos(const Context& context, SequenceId sequence,
                                   std::span<const TokenId> prompt) {
  if (!prompt.empty()) return {prompt.begin(), prompt.end()};
  const std::int64_t length = context.length(sequence);
  const std::optional<TokenId> bos = context.model().tokenizer().bos();
  require(length == 0, ErrorCode::invalid_argument,
          "the prompt is empty, and sequence {} has {} tokens already; at least one more is needed",
          sequence, length);
  require(
      bos.has_value(), ErrorCode::invalid_argument,
      "the prompt is empty, and the vocabulary has no beginning-of-sequence token to put there");
  return {*bos};
}

/// A Detokenizer drops the first space only of what begins the text.
TextStart start_after(const Tokenizer& tokenizer, std::span<const TokenId> prompt) {
  const bool has_text = std::any_of(prompt.begin(), prompt.end(),
                                    [&](TokenId id) { return !tokenizer.token_bytes(id).empty(); });
  return has_text ? TextStart::after_prompt : TextStart::at_beginning;
}

/// One call of `generate`.
class Generation {
 public:
  Generation(Context& context, SequenceId sequence, const GenerateOptions& options,
             const std::function<bool(std::string_view)>& on_text)
      : context_(context),
        sequence_(sequence),
        options_(options),
        on_text_(on_text),
        sampler_(options.sampler),
        detokenizer_(context.model().tokenizer()),
        stops_(options.stop) {}

  GenerateResult run(std::span<const TokenId> given) {
    const std::vector<TokenId> prompt = prompt_or_bos(context_, sequence_, given);
    if (options_.grammar) {
      const Tokenizer& tokenizer = context_.model().tokenizer();
      matcher_.emplace(options_.grammar, std::make_shared<VocabularyIndex>(tokenizer),
                       start_after(tokenizer, prompt));
    }
    result_.prompt_tokens = static_cast<std::int64_t>(prompt.size());
    const Clock::time_point start = Clock::now();
    const bool ready = read_prompt(prompt);
    result_.prompt_seconds = seconds_since(start);
    if (!ready) {
      result_.reason = StopReason::cancelled;
      return result_;
    }
    const Clock::time_point generation = Clock::now();
    result_.reason = write();
    result_.generate_seconds = seconds_since(generation);
    return result_;
  }

 private:
  /// False if it was cancelled.
  bool read_prompt(const std::vector<TokenId>& prompt) {
    sampler_.accept_prompt(prompt);
    const StepItem item{sequence_, prompt, false};
    bool cancelled = false;
    Context::Progress progress;
    if (options_.progress) {
      progress = [&](std::int64_t done, std::int64_t all) {
        cancelled = !options_.progress(done, all);
        return !cancelled;
      };
    }
    try {
      logits_ = context_.step({&item, 1}, progress);
    } catch (const Error& error) {
      if (cancelled && error.code() == ErrorCode::cancelled) return false;
      throw;
    }
    // So that a character begun in the prompt is whole, and only the text's first space is dropped.
    for (const TokenId token : prompt) detokenizer_.add(token);
    return !cancelled;
  }

  StopReason write() {
    while (result_.generated_tokens != options_.max_tokens) {
      if (matcher_ && matcher_->must_end()) return finish(StopReason::end_token);
      if (matcher_) matcher_->mask(logits_);
      const TokenId token = sampler_.sample(logits_);
      if (matcher_) matcher_->accept(token);
      if (context_.model().tokenizer().is_end(token)) return finish(StopReason::end_token);
      ++result_.generated_tokens;
      sampler_.accept(token);
      if (!on_text_(stops_.add(detokenizer_.add(token)))) return StopReason::cancelled;
      if (stops_.found()) return StopReason::stop_text;
      if (result_.generated_tokens == options_.max_tokens) break;
      if (context_.length(sequence_) >= context_.options().n_ctx)
        return finish(StopReason::context_full);
      logits_ = context_.step(sequence_, {&token, 1});
    }
    return finish(StopReason::max_tokens);
  }

  /// Gives out what was held back.
  StopReason finish(StopReason reason) {
    std::string text = stops_.add(detokenizer_.finish());
    if (!stops_.found()) text += stops_.finish();
    if (!text.empty() && !on_text_(text)) return StopReason::cancelled;
    return stops_.found() ? StopReason::stop_text : reason;
  }

  Context& context_;
  SequenceId sequence_;
  const GenerateOptions& options_;
  const std::function<bool(std::string_view)>& on_text_;
  Sampler sampler_;
  Detokenizer detokenizer_;
  StopTexts stops_;
  std::optional<GrammarMatcher> matcher_;
  std::vector<float> logits_;
  GenerateResult result_;
};

}  // namespace

GenerateResult generate(Context& context, SequenceId sequence, std::span<const TokenId> prompt,
                        const GenerateOptions& options,
                        const std::function<bool(std::string_view)>& on_text) {
  require(options.max_tokens >= -1, ErrorCode::invalid_argument,
          "max_tokens is {}; expected -1 (no limit) or more", options.max_tokens);
  return Generation(context, sequence, options, on_text).run(prompt);
}

}  // namespace heddle::llm
