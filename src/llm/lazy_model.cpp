#include "llm/lazy_model.h"

#include <optional>

#include "array/launch.h"
#include "array/scopes.h"
#include "exec/parameters.h"
#include "heddle/ops.h"
#include "llm/kv_blocks.h"

namespace heddle::llm {

namespace {

Array zero_state(const TensorSpec& spec) {
  const std::vector<std::byte> bytes(byte_size(spec));
  return Array::from_bytes(spec, bytes);
}

Array ids(const std::vector<std::int32_t>& values) {
  return Array(values, {static_cast<std::int64_t>(values.size())});
}

Array rows_of(const Array& a, std::int64_t begin, std::int64_t end) {
  Dims start(a.ndim(), 0), stop = a.shape();
  start[0] = begin;
  stop[0] = end;
  return slice(a, start, stop);
}

/// `a` with the rows of block `to` replaced by those of block `from`.
Array with_block_copied(const Array& a, std::int64_t from, std::int64_t to) {
  return concatenate({rows_of(a, 0, to * kBlockSize),
                      rows_of(a, from * kBlockSize, (from + 1) * kBlockSize),
                      rows_of(a, (to + 1) * kBlockSize, a.shape(0))});
}

}  // namespace

LazyModel::LazyModel(std::shared_ptr<const Model> model, const PlanShape& shape,
                     LayerDevices devices)
    : model_(std::move(model)), shape_(shape), devices_(std::move(devices)) {
  reset_states();
}

void LazyModel::reset_states() {
  keys_.clear();
  values_.clear();
  for (std::int64_t l = 0; l < model_->config().n_layer; ++l) {
    keys_.push_back(zero_state(shape_.kv_state(model_->config())));
    values_.push_back(zero_state(shape_.kv_state(model_->config())));
  }
}

bool LazyModel::has_lost_states() const {
  if (keys_.empty()) return true;  // taken by a run that did not get far enough to give them back
  try {
    check(keys_);
    check(values_);
    return false;
  } catch (const Error&) {
    return true;
  }
}

/// On the device whose part of the model asks for it. Not kept here: after a loss of the device,
/// there is another copy.
Array LazyModel::weight(const std::string& name) const {
  Device* device = device_in_scope();
  const gguf::Tensor& tensor = model_->file().tensor(name);
  return Array::from_view(model_->parameters()->impl().plain(name, {tensor.dtype, tensor.shape},
                                                             device ? *device : cpu_device()));
}

void LazyModel::run(const StepInputs& in, Head head, float* rows) {
  const BatchArrays batch{
      .tokens = ids(in.tokens),
      .positions = ids(in.positions),
      .seq = ids(in.seq),
      .rows = ids(in.rows),
      .block_table = Array(in.block_table, {shape_.sequences, shape_.blocks_each}),
      .lengths = ids(in.lengths),
      .output_rows = ids(in.output_rows),
  };
  std::vector<Array> keys = std::move(keys_), values = std::move(values_);
  const auto& model_rows = head == Head::logits ? forward : hidden_rows;
  const Array result = model_rows(
      model_->config(), [this](const std::string& name) { return weight(name); }, batch, kBlockSize,
      keys, values, devices_);
  // Kept before they are evaluated: if that fails, what was there has been written over, and is
  // lost.
  keys_ = std::move(keys);
  values_ = std::move(values);
  std::vector<Array> all{result};
  all.insert(all.end(), keys_.begin(), keys_.end());
  all.insert(all.end(), values_.begin(), values_.end());
  const std::map<std::string, std::uint64_t> before = fallbacks_by_op();
  eval(all);
  for (const auto& [op, count] : fallbacks_by_op()) {
    const auto earlier = before.find(op);
    const std::uint64_t more = count - (earlier == before.end() ? 0 : earlier->second);
    if (more > 0) host_ops_[op] += more;
  }
  result.copy_to(std::as_writable_bytes(std::span(rows, static_cast<std::size_t>(result.size()))));
}

void LazyModel::copy_block(std::int64_t from, std::int64_t to) {
  for (std::size_t l = 0; l < keys_.size(); ++l) {
    std::optional<DeviceScope> scope;
    if (!devices_.layers.empty()) scope.emplace(*devices_.layers[l]);
    for (Array* state : {&keys_[l], &values_[l]}) *state = with_block_copied(*state, from, to);
  }
}

}  // namespace heddle::llm
