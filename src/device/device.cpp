#include "heddle/device.h"

#include <mutex>
#include <unordered_map>

#include "base/check.h"
#include "device/backends.h"

namespace heddle {

KernelTraits whole_operand_traits(std::span<const OperandSpec> inputs,
                                  std::span<const OperandSpec> outputs) {
  KernelTraits traits;
  for (const OperandSpec& input : inputs) traits.reads.push_back({0, span_bytes(input)});
  for (const OperandSpec& output : outputs) traits.writes.push_back({0, span_bytes(output)});
  return traits;
}

OperandSpec output_operand(const Op& op, const TensorSpec& output) {
  const auto* repack = std::get_if<Repack>(&op);
  return repack ? OperandSpec{output, Layout::packed(repack->kind)}
                : OperandSpec::contiguous(output);
}

std::vector<OperandSpec> output_operands(const Op& op, std::span<const TensorSpec> outputs) {
  std::vector<OperandSpec> operands;
  operands.reserve(outputs.size());
  for (const TensorSpec& spec : outputs) operands.push_back(output_operand(op, spec));
  return operands;
}

std::string to_string(const LaunchLabel& label) {
  std::string text = fmt::format("node {}: {}", label.node, to_string(label.op));
  for (const TensorSpec& input : label.inputs) text += " " + to_string(input);
  return text;
}

// ---- Prepared kernels, remembered

namespace {

// Beyond this many, all are forgotten: a program whose shapes keep changing must not grow for ever.
constexpr std::size_t kMostKernels = 8192;

std::size_t mix(std::size_t seed, std::size_t value) {
  return seed ^ (value + 0x9e3779b97f4a7c15u + (seed << 6) + (seed >> 2));
}

std::size_t mix(std::size_t seed, const Dims& dims) {
  seed = mix(seed, dims.size());
  for (const std::int64_t d : dims) seed = mix(seed, static_cast<std::size_t>(d));
  return seed;
}

std::size_t mix(std::size_t seed, std::span<const OperandSpec> operands) {
  for (const auto& [spec, layout] : operands) {
    seed = mix(seed, static_cast<std::size_t>(spec.dtype));
    seed = mix(seed, spec.shape);
    seed = mix(seed, static_cast<std::size_t>(layout.kind));
    seed = mix(seed, layout.strides);
  }
  return mix(seed, operands.size());
}

struct Question {
  const Op& op;
  std::span<const OperandSpec> inputs, outputs;
};

struct KernelKey {
  Op op;
  std::vector<OperandSpec> inputs, outputs;
};

struct KeyHash {
  using is_transparent = void;
  static std::size_t of(const Op& op, std::span<const OperandSpec> inputs,
                        std::span<const OperandSpec> outputs) {
    return mix(mix(hash(op), inputs), outputs);
  }
  std::size_t operator()(const KernelKey& k) const { return of(k.op, k.inputs, k.outputs); }
  std::size_t operator()(const Question& q) const { return of(q.op, q.inputs, q.outputs); }
};

struct KeyEqual {
  using is_transparent = void;
  bool operator()(const auto& a, const auto& b) const {
    return a.op == b.op && std::ranges::equal(a.inputs, b.inputs) &&
           std::ranges::equal(a.outputs, b.outputs);
  }
};

}  // namespace

struct Device::KernelCache {
  std::mutex mutex;
  std::uint64_t generation = 0;  // of the device, before the kernels were prepared
  std::unordered_map<KernelKey, Prepared, KeyHash, KeyEqual> kernels;

