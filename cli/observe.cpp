#include "cli/observe.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <vector>

#include "base/check.h"
#include "exec/trace.h"
#include "io/atomic_file.h"

namespace heddle::cli {

void add_observe(CLI::App& app, ObserveArguments& arguments) {
  app.add_option("--trace", arguments.trace,
                 "Write what ran, when, and what came out to a file that heddle's page and "
                 "Perfetto's viewer open (docs/trace.md)");
  app.add_option("--trace-steps", arguments.trace_steps, "The last so many steps of it")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
}

struct Watching::Impl {
  const ObserveArguments arguments;
  std::shared_ptr<Trace> trace;
  std::vector<std::shared_ptr<Observer>> observers;
  std::vector<std::unique_ptr<ObserveScope>> scopes;
  std::optional<Error> error;

  void write_trace() const {
    AtomicFile file(arguments.trace);
    trace->write([&](std::string_view text) {
      file.write(std::as_bytes(std::span(text.data(), text.size())));
    });
    file.commit();
    fmt::print(stderr, "{}: {} steps, {} before them left out\n", arguments.trace, trace->runs(),
               trace->dropped_runs());
  }
};

Watching::Watching(const llm::Context&, const ObserveArguments& arguments)
    : impl_(std::make_unique<Impl>(Impl{.arguments = arguments})) {
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
    impl_->scopes.push_back(std::make_unique<ObserveScope>(observer));
  }
}

void Watching::end() noexcept {
  while (!impl_->scopes.empty()) {
    if (!impl_->error) impl_->error = impl_->scopes.back()->error();
    impl_->scopes.pop_back();
  }
}

void Watching::finish() {
  if (impl_->error) throw Error(*impl_->error);
  if (impl_->trace) impl_->write_trace();
}

void Watching::finish_after_error() noexcept {
  try {
    finish();
  } catch (const std::exception& error) {
    fmt::print(stderr, "heddle: {}\n", error.what());
  }
}

}  // namespace heddle::cli
