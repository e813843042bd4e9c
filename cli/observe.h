// What a command that runs a model can be asked to show of its runs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "heddle/llm.h"

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
  Watching(const llm::Context& context, const ObserveArguments& arguments);
  ~Watching();
  Watching(const Watching&) = delete;
  Watching& operator=(const Watching&) = delete;

  /// body(), watched as far as this thread runs it. If it throws, finishes first.
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
