// The compiled forms of a model: one Executable for each capacity of tokens and output rows.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "exec/plan.h"
#include "heddle/llm.h"

namespace heddle::llm {

/// Sizes that all plans of a context share.
struct PlanShape {
  std::int64_t sequences = 1;    // rows of the block table
  std::int64_t blocks_each = 1;  // its columns
  DType kv_type = DType::f16;
  TensorSpec kv_state(const ModelConfig& config) const;  // of one layer's keys, or values
};

/// The smallest of 1, 2, 4, 8, 32, 128, 512, 1024, 1536, ... that holds `count`.
std::int64_t capacity_for(std::int64_t count);

std::string key_state(std::int64_t layer);
std::string value_state(std::int64_t layer);

/// The model's graph for `tokens` tokens and `outputs` rows of logits.
Graph build_graph(const gguf::File& file, const ModelConfig& config, const PlanShape& shape,
                  std::int64_t tokens, std::int64_t outputs);

/// What a step gives a plan, padded to its capacities.
struct StepInputs {
  std::vector<std::int32_t> tokens, positions, seq, rows, block_table, lengths, output_rows;
  std::int32_t n_tokens = 0, n_outputs = 0;
};

/// Not thread-safe.
class Plans {
 public:
  Plans(std::shared_ptr<const Model> model, const PlanShape& shape, const CompileOptions& options);

  Executable& get(std::int64_t tokens, std::int64_t outputs);
  /// Runs a step; logits row i, if `i < inputs.n_outputs`, goes to logits + i * n_vocab.
  void run(const StepInputs& inputs, float* logits);
  void copy_block(std::int64_t from, std::int64_t to);

  /// Whether a device took states along when it was lost; and these anew.
  bool has_lost_states() const;
  void reset_lost_states();

  std::uint64_t arena_bytes() const;

 private:
  void bind_states(Executable& executable);

  std::shared_ptr<const Model> model_;
  PlanShape shape_;
  CompileOptions options_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::shared_ptr<Executable>> executables_;
  std::map<std::string, Ref<State>> states_;
};

/// Bytes of weights that a plan keeps for itself: packed, or carried to a device.
std::uint64_t resident_weight_bytes(const Plan& plan);

}  // namespace heddle::llm
