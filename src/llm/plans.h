// The compiled forms of a model: one Executable for each capacity of tokens and output rows.
#pragma once

#include <map>
#include <memory>
#include <string>
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

/// The model's graph for `tokens` tokens and `outputs` rows of logits, its parts pinned to their
/// devices.
Graph build_graph(const gguf::File& file, const ModelConfig& config, const PlanShape& shape,
                  const LayerDevices& devices, std::int64_t tokens, std::int64_t outputs);

/// What a step gives a plan, padded to its capacities.
struct StepInputs {
  std::vector<std::int32_t> tokens, positions, seq, rows, block_table, lengths, output_rows;
  std::int32_t n_tokens = 0, n_outputs = 0;
};

/// Not thread-safe.
class Plans {
 public:
  Plans(std::shared_ptr<const Model> model, const PlanShape& shape, const LayerDevices& devices,
        const CompileOptions& options);

  Executable& get(std::int64_t tokens, std::int64_t outputs);
  /// Runs a step; logits row i, if `i < inputs.n_outputs`, goes to logits + i * n_vocab.
  void run(const StepInputs& inputs, float* logits);
  void copy_block(std::int64_t from, std::int64_t to);

  /// Whether a device took states along when it was lost; and these anew.
  bool has_lost_states() const;
  void reset_lost_states();

  std::uint64_t arena_bytes() const;
  /// Ops that ran on the CPU though another device was asked for, by name.
  std::map<std::string, std::uint64_t> host_ops() const;

 private:
  struct Compiled {
    std::shared_ptr<Executable> executable;
    std::uint64_t runs = 0;
  };
  Compiled& compiled(std::int64_t tokens, std::int64_t outputs);
  void bind_states(Executable& executable);

  std::shared_ptr<const Model> model_;
  PlanShape shape_;
  LayerDevices devices_;
  CompileOptions options_;
  std::map<std::pair<std::int64_t, std::int64_t>, Compiled> compiled_;
  std::map<std::string, Ref<State>> states_;
};

}  // namespace heddle::llm
