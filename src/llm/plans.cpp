#include "llm/plans.h"

#include <algorithm>
#include <map>

#include "llm/kv_blocks.h"
#include "llm/tensors.h"

namespace heddle::llm {

namespace {

const char* output_name(Head head) {
  return head == Head::logits ? "logits" : "hidden";
}

}  // namespace

TensorSpec PlanShape::kv_state(const ModelConfig& config) const {
  return {kv_type, {blocks * kBlockSize, config.n_head_kv, config.n_embd_head}};
}

PlanShape shape_of(const ContextOptions& options) {
  const std::int64_t sequences = options.n_seq_step > 0 ? options.n_seq_step : options.n_seq_max;
  const auto blocks_for = [](std::int64_t positions) {
    return (positions + kBlockSize - 1) / kBlockSize;
  };
  const std::int64_t blocks_each = blocks_for(options.n_ctx);
  return {.sequences = sequences,
          .blocks_each = blocks_each,
          .blocks = options.n_kv > 0 ? blocks_for(options.n_kv) : sequences * blocks_each,
          .kv_type = options.kv_type};
}

std::int64_t capacity_for(std::int64_t count) {
  for (const std::int64_t capacity : {1, 2, 4, 8, 32, 128, 512}) {
    if (count <= capacity) return capacity;
  }
  return (count + 511) / 512 * 512;
}

std::int64_t output_capacity(std::int64_t tokens, std::int64_t wanted, const PlanShape& shape) {
  return std::max(capacity_for(std::max<std::int64_t>(wanted, 1)),
                  std::min(tokens, capacity_for(shape.sequences)));
}

std::int64_t width_of(Head head, const ModelConfig& config) {
  return head == Head::logits ? config.n_vocab : config.n_embd;
}

std::string key_state(std::int64_t layer) {
  return "k." + std::to_string(layer);
}
std::string value_state(std::int64_t layer) {
  return "v." + std::to_string(layer);
}

Graph build_graph(const gguf::File& file, const ModelConfig& config, const PlanShape& shape,
                  const LayerDevices& devices, const GraphSize& size) {
  GraphBuilder builder;
  const auto ids = [&](const char* name, std::int64_t count, const char* extent) {
    return builder.input(name, {DType::i32, {count}}, extent);
  };
  const BatchArrays batch{.tokens = ids("tokens", size.tokens, "n_tokens"),
                          .positions = ids("positions", size.tokens, "n_tokens"),
                          .seq = ids("seq", size.tokens, "n_tokens"),
                          .rows = ids("rows", size.tokens, "n_tokens"),
                          .block_table = builder.input(
                              "block_table", {DType::i32, {shape.sequences, shape.blocks_each}}),
                          .lengths = ids("lengths", shape.sequences, ""),
                          .output_rows = ids("output_rows", size.outputs, "n_outputs")};
  std::vector<Array> keys, values;
  for (std::int64_t l = 0; l < config.n_layer; ++l) {
    keys.push_back(builder.state(key_state(l), shape.kv_state(config)));
    values.push_back(builder.state(value_state(l), shape.kv_state(config)));
  }
  std::map<std::string, Array> weights;  // some are read by every layer
  const auto weight = [&](const std::string& name) {
    const auto known = weights.find(name);
    if (known != weights.end()) return known->second;
    const gguf::Tensor& tensor = file.tensor(name);
    return weights.emplace(name, builder.parameter(name, {tensor.dtype, tensor.shape}))
        .first->second;
  };
  const auto& rows = size.head == Head::logits ? forward : hidden_rows;
  builder.output(output_name(size.head),
                 rows(config, weight, batch, kBlockSize, keys, values, devices));
  for (std::int64_t l = 0; l < config.n_layer; ++l) {
    builder.update(key_state(l), keys[static_cast<std::size_t>(l)]);
    builder.update(value_state(l), values[static_cast<std::size_t>(l)]);
  }
  return builder.build();
}

Plans::Plans(std::shared_ptr<const Model> model, const PlanShape& shape,
             const LayerDevices& devices, const CompileOptions& options)
    : model_(std::move(model)), shape_(shape), devices_(devices), options_(options) {}

Plans::Compiled& Plans::compiled(const GraphSize& size) {
  Compiled& known = compiled_[size];
  if (!known.executable) {
    Graph graph = build_graph(model_->file(), model_->config(), shape_, devices_, size);
    auto executable = Executable::compile(std::move(graph), options_, model_->parameters());
    bind_states(*executable);  // which may fail: kept without its states, it would run on others
    known.executable = std::move(executable);
  }
  return known;
}

Executable& Plans::get(const GraphSize& size) {
  return *compiled(size).executable;
}

void Plans::bind_states(Executable& executable) {
  for (const Slot& slot : executable.plan().slots) {
    if (slot.kind != SlotKind::state) continue;
    auto known = states_.find(slot.name);
    if (known == states_.end()) {
      // A step that fails leaves its sequences as long as they were, so what it wrote counts for
      // nobody.
      auto state = make_ref<State>(*slot.device, slot.operand.spec, State::OnFailure::keep);
      known = states_.emplace(slot.name, std::move(state)).first;
    }
    executable.bind_state(slot.name, known->second);
  }
}

void Plans::run(const StepInputs& inputs, Head head, float* rows) {
  const auto tokens = static_cast<std::int64_t>(inputs.tokens.size());
  const auto outputs = static_cast<std::int64_t>(inputs.output_rows.size());
  Compiled& known = compiled({tokens, outputs, head});
  Executable& executable = *known.executable;
  ++known.runs;
  executable.run({{"tokens", {inputs.tokens, {tokens}}},
                  {"positions", {inputs.positions, {tokens}}},
                  {"seq", {inputs.seq, {tokens}}},
                  {"rows", {inputs.rows, {tokens}}},
                  {"block_table", {inputs.block_table, {shape_.sequences, shape_.blocks_each}}},
                  {"lengths", {inputs.lengths, {shape_.sequences}}},
                  {"output_rows", {inputs.output_rows, {outputs}}},
                  {"n_tokens", HostTensor(inputs.n_tokens)},
                  {"n_outputs", HostTensor(inputs.n_outputs)}});
  const auto width = static_cast<std::size_t>(width_of(head, model_->config()));
  for (std::int32_t i = 0; i < inputs.n_outputs; ++i) {
    const std::span<float> row(rows + static_cast<std::size_t>(i) * width, width);
    executable.copy_output_row(output_name(head), i, std::as_writable_bytes(row));
  }
}

void Plans::copy_block(std::int64_t from, std::int64_t to) {
  for (const auto& [name, state] : states_)
    state->copy_rows(from * kBlockSize, to * kBlockSize, kBlockSize);
}

bool Plans::has_lost_states() const {
  return std::ranges::any_of(states_, [](const auto& named) { return named.second->is_lost(); });
}

void Plans::reset_lost_states() {
  for (const auto& [name, state] : states_) {
    if (state->is_lost()) state->reset();
  }
}

std::uint64_t Plans::arena_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [capacities, known] : compiled_) {
    if (known.executable) bytes += known.executable->memory_bytes();
  }
  return bytes;
}

std::map<std::string, std::uint64_t> Plans::host_ops() const {
  std::map<std::string, std::uint64_t> all;
  for (const auto& [capacities, known] : compiled_) {
    if (!known.executable) continue;
    for (const auto& [op, count] : heddle::host_ops(known.executable->plan())) {
      if (known.runs > 0) all[op] += known.runs * count;
    }
  }
  return all;
}

}  // namespace heddle::llm
