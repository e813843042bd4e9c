#include "llm/memory_check.h"

#include <algorithm>

#include "base/check.h"
#include "base/system.h"
#include "exec/planner.h"
#include "llm/kv_blocks.h"

namespace heddle::llm {

namespace {

constexpr std::int64_t kDefaultContext = 4096;
constexpr std::int64_t kLeastDefaultContext = 512;

struct Need {
  std::uint64_t weights = 0, kv = 0, arenas = 0;
  std::uint64_t total() const { return weights + kv + arenas; }
};

PlanShape shape_of(const ContextOptions& options) {
  return {.sequences = options.n_seq_max,
          .blocks_each = (options.n_ctx + kBlockSize - 1) / kBlockSize,
          .kv_type = options.kv_type};
}

/// What the largest plan takes. Mapped weights can be dropped by the system and are not counted.
Need need_of(const Model& model, const ContextOptions& options) {
  const PlanShape shape = shape_of(options);
  const std::int64_t tokens = capacity_for(std::min(options.chunk, options.n_ctx));
  const Graph graph = build_graph(model.file(), model.config(), shape, tokens, 1);
  const Plan plan = plan_graph(graph, options.compile);
  return {resident_weight_bytes(plan), kv_bytes(model.config(), shape), planned_bytes(plan)};
}

std::string mebibytes(std::uint64_t bytes) {
  return fmt::format("{:.0f} MiB", static_cast<double>(bytes) / (1 << 20));
}

/// The changes that would make it fit, each tried alone.
std::string remedies(const Model& model, const ContextOptions& options, const Need& need,
                     std::uint64_t available) {
  std::vector<std::string> fits;
  for (std::int64_t n_ctx = options.n_ctx / 2; n_ctx >= kBlockSize; n_ctx /= 2) {
    ContextOptions smaller = options;
    smaller.n_ctx = n_ctx;
    if (need.weights + need.arenas + kv_bytes(model.config(), shape_of(smaller)) > available)
      continue;
    fits.push_back(fmt::format("-c {}", n_ctx));
    break;
  }
  for (const DType type : {DType::f16, DType::q8_0}) {
    if (row_bytes(type, 32) >= row_bytes(options.kv_type, 32)) continue;
    if (type == DType::q8_0 && model.config().n_embd_head % 32 != 0) continue;
    ContextOptions smaller = options;
    smaller.kv_type = type;
    if (need.weights + need.arenas + kv_bytes(model.config(), shape_of(smaller)) > available)
      continue;
    fits.push_back(fmt::format("--kv-type {}", to_string(type)));
    break;
  }
  if (fits.empty()) return "a model of a smaller type, or a smaller model, is needed";
  return fmt::format("{} would fit", fmt::join(fits, ", or ")) +
         ", and so might a model of a smaller type";
}

}  // namespace

void check_kv_type(const ModelConfig& config, DType type) {
  const bool known = type == DType::f32 || type == DType::f16 || type == DType::q8_0;
  require(known, ErrorCode::invalid_argument, "--kv-type {}: KV states are f32, f16 or q8_0",
          to_string(type));
  require(type != DType::q8_0 || config.n_embd_head % 32 == 0, ErrorCode::invalid_argument,
          "--kv-type q8_0: heads of {} features are not whole blocks of 32; f16 and f32 work",
          config.n_embd_head);
}

std::uint64_t kv_bytes(const ModelConfig& config, const PlanShape& shape) {
  return 2 * static_cast<std::uint64_t>(config.n_layer) * byte_size(shape.kv_state(config));
}

void fit_to_memory(const Model& model, ContextOptions& options) {
  const bool choose = options.n_ctx == 0;
  if (choose) options.n_ctx = std::min(model.config().n_ctx_train, kDefaultContext);
  const std::uint64_t available = available_memory();
  Need need = need_of(model, options);
  while (choose && need.total() > available && options.n_ctx > kLeastDefaultContext) {
    options.n_ctx /= 2;
    need = need_of(model, options);
  }
  require(need.total() <= available, ErrorCode::out_of_memory,
          "{} are needed (weights {}, KV {} for {} sequences of {} positions in {}, arenas {}), {} "
          "are available; {}",
          mebibytes(need.total()), mebibytes(need.weights), mebibytes(need.kv), options.n_seq_max,
          options.n_ctx, to_string(options.kv_type), mebibytes(need.arenas), mebibytes(available),
          remedies(model, options, need, available));
}

}  // namespace heddle::llm
