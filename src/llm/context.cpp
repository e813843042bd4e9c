#include <algorithm>
#include <mutex>

#include "base/check.h"
#include "base/system.h"
#include "base/team.h"
#include "heddle/ops.h"
#include "llm/kv_blocks.h"
#include "llm/layer_devices.h"
#include "llm/lazy_model.h"
#include "llm/memory_check.h"
#include "llm/plans.h"

namespace heddle::llm {

namespace {

/// One token of a step, and where it goes.
struct Token {
  SequenceId sequence;
  TokenId id;
  std::int64_t position;
  bool wants_logits;
};

std::int64_t count_outputs(std::span<const Token> tokens) {
  return std::count_if(tokens.begin(), tokens.end(), [](const Token& t) { return t.wants_logits; });
}

}  // namespace

struct Context::Impl {
  std::shared_ptr<const Model> model;
  ContextOptions options;
  LayerDevices devices;
  PlanShape shape;
  KvBlocks blocks;
  Plans plans;
  std::unique_ptr<LazyModel> lazy;
  Team team;
  std::mutex mutex;

  Impl(std::shared_ptr<const Model> m, const ContextOptions& o, LayerDevices d)
      : model(std::move(m)),
        options(o),
        devices(std::move(d)),
        shape(shape_of(o)),
        blocks(o.n_seq_max, shape.blocks_each, shape.blocks),
        plans(model, shape, devices, o.compile),
        team(o.threads) {
    if (options.lazy) lazy = std::make_unique<LazyModel>(model, shape, devices);
  }

  /// KV states that went with a device begin anew, without what sequences had in them.
  void replace_lost_states() {
    if (!(lazy ? lazy->has_lost_states() : plans.has_lost_states())) return;
    blocks.forget();
    lazy ? lazy->reset_states() : plans.reset_lost_states();
  }

  void check(std::span<const StepItem> items) const {
    std::vector<std::int64_t> added(static_cast<std::size_t>(blocks.sequences()));
    std::int64_t stepped = 0;
    for (const StepItem& item : items) {
      const std::int64_t length = blocks.length(item.sequence);
      blocks.check_there(item.sequence);
      auto& more = added[static_cast<std::size_t>(item.sequence)];
      stepped += more == 0 && !item.tokens.empty();
      more += static_cast<std::int64_t>(item.tokens.size());
      require(length + more <= options.n_ctx, ErrorCode::invalid_argument,
              "sequence {}: {} tokens after the {} it has go beyond its context of {} (-c)",
              item.sequence, more, length, options.n_ctx);
      for (const TokenId id : item.tokens) {
        require(0 <= id && id < model->config().n_vocab, ErrorCode::invalid_argument,
                "sequence {}: token {} is outside the vocabulary of {}", item.sequence, id,
                model->config().n_vocab);
      }
    }
    require(stepped <= shape.sequences, ErrorCode::invalid_argument,
            "a step of {} sequences; this context takes {} at once (n_seq_step)", stepped,
            shape.sequences);
  }

  std::vector<Token> flatten(std::span<const StepItem> items) const {
    std::vector<Token> all;
    std::vector<std::int64_t> lengths(static_cast<std::size_t>(blocks.sequences()));
    for (const StepItem& item : items) {
      auto& added = lengths[static_cast<std::size_t>(item.sequence)];
      for (std::size_t i = 0; i < item.tokens.size(); ++i) {
        const bool last = i + 1 == item.tokens.size();
        all.push_back({item.sequence, item.tokens[i], blocks.length(item.sequence) + added++,
                       item.wants_logits && (last || item.all_logits)});
      }
    }
    return all;
  }

  /// KV room for the tokens, one run of one sequence at a time.
  void extend(std::span<const Token> tokens) {
    const auto copy = [this](std::int64_t from, std::int64_t to) {
      lazy ? lazy->copy_block(from, to) : plans.copy_block(from, to);
    };
    for (std::size_t i = 0; i < tokens.size();) {
      std::size_t end = i;
      while (end < tokens.size() && tokens[end].sequence == tokens[i].sequence) ++end;
      blocks.extend(tokens[i].sequence, static_cast<std::int64_t>(end - i), copy);
      i = end;
    }
  }

