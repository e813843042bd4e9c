#include "cli/device_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/settings.h"
#include "cli/output.h"
#include "exec/plan.h"

namespace heddle::cli {

namespace {

using OpCounts = std::map<std::string, std::uint64_t>;

/// What was added since; what did not change is left out.
OpCounts since(const OpCounts& now, const OpCounts& before) {
  OpCounts added;
  for (const auto& [name, count] : now) {
    const auto earlier = before.find(name);
    const std::uint64_t more = count - (earlier == before.end() ? 0 : earlier->second);
    if (more > 0) added[name] = more;
  }
  return added;
}

/// "300 linear, 150 attend": the most frequent first.
std::string text_of(const OpCounts& counts) {
  std::vector<std::pair<std::uint64_t, std::string>> order;
  for (const auto& [name, count] : counts) order.emplace_back(count, name);
  std::ranges::sort(order, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  std::string text;
  for (const auto& [count, name] : order) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name);
  }
  return text;
}

std::string text_of(const Device& device, const DeviceCounts& now, const DeviceCounts& before) {
  const OpCounts dispatches = since(now.dispatches, before.dispatches);
  std::uint64_t all = 0;
  for (const auto& [name, count] : dispatches) all += count;
  return fmt::format(
      "{}: {} submissions, {} recordings made, {} replayed, {} barriers, {} copies of {}\n"
      "  {} dispatches{}{}\n",
      device.name(), now.submissions - before.submissions, now.recorded - before.recorded,
      now.replayed - before.replayed, now.barriers - before.barriers, now.copies - before.copies,
      bytes_text(now.copied_bytes - before.copied_bytes), all, all == 0 ? "" : ": ",
      text_of(dispatches));
}

}  // namespace

std::vector<Device*> devices_of(const llm::Context& context) {
  const llm::LayerDevices& placed = context.devices();
  std::vector<Device*> all{placed.embedding};
  all.insert(all.end(), placed.layers.begin(), placed.layers.end());
  all.push_back(placed.output);
  if (!placed.embedding) {
    const std::vector<Device*>& chosen = context.options().compile.devices;
    all = chosen.empty() ? default_devices() : chosen;
  }
  std::vector<Device*> once;
  for (Device* device : all) {
    if (std::ranges::find(once, device) == once.end()) once.push_back(device);
  }
  return once;
}

std::string splits_of_step(llm::Context& context, std::int64_t tokens) {
  if (context.options().lazy) return "";
  const std::int64_t together = std::min(tokens, context.options().chunk);
  return fmt::format("a step of {} token{}\n{}", together, together == 1 ? "" : "s",
                     splits_text(context.plan_for(together)));
}

std::string precision_text(const llm::Context& context) {
  const std::vector<Device*> devices = devices_of(context);
  const bool on_cpu = std::ranges::find(devices, &cpu_device()) != devices.end();
  if (!on_cpu || settings().matmul == "exact") return "";
  return fmt::format(
      "on the cpu products with f16, bf16 and f32 weights round to {} (HEDDLE_MATMUL)\n",
      settings().matmul);
}

DeviceReport::DeviceReport(const llm::Context& context)
    : context_(context), host_ops_before_(context.host_ops()) {
  for (Device* device : devices_of(context)) {
    if (device != &cpu_device()) before_.emplace_back(device, device->counts());
  }
}

std::string DeviceReport::text() const {
  std::string text;
  for (const auto& [device, before] : before_) text += text_of(*device, device->counts(), before);
  const OpCounts on_host = since(context_.host_ops(), host_ops_before_);
  if (!on_host.empty()) {
    text += fmt::format("on the cpu though another device was asked for: {}\n", text_of(on_host));
  }
  if (text.empty()) text = "no device but the cpu took part\n";
  return text + precision_text(context_);
}

}  // namespace heddle::cli
