#include <chrono>

#include "base/check.h"
#include "heddle/llm.h"
#include "llm/reply.h"

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

/// One call of `generate`.
class Generation {
 public:
  Generation(Context& context, SequenceId sequence, const GenerateOptions& options,
             const std::function<bool(std::string_view)>& on_text)
      : context_(context), sequence_(sequence), options_(options), on_text_(on_text) {}

  GenerateResult run(std::span<const TokenId> given) {
    const std::vector<TokenId> prompt = prompt_or_bos(context_, sequence_, given);
    begin(prompt);
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
  void begin(const std::vector<TokenId>& prompt) {
    const Model& model = context_.model();
    Request request{.prompt = prompt,
                    .max_tokens = options_.max_tokens,
                    .stop = options_.stop,
                    .sampler = options_.sampler,
                    .grammar = options_.grammar};
    std::shared_ptr<const VocabularyIndex> index;
    if (options_.grammar) index = std::make_shared<const VocabularyIndex>(model.tokenizer());
    reply_.emplace(model, std::move(request), std::move(index));
  }

  /// False if it was cancelled.
  bool read_prompt(const std::vector<TokenId>& prompt) {
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
    return !cancelled;
  }

  StopReason write() {
    for (;;) {
      const bool has_room = context_.length(sequence_) < context_.options().n_ctx;
      const Reply::Next next = reply_->next(logits_, has_room);
      result_.generated_tokens = reply_->generated();
      const bool is_silent = next.ended && next.text.empty();
      if (!is_silent && !on_text_(next.text)) return StopReason::cancelled;
      if (next.ended) return *next.ended;
      logits_ = context_.step(sequence_, {&*next.token, 1});
    }
  }

  Context& context_;
  SequenceId sequence_;
  const GenerateOptions& options_;
  const std::function<bool(std::string_view)>& on_text_;
  std::optional<Reply> reply_;
  std::vector<float> logits_;
  GenerateResult result_;
};

}  // namespace

GenerateResult generate(Context& context, SequenceId sequence, std::span<const TokenId> prompt,
                        const GenerateOptions& options,
                        const std::function<bool(std::string_view)>& on_text) {
  return Generation(context, sequence, options, on_text).run(prompt);
}

}  // namespace heddle::llm
