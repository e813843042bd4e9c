#include "device/vulkan/device.h"

#include <array>
#include <mutex>

#include "base/check.h"
#include "base/log.h"
#include "base/settings.h"
#include "device/backends.h"
#include "device/vulkan/faults.h"
#include "device/vulkan/recording.h"
#include "device/vulkan/stream.h"
#include "heddle/memory.h"

namespace heddle {
namespace vulkan {

namespace {

// ---- Dispatch

using PrepareFamily = Prepared (*)(const PrepareArgs&);

template <class T, class... Ts>
concept one_of = (std::is_same_v<T, Ts> || ...);

template <class T>
constexpr PrepareFamily family() {
  if constexpr (one_of<T, Unary, Binary, Compare, Select, GatedMultiply>) {
    return prepare_elementwise;
  }
  if constexpr (one_of<T, Contiguous, Reinterpret, Concatenate, SliceUpdate, Arange>) {
    return prepare_copy;
  }
  if constexpr (one_of<T, Cast>) return prepare_cast;
  if constexpr (one_of<T, GatherRows, WriteRows, Feed>) return prepare_rows;
  if constexpr (one_of<T, Rope, RopeTable, RopeWriteRows>) return prepare_rope;
  if constexpr (one_of<T, Linear, GroupedLinear>) return prepare_linear;
  if constexpr (one_of<T, Matmul>) return prepare_matmul;
  if constexpr (one_of<T, Reduce, Softmax>) return prepare_reduce;
  if constexpr (one_of<T, Attend>) return prepare_attend;
  if constexpr (one_of<T, Attention>) return prepare_attention;
  if constexpr (one_of<T, Scan>) return prepare_scan;
  if constexpr (one_of<T, ArgReduce>) return prepare_arg_reduce;
  if constexpr (one_of<T, TopK>) return prepare_top_k;
  if constexpr (one_of<T, GatherAxis>) return prepare_gather_axis;
  if constexpr (one_of<T, ScatterAxis>) return prepare_scatter_axis;
  if constexpr (one_of<T, Pad>) return prepare_pad;
  if constexpr (one_of<T, ChannelNorm>) return prepare_channel_norm;
  if constexpr (one_of<T, GroupNorm>) return prepare_group_norm;
  if constexpr (one_of<T, SelectiveScan>) return prepare_selective_scan;
  if constexpr (one_of<T, Conv>) return prepare_conv;
  if constexpr (one_of<T, Im2col>) return prepare_im2col;
  if constexpr (one_of<T, Pool>) return prepare_pool;
  if constexpr (one_of<T, Resize>) return prepare_resize;
  if constexpr (one_of<T, RmsNorm, AddRmsNorm, LayerNorm>) return prepare_norm;
  return nullptr;  // leaves and views: nothing to compute
}

template <std::size_t... I>
constexpr std::array<PrepareFamily, kOpCount> families(std::index_sequence<I...>) {
  return {family<std::variant_alternative_t<I, OpVariant>>()...};
}
constexpr auto kFamilies = families(std::make_index_sequence<kOpCount>());

// ---- Memory of the pool: pieces of the heap of whichever life the device is in

struct PooledPiece {
  Piece piece;
  std::shared_ptr<Heap> heap;
};

MemoryPool::Options pool_options(const std::string& name) {
  MemoryPool::Options options;
  options.name = name;
  options.memory_limit = settings().memory_limit;
  if (settings().cache_limit) options.cache_limit = *settings().cache_limit;
  return options;
}

// ---- The device

class VulkanDevice final : public Device, private LifeSource {
 public:
  VulkanDevice(const PhysicalDevice& physical, std::string name, LimitOverrides overrides)
      : physical_(physical), name_(std::move(name)), overrides_(overrides) {
    stream_ = make_stream(*this);
  }

  std::string_view name() const noexcept override { return name_; }
  std::size_t alignment() const noexcept override { return kAlignment; }
  DeviceInfo describe() const override;
  DeviceCounts counts() const override;
  std::uint64_t generation() const noexcept override { return losses_->load(); }
  bool shares_host_memory() const noexcept override {
    return physical_.limits.shares_memory && !overrides_.hides_memory;
  }

  Prepared prepare(const Op& op, std::span<const OperandSpec> inputs,
                   std::span<const OperandSpec> outputs) override;

  Ref<Buffer> allocate(std::size_t bytes, MemoryKind kind) override;
  Ref<Buffer> import_host(std::span<std::byte> memory, std::shared_ptr<const void> owner) override;
  MemoryPool* memory() noexcept override { return &pool_; }

