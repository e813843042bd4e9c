#include "cli/observe.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "base/check.h"
#include "cli/profile_report.h"
#include "exec/trace.h"
#include "heddle/device.h"
#include "io/atomic_file.h"
#include "io/value_dump.h"

namespace heddle::cli {

void add_observe(CLI::App& app, ObserveArguments& arguments) {
  app.add_option("--trace", arguments.trace,
                 "Write what ran, when, and what came out to a file that heddle's page and "
                 "Perfetto's viewer open (docs/trace.md)");
  app.add_option("--trace-steps", arguments.trace_steps, "The last so many steps of it")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
  app.add_flag("--profile", arguments.profile,
               "Say on standard error where the time went: by op family and by node, against what "
               "the devices' bandwidth and peak, measured first, allow");
  app.add_option("--profile-bandwidth", arguments.bandwidth, "GB/s, instead of measuring")
      ->check(CLI::PositiveNumber);
  app.add_option("--profile-peak", arguments.peak, "Gop/s (f32), instead of measuring")
      ->check(CLI::PositiveNumber);
  app.add_option("--dump", arguments.dump,
                 "Write the values that ops made to a new directory, as .npy files (f16, bf16 and "
                 "block types as f32) with an index.json");
  app.add_option("--dump-filter", arguments.dump_filter,
                 "Only those whose name (such as blk.0.ffn_down.weight/linear) this regular "
                 "expression is found in; whole states too, if their name is found");
  app.add_option("--dump-steps", arguments.dump_steps, "The first so many steps")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
}

namespace {

/// Those that may take part.
std::vector<Device*> devices_for(const llm::ContextOptions& context) {
  std::vector<Device*> all = context.devices;
  if (all.empty()) all = context.gpu_layers ? devices() : default_devices();
  if (std::ranges::find(all, &cpu_device()) == all.end()) all.push_back(&cpu_device());
  return all;
}

std::map<std::string, DeviceBounds> bounds_for(const llm::ContextOptions& context,
                                               const ObserveArguments& arguments) {
  std::map<std::string, DeviceBounds> all;
  for (Device* device : devices_for(context)) {
    DeviceBounds bounds;
    if (!arguments.bandwidth || !arguments.peak) bounds = measure_bounds(*device);
    if (arguments.bandwidth) bounds.bytes_per_second = 1e9 * *arguments.bandwidth;
    if (arguments.peak) bounds.operations_per_second = 1e9 * *arguments.peak;
    all.emplace(device->name(), bounds);
  }
  return all;
}

}  // namespace

struct Watching::Impl {
  const ObserveArguments arguments;
  const ObserveScope::Of of;
  std::map<std::string, DeviceBounds> bounds;
  std::shared_ptr<Trace> trace;
  std::shared_ptr<Profile> profile;
  std::shared_ptr<ValueDump> dump;
  std::vector<std::shared_ptr<Observer>> observers;
  std::vector<std::unique_ptr<ObserveScope>> scopes;
  std::optional<Error> error;

  void write_trace() const {
    AtomicFile file(arguments.trace);
    trace->write([&](std::string_view text) {
      file.write(std::as_bytes(std::span(text.data(), text.size())));
    });
    file.commit();
    fmt::print(stderr, "{}: steps {}, left out before them {}\n", arguments.trace, trace->runs(),
               trace->dropped_runs());
  }
};

Watching::Watching(const llm::ContextOptions& context, const ObserveArguments& arguments,
                   ObserveScope::Of of)
    : impl_(std::make_unique<Impl>(Impl{.arguments = arguments, .of = of})) {
  if (!arguments.dump.empty()) {
    impl_->dump = std::make_shared<ValueDump>(
        ValueDump::Options{.directory = arguments.dump,
                           .filter = arguments.dump_filter,
                           .runs = static_cast<std::uint64_t>(arguments.dump_steps)});
    impl_->observers.push_back(impl_->dump);
  }
  if (arguments.profile) {
    impl_->bounds = bounds_for(context, arguments);
    impl_->profile = std::make_shared<Profile>(impl_->bounds);
    impl_->observers.push_back(impl_->profile);
  }
  if (!arguments.trace.empty()) {
    impl_->trace = std::make_shared<Trace>(
        Trace::Options{.runs = static_cast<std::size_t>(arguments.trace_steps)});
    impl_->observers.push_back(impl_->trace);
  }
}

Watching::~Watching() {
  end();
}

void Watching::begin() {
  for (const auto& observer : impl_->observers) {
    impl_->scopes.push_back(std::make_unique<ObserveScope>(observer, impl_->of));
  }
  if (impl_->profile) impl_->profile->begin();
}

void Watching::end() noexcept {
  if (impl_->profile && !impl_->scopes.empty()) impl_->profile->end();
  while (!impl_->scopes.empty()) {
    if (!impl_->error) impl_->error = impl_->scopes.back()->error();
    impl_->scopes.pop_back();
  }
}

void Watching::finish() {
  if (impl_->error) throw Error(*impl_->error);
  if (impl_->trace) impl_->write_trace();
  if (impl_->dump) {
    impl_->dump->finish();
    fmt::print(stderr, "{}: values {}, steps {}\n", impl_->arguments.dump, impl_->dump->values(),
               impl_->dump->runs());
  }
  if (impl_->profile) {
    fmt::print(stderr, "{}", profile_text(impl_->profile->result(), impl_->bounds));
  }
}

void Watching::finish_after_error() noexcept {
  try {
    finish();
  } catch (const std::exception& error) {
    fmt::print(stderr, "heddle: {}\n", error.what());
  }
}

}  // namespace heddle::cli
