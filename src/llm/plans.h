// The compiled forms of a model: one Executable for each capacity of tokens and output rows.
#pragma once

#include <compare>
#include <map>
#include <memory>
#include <string>

#include "exec/plan.h"
#include "heddle/llm.h"

namespace heddle::llm {

/// Sizes that all plans of a context share.
struct PlanShape {
  std::int64_t sequences = 1;    // rows of the block table: the sequences of one step
  std::int64_t blocks_each = 1;  // its columns
  std::int64_t blocks = 1;       // that there are, of all sequences
  DType kv_type = DType::f16;
  TensorSpec kv_state(const ModelConfig& config) const;  // of one layer's keys, or values
};

/// For options whose n_ctx is known.
PlanShape shape_of(const ContextOptions& options);

/// The smallest of 1, 2, 4, 8, 32, 128, 512, 1024, 1536, ... that holds `count`.
std::int64_t capacity_for(std::int64_t count);
/// Rows of output that a plan for `tokens` tokens has, so that `wanted` fit. Those that a step of
/// all sequences may want always do: few plans then serve every mix of prompts and replies.
std::int64_t output_capacity(std::int64_t tokens, std::int64_t wanted, const PlanShape& shape);

/// What a step gives for the tokens asked for.
enum class Head {
  logits,  // [R, n_vocab]
  hidden,  // [R, n_embd], what the last norm makes
};
std::int64_t width_of(Head head, const ModelConfig& config);

std::string key_state(std::int64_t layer);
std::string value_state(std::int64_t layer);

/// Which of a model's graphs.
struct GraphSize {
  std::int64_t tokens = 1, outputs = 1;
  Head head = Head::logits;
  auto operator<=>(const GraphSize&) const = default;
};

/// The model's graph, its parts pinned to their devices.
Graph build_graph(const gguf::File& file, const ModelConfig& config, const PlanShape& shape,
                  const LayerDevices& devices, const GraphSize& size);

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

  Executable& get(const GraphSize& size);
  /// Runs a step; row i of the output, if `i < inputs.n_outputs`, goes to rows + i * width.
  void run(const StepInputs& inputs, Head head, float* rows);
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
  Compiled& compiled(const GraphSize& size);
  void bind_states(Executable& executable);

  std::shared_ptr<const Model> model_;
  PlanShape shape_;
  LayerDevices devices_;
  CompileOptions options_;
  std::map<GraphSize, Compiled> compiled_;
  std::map<std::string, Ref<State>> states_;
};

}  // namespace heddle::llm
