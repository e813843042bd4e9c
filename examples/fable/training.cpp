#include "training.h"

#include <heddle/error.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <span>
#include <string>

namespace fable {
namespace {

using namespace heddle;

constexpr int kHeldOutBatches = 4;
constexpr int kWarmUp = 40;  // steps
constexpr double kLargestGradient = 1.0;
// The last tenth of the steps sees fewer rows, of more positions: later ones are learned soon once
// the first are known, and cost more.
constexpr int kLongPart = 10, kLonger = 2;

/// Up in a line, level, and in the last three tenths down along a cosine to a twentieth.
optim::Schedule schedule_of(const TrainingPlan& plan) {
  const int warm_up = std::clamp(plan.steps / 4, 1, kWarmUp),
            decay = std::max(plan.steps * 3 / 10, 1);
  return optim::join_schedules(
      {optim::linear_schedule(plan.rate / (warm_up + 1), plan.rate, warm_up),
       optim::constant(plan.rate), optim::cosine_decay(plan.rate, decay, plan.rate / 20)},
      {warm_up, std::max(warm_up, plan.steps - decay)});
}

ModelShape shape_of(const TrainingPlan& plan, const Corpus& corpus) {
  ModelShape shape = plan.shape;
  shape.n_vocab = static_cast<int>(corpus.vocabulary().tokens.size());
  return shape;
}

/// What a checkpoint says of its plan, by name.
std::vector<std::pair<std::string, std::string>> described(const TrainingPlan& plan) {
  const ModelShape& s = plan.shape;
  std::string shape;
  for (const int extent : {s.n_vocab, s.n_embd, s.n_layer, s.n_head, s.n_head_kv, s.n_ff}) {
    shape += (shape.empty() ? "" : " ") + std::to_string(extent);
  }
  return {{"seed", std::to_string(plan.seed)},
          {"steps", std::to_string(plan.steps)},
          {"shape", shape},
          {"batch", std::to_string(plan.rows) + " x " + std::to_string(plan.length)}};
}

/// FNV-1a, of eight bytes at a time: against damage, not against malice.
class Digest {
 public:
  void add(std::span<const std::byte> bytes) {
    for (std::size_t i = 0; i < bytes.size(); i += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + i, std::min<std::size_t>(8, bytes.size() - i));
      hash_ = (hash_ ^ word) * 0x100000001B3u;
      hash_ ^= hash_ >> 32;
    }
  }
  std::string text() const { return std::to_string(hash_); }

 private:
  std::uint64_t hash_ = 0xCBF29CE484222325u;
};

std::string digest_of(const ArrayMap& arrays) {
  Digest digest;
  for (const auto& [name, array] : std::map<std::string, Array>(arrays.begin(), arrays.end())) {
    digest.add(std::as_bytes(std::span(name)));
    digest.add(array.to_bytes());
  }
  return digest.text();
}

struct HistoryArrays {
  Array losses, held_out_steps, held_out;
  auto leaves() const {
    return nn::named("losses", losses, "held_out_steps", held_out_steps, "held_out", held_out);
  }
};

HistoryArrays arrays_of(const History& history) {
  std::vector<std::int32_t> steps;
  std::vector<float> losses;
  for (const auto& [step, loss] : history.held_out) {
    steps.push_back(step);
    losses.push_back(loss);
  }
  const auto row = [](const auto& values) {
    return Array(values, {static_cast<std::int64_t>(values.size())});
  };
  return {row(history.losses), row(steps), row(losses)};
}

template <class T>
std::vector<T> values_of(const ArrayMap& arrays, const std::string& name, const std::string& file) {
  const auto found = arrays.find("history." + name);
  if (found == arrays.end() || found->second.dtype() != dtype_of<T>()) {
    throw Error(ErrorCode::io, file + ": the checkpoint has no history." + name);
  }
  return found->second.to_vector<T>();
}

History history_of(const ArrayMap& arrays, const std::string& file) {
  History history{values_of<float>(arrays, "losses", file), {}};
  const auto steps = values_of<std::int32_t>(arrays, "held_out_steps", file);
  const auto losses = values_of<float>(arrays, "held_out", file);
  if (steps.size() != losses.size()) {
    throw Error(ErrorCode::io, file + ": the checkpoint has " + std::to_string(losses.size()) +
                                   " held-out losses of " + std::to_string(steps.size()) +
                                   " steps");
  }
  for (std::size_t i = 0; i < steps.size(); ++i) history.held_out.emplace_back(steps[i], losses[i]);
  return history;
}

void check_plan(const TrainingPlan& plan,
                const std::unordered_map<std::string, std::string>& metadata,
                const std::string& file) {
  for (const auto& [name, wanted] : described(plan)) {
    const auto found = metadata.find(name);
    if (found == metadata.end()) {
      throw Error(ErrorCode::io,
                  file + ": no checkpoint of this program: it does not say its " + name);
    }
    if (found->second != wanted) {
      throw Error(ErrorCode::invalid_argument, file + ": the checkpoint is of a run whose " + name +
                                                   " is " + found->second + ", not " + wanted +
                                                   ": resume with what it was begun with");
    }
  }
}

}  // namespace

