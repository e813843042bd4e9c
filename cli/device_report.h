// What a context's devices have done in the meantime, for people.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "heddle/device.h"
#include "heddle/llm.h"

namespace heddle::cli {

/// The devices that the context's model runs on.
std::vector<Device*> devices_of(const llm::Context& context);

/// A line for each split of a step of so many tokens, in the plan that runs it; nothing if there
/// are no plans.
std::string splits_of_step(llm::Context& context, std::int64_t tokens);

/// A line if products on the CPU, where the model or part of it runs, are not exact; else nothing.
std::string precision_text(const llm::Context& context);

/// Begins when it is made. The context must outlive it.
class DeviceReport {
 public:
  explicit DeviceReport(const llm::Context& context);
  /// A paragraph a device other than the CPU, the ops that ran on the CPU instead of one, and the
  /// precision if it is not the full one.
  std::string text() const;

 private:
  const llm::Context& context_;
  std::vector<std::pair<Device*, DeviceCounts>> before_;
  std::map<std::string, std::uint64_t> host_ops_before_;
};

}  // namespace heddle::cli
