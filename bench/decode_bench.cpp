// What a decoded token costs the thread that asks for it, beyond waiting: on a model of 24 layers,
// each a copy of the built-in model's first. Also what the device did for a token.
//
//   decode_bench [DEVICE]      vulkan:0 by default
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "heddle/device.h"
#include "heddle/error.h"
#include "heddle/llm.h"
#include "measure.h"
#include "stacked_model.h"

namespace heddle {
namespace {

constexpr std::uint32_t kLayers = 24;
constexpr int kWarmUp = 20, kTokens = 300;

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::uint64_t dispatches(const DeviceCounts& counts) {
  std::uint64_t sum = 0;
  for (const auto& [name, count] : counts.dispatches) sum += count;
  return sum;
}

void measure(const std::shared_ptr<llm::Model>& model, Device& device, bool fuse) {
  llm::ContextOptions options{.n_ctx = 512};
  options.devices = {&device};
  options.compile.fuse = fuse;
  llm::Context context(model, options);
  const llm::SequenceId sequence = context.create();
  const TokenId token = 10;
  const auto step = [&] { context.step(sequence, {&token, 1}); };
  for (int i = 0; i < kWarmUp; ++i) step();
  const DeviceCounts before = device.counts();
  std::vector<double> thread, wall;
  for (int i = 0; i < kTokens; ++i) {
    const double cpu = thread_seconds(), begin = wall_seconds();
    step();
    thread.push_back(thread_seconds() - cpu);
    wall.push_back(wall_seconds() - begin);
  }
  const DeviceCounts after = device.counts();
  const auto each = [&](std::uint64_t from, std::uint64_t to) {
    return static_cast<double>(to - from) / kTokens;
  };
  fmt::print("{:<9} {:>12.0f} {:>10.0f} {:>12.2f} {:>10} {:>18.1f} {:>16.1f}\n",
             fuse ? "fused" : "unfused", 1e6 * bench::median(thread), 1e6 * bench::median(wall),
             each(before.submissions, after.submissions), after.recorded - before.recorded,
             each(dispatches(before), dispatches(after)) / kLayers,
             each(before.barriers, after.barriers) / kLayers);
}

int run(const char* device_name) {
  Device& device = find_device(device_name);
  const std::shared_ptr<llm::Model> model = stacked_model(kLayers);
  fmt::print("{}: {}, {} layers, medians of {} tokens\n", device.name(), device.describe().hardware,
             kLayers, kTokens);
  fmt::print("{:<9} {:>12} {:>10} {:>12} {:>10} {:>18} {:>16}\n", "", "thread us", "wall us",
             "submissions", "recorded", "dispatches/layer", "barriers/layer");
  for (const bool fuse : {true, false}) measure(model, device, fuse);
  return 0;
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  try {
    return heddle::run(argc > 1 ? argv[1] : "vulkan:0");
  } catch (const heddle::Error& error) {
    fmt::print(stderr, "decode_bench: {}\n", error.what());
    return 1;
  }
}
