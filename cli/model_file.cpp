#include "cli/model_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "heddle/error.h"

namespace heddle::cli {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string progress_text(const llm::WriteProgress& at, double seconds) {
  const double share = static_cast<double>(at.done) / static_cast<double>(at.total);
  return fmt::format("{:3.0f}% of {}, {:.0f} s left: {}", 100 * share, bytes_text(at.total),
                     seconds / share - seconds, at.tensor);
}

std::string tensors_text(const llm::ModelFileSummary& summary) {
  std::vector<std::string> parts;
  for (const auto& [dtype, count] : summary.tensors) {
    parts.push_back(fmt::format("{} {}", count, to_string(dtype)));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

void say(const llm::ModelFileSummary& summary, const std::string& path, double seconds) {
  if (!summary.fallbacks.empty()) {
    const llm::ModelFileSummary::Fallback& first = summary.fallbacks.front();
    fmt::print(stderr,
               "tensors with rows that their type's blocks do not divide, so that another was "
               "taken: {} ({} is {}, "
               "not {})\n",
               summary.fallbacks.size(), first.tensor, to_string(first.given),
               to_string(first.wanted));
  }
  if (summary.requantized > 0) {
    fmt::print(stderr,
               "tensors that were quantised already: {}; they lose precision twice, and would lose "
               "less from an f32, f16 or bf16 file\n",
               summary.requantized);
  }
  const std::string before =
      summary.bytes_before > 0 ? bytes_text(summary.bytes_before) + " -> " : "";
  fmt::print(stderr, "{}: {}{} of weights in {:.1f} s; tensors: {}\n", path, before,
             bytes_text(summary.bytes_after), seconds, tensors_text(summary));
}

}  // namespace

int make_model_file(
    llm::ModelFileOptions options, const std::string& path,
    const std::function<llm::ModelFileSummary(const llm::ModelFileOptions&)>& make) {
  const Clock::time_point start = Clock::now();
  const InterruptScope interrupt;
  Progress progress;
  options.progress = [&](const llm::WriteProgress& at) {
    progress.show(progress_text(at, seconds_since(start)));
    return !interrupt.interrupted();
  };
  try {
    const llm::ModelFileSummary summary = make(options);
    progress.clear();
    say(summary, path, seconds_since(start));
    return kOk;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::cancelled) throw;
    progress.clear();
    fmt::print(stderr, "heddle: {}\n", error.what());
    return kInterrupted;
  }
}

}  // namespace heddle::cli
