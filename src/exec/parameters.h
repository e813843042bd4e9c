// Weights as Executables see them: on a device, plain or packed.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "heddle/executable.h"

namespace heddle {

struct Parameters::Impl {
  struct Entry {
    View plain;  // on the CPU, contiguous
    std::map<Device*, View> copies;
    std::map<std::pair<Device*, LayoutKind>, View> packed;
  };

  /// Runs the repack: from the plain weight on the device into a buffer of that device.
  using Pack = std::function<void(const View& plain, const View& packed)>;

  /// Throws invalid_argument when the weight is not set or not of `spec`.
  View plain(const std::string& name, const TensorSpec& spec, Device& device);
  View packed(const std::string& name, const OperandSpec& operand, Device& device,
              const Pack& pack);

  /// Whether the weight is there on the device in this layout, so that asking for it takes no more
  /// memory. Mapped weights are, on the CPU.
  bool holds(std::string_view name, const OperandSpec& operand, Device& device) const;

  void set(const std::string& name, View plain);
  const Entry* find(std::string_view name) const;

  /// Counts changes: while it stays the same, so do all views given out.
  std::atomic<std::uint64_t> revision{0};
  mutable std::mutex mutex;

 private:
  View plain_locked(const std::string& name, const TensorSpec& spec, Device& device);
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace heddle