  void forget_before(std::uint64_t now) {
    if (now <= generation) return;
    generation = now;
    kernels.clear();
  }
};

Device::Device() : cache_(std::make_shared<KernelCache>()) {}

Prepared Device::prepare_cached(const Op& op, std::span<const OperandSpec> inputs,
                                std::span<const OperandSpec> outputs) {
  const Question question{op, inputs, outputs};
  const std::uint64_t before = generation();
  {
    const std::lock_guard lock(cache_->mutex);
    cache_->forget_before(before);
    if (const auto found = cache_->kernels.find(question); found != cache_->kernels.end()) {
      return found->second;
    }
  }
  // Prepared outside the lock, since that can take milliseconds; of two threads the first wins.
  Prepared prepared = prepare(op, inputs, outputs);
  KernelKey key{op, {inputs.begin(), inputs.end()}, {outputs.begin(), outputs.end()}};
  const std::lock_guard lock(cache_->mutex);
  if (before != cache_->generation) return prepared;  // the device was lost meanwhile
  if (cache_->kernels.size() >= kMostKernels) cache_->kernels.clear();
  return cache_->kernels.try_emplace(std::move(key), std::move(prepared)).first->second;
}

// ---- What a device need not have

DeviceInfo Device::describe() const {
  return {.hardware = std::string(name())};
}

DeviceCounts Device::counts() const {
  return {};
}

std::uint64_t Device::generation() const noexcept {
  return 0;
}

std::optional<LayoutKind> Device::preferred_layout(const Op&, std::size_t,
                                                   std::span<const TensorSpec>) const {
  return std::nullopt;
}

bool Device::shares_host_memory() const noexcept {
  return false;
}

Ref<Buffer> Device::import_host(std::span<std::byte>, std::shared_ptr<const void>) {
  return nullptr;
}

Ref<Stream> Device::new_stream() {
  return default_stream();
}

MemoryPool* Device::memory() noexcept {
  return nullptr;
}

// ---- Lost memory

void Buffer::check_alive() const {
  if (!is_lost()) [[likely]]
    return;
  fail(ErrorCode::device_lost,
       "{}: the device was lost, and with it what this memory held: it must be made anew",
       device().name());
}

// ---- The devices of this process

namespace {

struct Registry {
  std::mutex mutex;
  std::vector<std::unique_ptr<Device>> devices;

  std::once_flag discovered;
  std::vector<std::unique_ptr<Device>> found;  // unchanged once discovered
  std::string no_vulkan;                       // why there is none
};

// Never destroyed: buffers in static variables may outlive every other static.
Registry& registry() {
  static Registry& instance = *new Registry;
  return instance;
}

/// Finds devices once. Not before someone asks for others than the CPU: drivers take long to load.
void discover(Registry& known) {
  std::call_once(known.discovered, [&] {
    Discovery vulkan = discover_vulkan();
    if (vulkan.devices.empty()) known.no_vulkan = std::move(vulkan.reason);
    known.found = std::move(vulkan.devices);
  });
}

}  // namespace

std::vector<Device*> default_devices() {
  std::vector<Device*> all;
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  for (const auto& device : known.devices) all.push_back(device.get());
  all.push_back(&cpu_device());
  return all;
}

std::vector<Device*> devices() {
  Registry& known = registry();
  discover(known);
  std::vector<Device*> all = default_devices();
  for (const auto& device : known.found) all.insert(all.end() - 1, device.get());
  return all;
}

std::string why_no_vulkan() {
  discover(registry());
  return registry().no_vulkan;
}

Device& find_device(std::string_view name) {
  const std::string wanted(name == "vulkan" ? "vulkan:0" : name);
  for (Device* device : default_devices()) {
    if (device->name() == wanted) return *device;
  }
  std::string names;
  for (Device* device : devices()) {
    if (device->name() == wanted) return *device;
    if (!names.empty()) names += ", ";
    names += device->name();
  }
  const std::string why = why_no_vulkan();
  fail(ErrorCode::invalid_argument, "no device is called \"{}\"; there are: {}{}", name, names,
       why.empty() ? "" : fmt::format(" (no Vulkan device: {})", why));
}

void register_device(std::unique_ptr<Device> device) {
  require(device != nullptr, ErrorCode::invalid_argument, "register_device: no device was given");
  Registry& known = registry();
  for (const Device* other : default_devices()) {
    require(other->name() != device->name(), ErrorCode::invalid_argument,
            "register_device: there is a device called \"{}\" already", device->name());
  }
  const std::lock_guard lock(known.mutex);
  known.devices.push_back(std::move(device));
}

}  // namespace heddle