  StepInputs inputs_for(std::span<const Token> tokens, std::size_t n_tokens,
                        std::size_t n_outputs) const {
    StepInputs in;
    in.tokens.assign(n_tokens, 0);
    in.positions.assign(n_tokens, 0);
    in.seq.assign(n_tokens, -1);
    in.rows.assign(n_tokens, -1);
    in.output_rows.assign(n_outputs, 0);
    in.block_table.assign(static_cast<std::size_t>(shape.sequences * shape.blocks_each), 0);
    in.lengths.assign(static_cast<std::size_t>(shape.sequences), 0);
    in.n_tokens = static_cast<std::int32_t>(tokens.size());
    std::vector<std::int32_t> table_row(static_cast<std::size_t>(blocks.sequences()), -1);
    std::int32_t table_rows = 0;
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      const Token& token = tokens[t];
      in.tokens[t] = token.id;
      in.positions[t] = static_cast<std::int32_t>(token.position);
      std::int32_t& row = table_row[static_cast<std::size_t>(token.sequence)];
      if (row < 0) add_to_table(in, row = table_rows++, token.sequence);
      in.seq[t] = row;
      in.rows[t] = blocks.row(token.sequence, token.position);
      if (token.wants_logits)
        in.output_rows[static_cast<std::size_t>(in.n_outputs++)] = static_cast<std::int32_t>(t);
    }
    return in;
  }

  void add_to_table(StepInputs& in, std::int32_t row, SequenceId sequence) const {
    in.lengths[static_cast<std::size_t>(row)] = static_cast<std::int32_t>(blocks.length(sequence));
    const std::vector<std::int32_t>& own = blocks.blocks(sequence);
    std::copy(own.begin(), own.end(), in.block_table.begin() + row * shape.blocks_each);
  }

  void run_chunk(std::span<const Token> tokens, Head head, float* rows) {
    extend(tokens);
    const std::int64_t outputs = count_outputs(tokens);
    const auto count = static_cast<std::int64_t>(tokens.size());
    if (lazy) {
      lazy->run(inputs_for(tokens, tokens.size(), static_cast<std::size_t>(outputs)), head, rows);
    } else {
      const std::int64_t n_tokens = capacity_for(count);
      const std::int64_t n_outputs = output_capacity(n_tokens, outputs, shape);
      plans.run(inputs_for(tokens, static_cast<std::size_t>(n_tokens),
                           static_cast<std::size_t>(n_outputs)),
                head, rows);
    }
  }

  void run_all(std::span<const Token> tokens, Head head, float* rows, const Progress& progress) {
    float* next = rows;
    const auto chunk = static_cast<std::size_t>(options.chunk);
    for (std::size_t begin = 0; begin < tokens.size(); begin += chunk) {
      if (progress &&
          !progress(static_cast<std::int64_t>(begin), static_cast<std::int64_t>(tokens.size()))) {
        fail(ErrorCode::cancelled, "the step was cancelled after {} of {} tokens", begin,
             tokens.size());
      }
      const auto part = tokens.subspan(begin, std::min(chunk, tokens.size() - begin));
      run_chunk(part, head, next);
      next += count_outputs(part) * width_of(head, model->config());
    }
    if (progress)
      progress(static_cast<std::int64_t>(tokens.size()), static_cast<std::int64_t>(tokens.size()));
  }

  /// What a step checks and lays out before it runs.
  std::vector<Token> prepare(std::span<const StepItem> items) {
    replace_lost_states();
    check(items);
    return flatten(items);
  }

  /// If it throws, the sequences are as they were.
  void run(std::span<const StepItem> items, std::span<const Token> tokens, Head head, float* rows,
           const Progress& progress) {
    const TeamScope scope(team);
    const Team::Session held(team);
    std::vector<std::int64_t> lengths;
    for (const StepItem& item : items) lengths.push_back(blocks.length(item.sequence));
    try {
      run_all(tokens, head, rows, progress);
    } catch (...) {
      for (std::size_t i = 0; i < items.size(); ++i) blocks.truncate(items[i].sequence, lengths[i]);
      throw;
    }
  }

  std::vector<float> step(std::span<const StepItem> items, Head head, const Progress& progress) {
    const std::lock_guard lock(mutex);
    const std::vector<Token> tokens = prepare(items);
    const std::int64_t numbers = count_outputs(tokens) * width_of(head, model->config());
    std::vector<float> rows(static_cast<std::size_t>(numbers));
    run(items, tokens, head, rows.data(), progress);
    return rows;
  }
};