TrainingPlan TrainingPlan::full() {
  return {.steps = 1600,
          .shape = {.n_vocab = 1024},
          .vocabulary_texts = 5000,
          .rows = 8,
          .length = 256,
          .rate = 3e-3,
          .held_out_every = 50};
}

TrainingPlan TrainingPlan::fast() {
  return {.steps = 40,
          .shape =
              {.n_vocab = 400, .n_embd = 32, .n_layer = 2, .n_head = 2, .n_head_kv = 1, .n_ff = 64},
          .vocabulary_texts = 200,
          .rows = 4,
          .length = 64,
          .rate = 1e-2,
          .held_out_every = 10};
}

Training::Training(const TrainingPlan& plan)
    : plan_(plan),
      corpus_(plan.seed, plan.vocabulary_texts, plan.shape.n_vocab),
      model_(shape_of(plan, corpus_), plan.seed),
      optimizer_(schedule_of(plan),
                 {.betas = {0.9, 0.98}, .weight_decay = 0.05, .bias_correction = true}) {
  optimizer_.init(model_);
  eval(model_, optimizer_);
  train_step_ = compile(
      [this](const std::vector<Array>& batch) {
        const auto loss_of = [](const Model& model, const Array& tokens) {
          return model.loss(tokens);
        };
        const auto [loss, gradients] = value_and_grad(loss_of, model_, batch[0]);
        const auto [clipped, norm] = optim::clip_grad_norm(gradients, kLargestGradient);
        optimizer_.update(model_, clipped);
        return std::vector<Array>{loss};
      },
      false, nn::state_of(model_, optimizer_));
  // Parameters are arguments, so that one plan serves them as they change.
  loss_of_batch_ = compile([model = model_](const std::vector<Array>& arguments) {
    Model now = model;
    auto next = arguments.begin();
    visit_mutable_leaves(now, [&](Array& leaf) { leaf = *next++; });
    return std::vector<Array>{now.loss(*next)};
  });
}

void Training::step() {
  if (history_.held_out.empty()) history_.held_out.emplace_back(0, held_out_loss());
  const std::int64_t first_row = std::int64_t{steps_done()} * plan_.rows;
  const int times = steps_done() < plan_.steps - plan_.steps / kLongPart ? 1 : kLonger;
  const Array batch =
      corpus_.rows(Purpose::training, first_row, plan_.rows / times, plan_.length * times + 1);
  const float loss = train_step_({batch})[0].item<float>();
  if (!std::isfinite(loss)) {
    throw Error(ErrorCode::backend, "the loss of step " + std::to_string(steps_done() + 1) +
                                        " is not finite: the learning rate is too high");
  }
  history_.losses.push_back(loss);
  if (steps_done() % plan_.held_out_every == 0 || is_done()) {
    history_.held_out.emplace_back(steps_done(), held_out_loss());
  }
}

float Training::held_out_loss() const {
  double sum = 0;
  for (int i = 0; i < kHeldOutBatches; ++i) {
    const Array batch =
        corpus_.rows(Purpose::held_out, i * plan_.rows, plan_.rows, plan_.length + 1);
    std::vector<Array> arguments = leaves_of(model_);
    arguments.push_back(batch);
    sum += loss_of_batch_(arguments)[0].item<float>();
  }
  return static_cast<float>(sum / kHeldOutBatches);
}

void Training::save(const std::filesystem::path& checkpoint) const {
  const HistoryArrays history = arrays_of(history_);
  const nn::NamedArrays arrays =
      nn::parameters(nn::named("model", model_, "optimizer", optimizer_, "history", history));
  std::unordered_map<std::string, std::string> metadata;
  for (const auto& [name, text] : described(plan_)) metadata.emplace(name, text);
  metadata.emplace("digest", digest_of(ArrayMap(arrays.begin(), arrays.end())));
  nn::save_arrays(checkpoint, arrays, metadata);
}

void Training::load(const std::filesystem::path& checkpoint) {
  const std::string file = checkpoint.string();
  auto [arrays, metadata] = load_safetensors(checkpoint);
  check_plan(plan_, metadata, file);
  if (metadata["digest"] != digest_of(arrays)) {
    throw Error(ErrorCode::io, file + ": the checkpoint is damaged: its digest does not fit");
  }
  History history = history_of(arrays, file);
  HistoryArrays history_arrays = arrays_of(history);
  auto tree = nn::named("model", model_, "optimizer", optimizer_, "history", history_arrays);
  nn::load_parameters(tree, arrays);
  history_ = std::move(history);
}

}  // namespace fable
