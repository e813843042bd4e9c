// What a command that runs a model can be asked to show of its runs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "heddle/llm.h"
#include "heddle/observe.h"

namespace CLI {
class App;
}

namespace heddle::cli {

struct ObserveArguments {
  std::string trace;  // a file; empty: none
  std::int64_t trace_steps = 16;
  bool profile = false;
  /// Given, they are not measured: GB/s and Gop/s of every device.
  std::optional<double> bandwidth, peak;
  std::string dump;  // a directory; empty: none
  std::string dump_filter;
  std::int64_t dump_steps = 1;
};
void add_observe(CLI::App& app, ObserveArguments& arguments);

/// Watches what a command runs, as far as it was asked to.
class Watching {
 public:
  /// `context` tells which devices a profile's bounds are wanted of, and `of` whose runs are
  /// watched.
  Watching(const llm::ContextOptions& context, const ObserveArguments& arguments,
           ObserveScope::Of of = ObserveScope::Of::this_thread);
  ~Watching();
  Watching(const Watching&) = delete;
  Watching& operator=(const Watching&) = delete;

  /// body(), watched. If it throws, finishes first.
  template <class Body>
  void during(const Body& body) {
    begin();
    try {
      body();
    } catch (...) {
      end();
      finish_after_error();
      throw;
    }
    end();
  }
  /// Writes the files and texts that were asked for. Throws the error of watching, if there was
  /// one.
  void finish();

 private:
  void begin();
  void end() noexcept;
  void finish_after_error() noexcept;

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace heddle::cli
