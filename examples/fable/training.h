// A training run that can stop anywhere and go on to the same bytes.
#pragma once

#include <heddle/compile.h>
#include <heddle/optimizers.h>

#include <cstdint>
#include <filesystem>
#include <utility>
#include <vector>

#include "corpus.h"
#include "model.h"

namespace fable {

/// What decides the bytes of the result.
struct TrainingPlan {
  std::uint64_t seed = 1;
  int steps = 0;
  ModelShape shape;  // n_vocab: at most so many tokens
  int vocabulary_texts = 0;
  int rows = 0, length = 0;  // of a batch; length in tokens
  double rate = 0;           // the greatest
  int held_out_every = 0;    // steps

  static TrainingPlan full();
  /// Seconds instead of minutes, for trying things out. The result tells no stories.
  static TrainingPlan fast();
};

struct History {
  std::vector<float> losses;                    // of each step, before it
  std::vector<std::pair<int, float>> held_out;  // (steps done, loss)
};

class Training {
 public:
  explicit Training(const TrainingPlan& plan);

  /// The state as a .safetensors file: parameters, optimiser, history, and what of the plan must be
  /// the same. The file is replaced whole or not at all, and on the disk when this returns.
  void save(const std::filesystem::path& checkpoint) const;
  /// Throws io for a file that is damaged, invalid_argument for one of another plan.
  void load(const std::filesystem::path& checkpoint);

  bool is_done() const { return steps_done() == plan_.steps; }
  int steps_done() const { return static_cast<int>(history_.losses.size()); }
  /// One step; measures the held-out loss where that is due. Throws backend for a loss that is not
  /// finite.
  void step();

  const TrainingPlan& plan() const { return plan_; }
  const Corpus& corpus() const { return corpus_; }
  const Model& model() const { return model_; }
  const History& history() const { return history_; }

 private:
  float held_out_loss() const;

  TrainingPlan plan_;
  Corpus corpus_;
  Model model_;
  heddle::optim::AdamW optimizer_;
  History history_;
  heddle::ArraysFunction train_step_;     // (tokens) -> loss
  heddle::ArraysFunction loss_of_batch_;  // (parameters..., tokens) -> loss
};

}  // namespace fable
