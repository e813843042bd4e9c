#include "compare.h"

#include <heddle/llm.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "corpus.h"

namespace fable {
namespace {

using namespace heddle;

/// What is between `begin` and `end` counts.
struct Passage {
  std::string text;
  std::size_t begin, end;
};

/// `follows`: a fable told unasked comes after another text.
Passage passage_of(const Fable& fable, bool follows) {
  if (fable.request.empty()) {
    const std::string before = follows ? kEndOfText : "";
    // How stories begin where nothing was said is not their style.
    return {before + fable.story + kEndOfText, before.size() + fable.story.find(' '),
            before.size() + fable.story.size()};
  }
  const std::string before = request_text(fable);
  return {before + fable.story + kTurnEnd, before.size(), before.size() + fable.story.size()};
}

double nats_of(std::span<const float> logits, TokenId id) {
  const float top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit} - top);
  return std::log(sum) + top - logits[static_cast<std::size_t>(id)];
}

class Judge {
 public:
  explicit Judge(const std::filesystem::path& path)
      : model_(llm::Model::open(path)), context_(model_, options()), sequence_(context_.create()) {}

  void add(const Passage& passage, HeldOutLoss& loss) {
    const Tokenizer& tokenizer = model_->tokenizer();
    const auto ids = tokenizer.encode(passage.text, {.add_special = false, .parse_special = true});
    context_.truncate(sequence_, 0);
    const std::vector<float> logits = context_.step(sequence_, ids, true);
    const auto width = static_cast<std::size_t>(model_->config().n_vocab);
    std::size_t at = tokenizer.token_bytes(ids[0], true).size();
    for (std::size_t i = 1; i < ids.size(); ++i) {
      if (at >= passage.begin) {
        loss.nats += nats_of(std::span(logits).subspan((i - 1) * width, width), ids[i]);
        ++loss.tokens;
      }
      at += tokenizer.token_bytes(ids[i], true).size();
    }
    loss.bytes += passage.end - passage.begin;
  }

 private:
  static llm::ContextOptions options() {
    llm::ContextOptions options;
    options.kv_type = DType::f32;
    return options;
  }

  std::shared_ptr<llm::Model> model_;
  llm::Context context_;
  llm::SequenceId sequence_;
};

}  // namespace

HeldOutLoss held_out_loss(const std::filesystem::path& model, std::uint64_t seed, int stories) {
  Judge judge(model);
  HeldOutLoss loss;
  for (int i = 0; i < stories; ++i) {
    Random random = Random::of(seed, static_cast<std::uint64_t>(Purpose::held_out),
                               static_cast<std::uint64_t>(i));
    const Fable fable = i % 2 == 0 ? write_fable_on_request(random) : write_fable_unasked(random);
    judge.add(passage_of(fable, i % 4 == 3), loss);
    loss.grammar_nats += fable.nats;
  }
  return loss;
}

}  // namespace fable