Context::Context(std::shared_ptr<const Model> model, const ContextOptions& options) {
  ContextOptions filled = options;
  if (filled.threads <= 0) filled.threads = default_threads();
  require(filled.n_seq_max > 0, ErrorCode::invalid_argument,
          "n_seq_max is {}; at least 1 sequence is needed", filled.n_seq_max);
  require(0 <= filled.n_seq_step && filled.n_seq_step <= filled.n_seq_max,
          ErrorCode::invalid_argument, "n_seq_step is {}; expected 0 (all) to n_seq_max = {}",
          filled.n_seq_step, filled.n_seq_max);
  require(filled.n_kv == 0 || filled.n_kv >= std::max<std::int64_t>(filled.n_ctx, 1),
          ErrorCode::invalid_argument,
          "n_kv is {}; KV memory holds at least one sequence of {} positions (-c)", filled.n_kv,
          filled.n_ctx);
  require(filled.chunk > 0, ErrorCode::invalid_argument,
          "--chunk is {}; at least 1 token is needed", filled.chunk);
  require(filled.n_ctx >= 0 && filled.n_ctx <= model->config().n_ctx_train,
          ErrorCode::invalid_argument, "-c {}: the model has a context of {}", filled.n_ctx,
          model->config().n_ctx_train);
  check_kv_type(model->config(), filled.kv_type);
  LayerDevices devices = layer_devices(model->config(), filled);
  // What a device lacks beside its weights' kernels runs on the CPU, as lazily.
  if (devices.embedding) filled.compile.strict_pins = false;
  fit_to_devices(*model, filled, devices);
  const PlanShape shape = shape_of(filled);
  filled.n_seq_step = shape.sequences;
  filled.n_kv = shape.blocks * kBlockSize;
  impl_ = std::make_unique<Impl>(std::move(model), filled, std::move(devices));
}

Context::~Context() = default;

const Model& Context::model() const noexcept {
  return *impl_->model;
}
const ContextOptions& Context::options() const noexcept {
  return impl_->options;
}

SequenceId Context::create() {
  const std::lock_guard lock(impl_->mutex);
  return impl_->blocks.create();
}

SequenceId Context::fork(SequenceId sequence) {
  const std::lock_guard lock(impl_->mutex);
  return impl_->blocks.fork(sequence);
}

void Context::release(SequenceId sequence) {
  const std::lock_guard lock(impl_->mutex);
  impl_->blocks.release(sequence);
}

void Context::truncate(SequenceId sequence, std::int64_t length) {
  const std::lock_guard lock(impl_->mutex);
  impl_->blocks.truncate(sequence, length);
}

std::int64_t Context::length(SequenceId sequence) const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->blocks.length(sequence);
}

std::vector<float> Context::step(std::span<const StepItem> items, const Progress& progress) {
  return impl_->step(items, Head::logits, progress);
}

std::vector<float> Context::hidden(std::span<const StepItem> items, const Progress& progress) {
  return impl_->step(items, Head::hidden, progress);
}

void Context::step_into(std::span<const StepItem> items, std::span<float> logits,
                        const Progress& progress) {
  const std::lock_guard lock(impl_->mutex);
  const std::vector<Token> tokens = impl_->prepare(items);
  const std::int64_t rows = count_outputs(tokens), n_vocab = impl_->model->config().n_vocab;
  require(static_cast<std::int64_t>(logits.size()) == rows * n_vocab, ErrorCode::invalid_argument,
          "room for {} logits; the step gives {} rows of {}", logits.size(), rows, n_vocab);
  impl_->run(items, tokens, Head::logits, logits.data(), progress);
}

std::vector<float> Context::step(SequenceId sequence, std::span<const TokenId> tokens,
                                 bool all_logits) {
  const StepItem item{sequence, tokens, all_logits};
  return step({&item, 1});
}

bool Context::is_lost(SequenceId sequence) {
  const std::lock_guard lock(impl_->mutex);
  impl_->replace_lost_states();
  return impl_->blocks.is_lost(sequence);
}

Context::KvUse Context::kv_use() const {
  const std::lock_guard lock(impl_->mutex);
  return {.block_size = kBlockSize,
          .blocks = impl_->blocks.all_blocks(),
          .free = impl_->blocks.free_blocks()};
}

std::int64_t Context::blocks_to_add(SequenceId sequence, std::int64_t tokens) const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->blocks.needed(sequence, tokens);
}

std::int64_t Context::blocks_held_by(std::span<const SequenceId> sequences) const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->blocks.held_by(sequences);
}

Context::MemoryUse Context::memory() const {
  const std::lock_guard lock(impl_->mutex);
  return {.weights = impl_->model->weight_bytes(),
          .kv = kv_bytes(impl_->model->config(), impl_->shape),
          .arenas = impl_->plans.arena_bytes()};
}

const LayerDevices& Context::devices() const noexcept {
  return impl_->devices;
}

std::map<std::string, std::uint64_t> Context::host_ops() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->lazy ? impl_->lazy->host_ops() : impl_->plans.host_ops();
}

const Plan& Context::plan_for(std::int64_t tokens) {
  const std::lock_guard lock(impl_->mutex);
  const std::int64_t capacity = capacity_for(tokens);
  return impl_->plans
      .get({.tokens = capacity, .outputs = output_capacity(capacity, 1, impl_->shape)})
      .plan();
}

}  // namespace heddle::llm