  Ref<Stream> default_stream() override { return stream_; }
  Ref<Stream> new_stream() override { return make_stream(*this); }
  std::unique_ptr<Recording> record(std::span<const RecordedStep> steps) override {
    const auto life = this->life();
    life->pipelines->save();
    return std::make_unique<VulkanRecording>(life, steps);
  }
  std::unique_ptr<BindingTable> make_binding_table(std::size_t slots) override {
    return std::make_unique<VulkanBindingTable>(life(), *this, slots);
  }

 private:
  // LifeSource
  std::shared_ptr<Life> life() override;
  Device& device() noexcept override { return *this; }

  std::shared_ptr<Life> open();
  std::shared_ptr<Memory> pooled(const Life& life, std::size_t bytes);
  MemoryPool::Source source();

  const PhysicalDevice& physical_;
  const std::string name_;
  const LimitOverrides overrides_;
  const std::shared_ptr<Counters> counters_ = std::make_shared<Counters>();
  const std::shared_ptr<DispatchCounts> dispatches_ = std::make_shared<DispatchCounts>();
  // Shared, since the last context may outlive its device.
  const std::shared_ptr<std::atomic<std::uint64_t>> losses_ =
      std::make_shared<std::atomic<std::uint64_t>>(0);

  std::mutex mutex_;
  std::shared_ptr<Life> life_;                // null before the first use
  std::vector<std::weak_ptr<Context>> past_;  // lost ones that may still hold memory
  MemoryPool pool_{source(), pool_options(name_)};
  Ref<Stream> stream_;
};

std::shared_ptr<Life> VulkanDevice::life() {
  const std::lock_guard lock(mutex_);
  if (life_ && !life_->context->lost()) [[likely]]
    return life_;
  if (life_) {
    past_.push_back(life_->context);
    life_.reset();
    pool_.clear_cache();
  }
  std::erase_if(past_, [](const auto& context) {
    if (const auto alive = context.lock()) alive->retire();
    return context.expired();
  });
  return life_ = open();
}

std::shared_ptr<Life> VulkanDevice::open() {
  read_fault_setting();
  auto life = std::make_shared<Life>();
  life->context = Context::open(physical_, {name_, overrides_, losses_->load(), counters_});
  life->context->on_lost = [losses = losses_] { ++*losses; };
  life->host = std::make_shared<Heap>(life->context, true);
  life->local = life->context->limits().shares_memory
                    ? life->host
                    : std::make_shared<Heap>(life->context, false);
  life->pipelines = std::make_shared<CompiledPipelines>(life->context, dispatches_);
  life->command_buffers = std::make_shared<CommandBuffers>(life->context);
  return life;
}

// ---- What it says of itself

DeviceInfo VulkanDevice::describe() const {
  const VkPhysicalDeviceProperties& properties = physical_.properties;
  const Limits& limits = physical_.limits;
  const auto yes_no = [](bool value) { return std::string(value ? "yes" : "no"); };
  // What others hold is not there for us; what we hold is.
  const std::optional<std::uint64_t> budget = memory_budget(physical_);
  const std::uint64_t memory =
      budget ? std::min<std::uint64_t>(limits.memory, *budget + pool_.active()) : limits.memory;
  DeviceInfo info{properties.deviceName, physical_.driver, memory, limits.max_allocation, {}};
  info.details = {
      {"Vulkan", fmt::format("{}.{}.{}", VK_API_VERSION_MAJOR(properties.apiVersion),
                             VK_API_VERSION_MINOR(properties.apiVersion),
                             VK_API_VERSION_PATCH(properties.apiVersion))},
      {"usable", physical_.unusable.empty() ? "yes" : "no, it lacks " + physical_.unusable},
      {"memory shared with the host", yes_no(limits.shares_memory)},
      {"imports host memory", yes_no(limits.host_import_alignment > 0)},
      {"subgroup size", fmt::format("{}", limits.subgroup_size)},
      {"subgroup arithmetic", yes_no(limits.subgroup_arithmetic)},
      {"8 and 16-bit storage", yes_no(limits.storage_8 && limits.storage_16)},
      {"float16 arithmetic", yes_no(limits.float16)},
      {"float64 arithmetic", yes_no(limits.float64)},
      {"shared memory of a workgroup", fmt::format("{} bytes", limits.shared_bytes)},
      {"invocations of a workgroup", fmt::format("{}", limits.max_group_size)},
      {"workgroups along an axis", fmt::format("{}", limits.max_groups)},
      {"portability subset", yes_no(limits.portability_subset)},
  };
  return info;
}

DeviceCounts VulkanDevice::counts() const {
  DeviceCounts counts;
  counts.submissions = counters_->submissions;
  counts.recorded = counters_->recorded;
  counts.replayed = counters_->replayed;
  counts.barriers = counters_->barriers;
  counts.copies = counters_->copies;
  counts.copied_bytes = counters_->copied_bytes;
  counts.dispatches = dispatches_->read();
  return counts;
}

// ---- Kernels

Prepared VulkanDevice::prepare(const Op& op, std::span<const OperandSpec> inputs,
                               std::span<const OperandSpec> outputs) {
  const PrepareFamily prepare_family = kFamilies[op.index()];
  if (!prepare_family) {
    return refuse(fmt::format("{} has no kernel for {}", name_, heddle::name(op)));
  }
  for (const OperandSpec& output : outputs) {
    if (!is_contiguous(output) || output.layout.kind != LayoutKind::strided) {
      return refuse(fmt::format("output {} must be contiguous", to_string(output)));
    }
  }
  const auto current = life();
  try {
    return prepare_family({op, inputs, outputs, current->context->limits(), *current->pipelines});
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
    return refuse(error.what());
  }
}

// ---- Memory

MemoryPool::Source VulkanDevice::source() {
  return {[this](std::size_t bytes) -> void* {
            const auto current = life();
            auto piece = std::make_unique<PooledPiece>();
            *piece = {current->local->allocate(bytes), current->local};
            return piece.release();
          },
          [](void* memory, std::size_t) {
            const std::unique_ptr<PooledPiece> piece(static_cast<PooledPiece*>(memory));
            piece->heap->free(piece->piece);
          }};
}

std::shared_ptr<Memory> VulkanDevice::pooled(const Life& life, std::size_t bytes) {
  auto memory = std::make_shared<Memory>();
  for (;;) {
    memory->block = pool_.allocate(bytes);
    const Piece& piece = static_cast<PooledPiece*>(memory->block.memory())->piece;
    if (piece.chunk->context == life.context) {
      memory->chunk = piece.chunk;
      memory->offset = piece.offset;
      memory->bytes = piece.bytes;
      return memory;
    }
    // Of an earlier life, whose last owner let go of it since.
    life.context->throw_if_lost();
    memory->block.discard();
  }
}

Ref<Buffer> VulkanDevice::allocate(std::size_t bytes, MemoryKind kind) {
  const auto current = life();
  current->context->retire();
  const bool apart = kind == MemoryKind::host_visible && current->local != current->host;
  auto memory = apart ? make_memory(current->host, bytes)
                      : std::shared_ptr<const Memory>(pooled(*current, bytes));
  return make_ref<VulkanBuffer>(*this, bytes, std::move(memory));
}

Ref<Buffer> VulkanDevice::import_host(std::span<std::byte> memory,
                                      std::shared_ptr<const void> owner) {
  const auto current = life();
  const std::size_t page = current->context->limits().host_import_alignment;
  // A device with memory of its own would read the host's across the bus again and again.
  if (page == 0 || memory.empty() || !shares_host_memory()) return nullptr;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::uintptr_t first = begin / page * page;
  const std::uintptr_t last = (begin + memory.size() + page - 1) / page * page;
  auto imported = std::make_shared<Memory>();
  imported->chunk =
      import_chunk(current->context, {reinterpret_cast<std::byte*>(first), last - first});
  if (!imported->chunk) return nullptr;
  imported->offset = begin - first;
  imported->bytes = memory.size();
  imported->owner = std::move(owner);
  return make_ref<VulkanBuffer>(*this, memory.size(), std::move(imported));
}

}  // namespace

std::unique_ptr<Device> make_device(const PhysicalDevice& physical, std::string name,
                                    LimitOverrides overrides) {
  return std::make_unique<VulkanDevice>(physical, std::move(name), overrides);
}

}  // namespace vulkan

Discovery discover_vulkan() {
  const vulkan::PhysicalDevices& found = vulkan::physical_devices();
  Discovery discovery{{}, found.reason};
  for (const vulkan::PhysicalDevice& physical : found.all) {
    if (!physical.unusable.empty()) {
      discovery.reason =
          fmt::format("{} lacks {}", physical.properties.deviceName, physical.unusable);
      log(LogLevel::info, "no Vulkan device: " + discovery.reason);
      continue;
    }
    discovery.devices.push_back(
        vulkan::make_device(physical, fmt::format("vulkan:{}", discovery.devices.size())));
  }
  return discovery;
}

}  // namespace heddle
