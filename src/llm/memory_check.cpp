#include "llm/memory_check.h"

#include <algorithm>
#include <map>

#include "base/check.h"
#include "exec/bindings.h"
#include "exec/planner.h"
#include "llm/kv_blocks.h"
#include "llm/layer_devices.h"
#include "llm/memory_need.h"
#include "llm/weight_check.h"

namespace heddle::llm {

namespace {

constexpr std::int64_t kDefaultContext = 4096;
constexpr std::int64_t kLeastDefaultContext = 512;

Plan plan_of(const Model& model, const ContextOptions& options, const LayerDevices& devices,
             std::int64_t tokens) {
  const PlanShape shape = shape_of(options);
  const GraphSize size{.tokens = tokens, .outputs = output_capacity(tokens, 1, shape)};
  return plan_graph(build_graph(model.file(), model.config(), shape, devices, size),
                    options.compile);
}

Plan largest_plan(const Model& model, const ContextOptions& options, const LayerDevices& devices) {
  const std::int64_t tokens = std::min(options.chunk, options.n_ctx);
  return plan_of(model, options, devices, capacity_for(tokens));
}

std::string mebibytes(std::uint64_t bytes) {
  return fmt::format("{:.0f} MiB", static_cast<double>(bytes) / (1 << 20));
}

// ---- What does not fit

std::string kind_text(const Slot& slot) {
  if (slot.kind == SlotKind::parameter) return fmt::format("tensor '{}'", slot.name);
  if (slot.kind == SlotKind::state) return fmt::format("KV state '{}'", slot.name);
  return "the working memory of a step";
}

/// The first thing that is larger than its device allocates at once.
std::string too_large_at_once(const Plan& plan, const std::vector<std::uint64_t>& slot_bytes) {
  std::map<Device*, std::uint64_t> limits;
  for (std::size_t s = 0; s < plan.slots.size(); ++s) {
    const Slot& slot = plan.slots[s];
    const auto [limit, is_new] = limits.try_emplace(slot.device, 0);
    if (is_new) limit->second = slot.device->describe().largest_allocation;
    const std::uint64_t largest = limit->second;
    const std::uint64_t bytes = slot_bytes[s];
    if (largest == 0 || bytes <= largest) continue;
    return fmt::format(
        "{}: {} takes {} ({} bytes), and the device allocates no more than {} ({} "
        "bytes) at once",
        slot.device->name(), kind_text(slot), mebibytes(bytes), bytes, mebibytes(largest), largest);
  }
  return "";
}

/// The first weight for which there is no room beside everything else.
std::string first_that_does_not_fit(const Plan& plan, const std::vector<std::uint64_t>& slot_bytes,
                                    const Need& need, std::uint64_t left) {
  std::uint64_t used = need.kv + need.arenas;
  if (used > left) return "";
  for (std::size_t s = 0; s < plan.slots.size(); ++s) {
    const Slot& slot = plan.slots[s];
    if (slot.kind != SlotKind::parameter || slot.device != need.device) continue;
    used += slot_bytes[s];
    if (used > left) return fmt::format("; tensor '{}' is the first that does not fit", slot.name);
  }
  return "";
}

/// What does not fit its device; nothing if all of it does.
std::string shortage(const Model& model, const ContextOptions& options, const Plan& plan) {
  const std::vector<std::uint64_t> slot_bytes = slot_bytes_needed(plan, *model.parameters());
  if (std::string text = too_large_at_once(plan, slot_bytes); !text.empty()) return text;
  for (const Need& need : needs_of(plan, slot_bytes)) {
    const std::optional<std::uint64_t> left = memory_left(*need.device);
    if (!left || need.total() <= *left) continue;
    return fmt::format(
        "{}: {} are needed (weights {}, KV {} for {} positions in {}, arenas {}), {} are "
        "available{}",
        need.device->name(), mebibytes(need.total()), mebibytes(need.weights), mebibytes(need.kv),
        shape_of(options).blocks * kBlockSize, to_string(options.kv_type), mebibytes(need.arenas),
        mebibytes(*left), first_that_does_not_fit(plan, slot_bytes, need, *left));
  }
  return "";
}

// ---- What would fit

bool fits(const Model& model, ContextOptions options) {
  const LayerDevices devices = layer_devices(model.config(), options);
  return shortage(model, options, largest_plan(model, options, devices)).empty();
}

/// The most layers, fewer than now, with which it would fit.
std::optional<std::int64_t> fewer_gpu_layers(const Model& model, const ContextOptions& options) {
  const std::int64_t all = model.config().n_layer + 1;
  const auto fits_with = [&](std::int64_t layers) {
    ContextOptions fewer = options;
    fewer.gpu_layers = layers;
    return fits(model, fewer);
  };
  std::int64_t least = 0, most = std::min(options.gpu_layers.value_or(all), all) - 1;
  if (options.devices.empty() || most < 0 || !fits_with(0)) return std::nullopt;
  while (least < most) {  // `least` fits; memory grows with every layer
    const std::int64_t middle = least + (most - least + 1) / 2;
    if (fits_with(middle))
      least = middle;
    else
      most = middle - 1;
  }
  return least;
}

std::optional<std::int64_t> smaller_context(const Model& model, const ContextOptions& options) {
  ContextOptions smaller = options;
  for (smaller.n_ctx = options.n_ctx / 2; smaller.n_ctx >= kBlockSize; smaller.n_ctx /= 2) {
    if (fits(model, smaller)) return smaller.n_ctx;
  }
  return std::nullopt;
}

std::optional<DType> smaller_kv_type(const Model& model, const ContextOptions& options) {
  for (const DType type : {DType::f16, DType::q8_0}) {
    if (row_bytes(type, 32) >= row_bytes(options.kv_type, 32)) continue;
    if (type == DType::q8_0 && model.config().n_embd_head % 32 != 0) continue;
    ContextOptions smaller = options;
    smaller.kv_type = type;
    if (fits(model, smaller)) return type;
  }
  return std::nullopt;
}

/// The changes that would make it fit, each tried alone.
std::string remedies(const Model& model, const ContextOptions& options) {
  std::vector<std::string> fitting;
  if (const auto layers = fewer_gpu_layers(model, options)) {
    fitting.push_back(fmt::format("--gpu-layers {}", *layers));
  }
  if (const auto n_ctx = smaller_context(model, options)) {
    fitting.push_back(fmt::format("-c {}", *n_ctx));
  }
  if (const auto type = smaller_kv_type(model, options)) {
    fitting.push_back(fmt::format("--kv-type {}", to_string(*type)));
  }
  if (fitting.empty()) return "a model of a smaller type, or a smaller model, is needed";
  return fmt::format("{} would fit", fmt::join(fitting, ", or ")) +
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

void fit_to_devices(const Model& model, ContextOptions& options, const LayerDevices& devices) {
  const bool choose = options.n_ctx == 0;
  if (choose) {
    options.n_ctx = std::min(model.config().n_ctx_train, kDefaultContext);
    if (options.n_kv > 0) options.n_ctx = std::min(options.n_ctx, options.n_kv);
  }
  Plan plan = largest_plan(model, options, devices);
  if (devices.embedding) {
    check_weights_have_kernels(plan);
    check_weights_have_kernels(plan_of(model, options, devices, 1));
    import_parameters(plan, *model.parameters());
  }
  std::string short_of = shortage(model, options, plan);
  while (choose && !short_of.empty() && options.n_ctx > kLeastDefaultContext) {
    options.n_ctx /= 2;
    plan = largest_plan(model, options, devices);
    short_of = shortage(model, options, plan);
  }
  if (short_of.empty()) return;
  fail(ErrorCode::out_of_memory, "{}; {}", short_of, remedies(model, options));
}

}  // namespace heddle::llm
