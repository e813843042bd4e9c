// Greedy text in every way a context can be made to tell it.
#pragma once

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "heddle/llm.h"
#include "support/file_contents.h"
#include "support/shared_files.h"

namespace heddle::test {

struct Telling {
  bool lazy = false;
  int threads = 1;
  std::int64_t chunk = 512;
  bool in_company = false;  // beside three other sequences, in the same steps
  DType kv_type = DType::f16;
};

inline std::string to_string(const Telling& t) {
  return std::string(t.lazy ? "lazy" : "planned") + ", threads " + std::to_string(t.threads) +
         ", chunk " + std::to_string(t.chunk) + (t.in_company ? ", in company" : ", alone") +
         ", kv " + std::string(heddle::to_string(t.kv_type));
}

/// All combinations of executor, threads, chunk and company.
inline std::vector<Telling> all_tellings() {
  std::vector<Telling> all;
  for (const bool lazy : {false, true}) {
    for (const int threads : {1, 2}) {
      for (const std::int64_t chunk : {1, 7, 512}) {
        for (const bool in_company : {false, true})
          all.push_back({lazy, threads, chunk, in_company});
      }
    }
  }
  return all;
}

inline llm::ContextOptions options_for(const Telling& telling) {
  llm::ContextOptions options;
  options.n_ctx = 512;
  options.n_seq_max = telling.in_company ? 4 : 1;
  options.kv_type = telling.kv_type;
  options.chunk = telling.chunk;
  options.threads = telling.threads;
  options.lazy = telling.lazy;
  return options;
}

/// The likeliest continuations of several prompts, grown side by side, each until its end token or
/// `most` new tokens. Every step goes through one batch.
inline std::vector<std::vector<TokenId>> greedy(llm::Context& context,
                                                std::vector<std::vector<TokenId>> prompts,
                                                std::size_t most) {
  const auto n_vocab = static_cast<std::size_t>(context.model().config().n_vocab);
  std::vector<std::vector<TokenId>> told = prompts, next = prompts;
  std::vector<llm::SequenceId> sequences;
  for (std::size_t i = 0; i < prompts.size(); ++i) sequences.push_back(context.create());
  std::vector<bool> ended(prompts.size());
  for (std::size_t step = 0; step < most; ++step) {
    std::vector<llm::StepItem> items;
    std::vector<std::size_t> who;
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      if (ended[i]) continue;
      items.push_back({sequences[i], next[i], false});
      who.push_back(i);
    }
    if (items.empty()) break;
    const std::vector<float> logits = context.step(items);
    for (std::size_t k = 0; k < who.size(); ++k) {
      const auto row = logits.begin() + static_cast<std::ptrdiff_t>(k * n_vocab);
      const auto best = static_cast<TokenId>(
          std::max_element(row, row + static_cast<std::ptrdiff_t>(n_vocab)) - row);
      if (context.model().tokenizer().is_end(best)) {
        ended[who[k]] = true;
        continue;
      }
      told[who[k]].push_back(best);
      next[who[k]] = {best};
    }
  }
  for (const llm::SequenceId sequence : sequences) context.release(sequence);
  return told;
}

/// A small model with its reference text.
struct Story {
  std::shared_ptr<llm::Model> model;
  std::vector<TokenId> prompt;
  std::string text;  // greedy, prompt included
  std::size_t most;  // new tokens
};

inline std::string story_text(const std::filesystem::path& path) {
  const std::string text = contents(path);
  return text.substr(0, text.find_last_not_of('\n') + 1);
}

inline Story fable() {
  auto model = llm::Model::bundled();
  auto prompt = model->tokenizer().encode("Once upon a time");
  return {std::move(model), std::move(prompt),
          story_text(std::filesystem::path(HEDDLE_SOURCE_DIR) / "models/fable-1m.greedy.txt"), 400};
}

/// From ../shared.
inline Story stories260K() {
  auto model = llm::Model::open(shared_dir() / "models/stories260K.gguf");
  std::vector<TokenId> prompt{model->tokenizer().bos().value()};
  return {std::move(model), std::move(prompt),
          story_text(shared_dir() / "models/stories260K.greedy.txt"), 257};
}

}  // namespace heddle::test
