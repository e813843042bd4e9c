// Runs as JSON: kept for a file, or line by line. docs/trace.md says what is written.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "heddle/observe.h"

namespace heddle {

/// Keeps the last runs, and writes them.
class Trace final : public Observer {
 public:
  struct Options {
    std::size_t runs = 16;                       // at most so many,
    std::size_t bytes = std::size_t{256} << 20;  // and of text, but for the latest run
  };
  explicit Trace(const Options& options);

  /// Writes the whole file's text, piece by piece. Runs under way are left out.
  void write(const std::function<void(std::string_view)>& out) const;
  /// Runs that `write` would write, and those that it would have if it kept more.
  std::size_t runs() const;
  std::uint64_t dropped_runs() const;

  void run_began(const ObservedRun& run) override;
  bool wants(const ObservedRun& run, const ObservedNode& node, std::uint32_t output) override;
  void node_ran(const ObservedRun& run, const ObservedRecord& record) override;
  void run_ended(const ObservedRun& run, ObservedTime end, const Error* error) override;

 private:
  struct Run {
    std::uint64_t plan = 0;  // 0: none
    std::string records, events;
    std::string text;  // of the whole run, once it has ended
  };
  void drop_old();

  const Options options_;
  const ObservedTime start_ = std::chrono::steady_clock::now();
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<const ObservedPlan>> plans_;
  std::map<std::uint64_t, Run> running_;
  std::deque<Run> ended_;
  std::size_t bytes_ = 0;
  std::uint64_t dropped_ = 0;
  std::map<std::string, int> threads_;  // numbers of devices, as threads of the viewer
};

/// Hands out a line, without its end, for each plan, run, record and end as it comes.
class TraceLines final : public Observer {
 public:
  explicit TraceLines(std::function<void(const std::string&)> line);

  void run_began(const ObservedRun& run) override;
  bool wants(const ObservedRun& run, const ObservedNode& node, std::uint32_t output) override;
  void node_ran(const ObservedRun& run, const ObservedRecord& record) override;
  void run_ended(const ObservedRun& run, ObservedTime end, const Error* error) override;

 private:
  const std::function<void(const std::string&)> line_;
  const ObservedTime start_ = std::chrono::steady_clock::now();
  std::map<std::uint64_t, std::weak_ptr<const ObservedPlan>> told_;
};

}  // namespace heddle
