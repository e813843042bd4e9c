// Weights as Executables see them: on a device, plain or packed.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "heddle/executable.h"

namespace heddle {

/// Bytes of weights that a run packs, or carries to a device, because no run has needed them
/// before.
struct LoadProgress {
  std::uint64_t done = 0, total = 0;
  std::string_view parameter;  // the one that raised `done`
};

struct Parameters::Impl {
  struct Entry {
    View plain;  // on the CPU, contiguous: what devices get it from, after a loss anew
    std::shared_ptr<const void> mapping;  // of which it is a part, if it is
    std::span<const std::byte> left;      // of a mapping: where it lay, and is read no more
    std::map<Device*, View> copies;
    std::map<std::pair<Device*, LayoutKind>, View> packed;
  };

  /// Runs the repack: from the plain weight on the device into a buffer of that device.
  using Pack = std::function<void(const View& plain, const View& packed)>;

  /// Throws invalid_argument when the weight is not set or not of `spec`, out_of_memory naming it
  /// if the device has no room for it. Where mapped pages are to be released, small weights leave
  /// the mapping: to read one of them there maps many pages around it.
  View plain(const std::string& name, const TensorSpec& spec, Device& device);
  /// The same for a packed form. On other devices than the CPU, the plain one is not kept for it;
  /// `release` is told of each piece of a mapped weight as soon as it is packed.
  View packed(const std::string& name, const OperandSpec& operand, Device& device,
              const Pack& pack);

  /// Lets the device see the host's memory of weights that are neighbours in one mapping through
  /// one buffer, if it can. The others it sees, or gets copies of, one by one when asked for.
  void import_together(std::span<const std::string> names, Device& device);

  /// Whether the weight is there on the device in this layout, so that asking for it takes no more
  /// memory. Mapped weights are, on the CPU.
  bool holds(std::string_view name, const OperandSpec& operand, Device& device) const;

  void set(const std::string& name, View plain, std::shared_ptr<const void> mapping);
  const Entry* find(std::string_view name) const;

  /// Releases what lies in the mapping of weights that have left it since the last call, and
  /// between them: packing and copying them mapped pages that they share.
  void release_left();

  /// Is told of mapped bytes that were packed and will hardly be read again. To be set first.
  std::function<void(std::span<const std::byte>)> release;
  /// Whom to tell of weights that are made ready for a run: on the thread of that run, now and
  /// then, and at the end. It may not use these Parameters. Empty unless somebody wants to know.
  std::function<void(const LoadProgress&)> progress() const;
  void set_progress(std::function<void(const LoadProgress&)> progress);

  /// Counts changes: while it stays the same, so do all views given out, until a device is lost.
  std::atomic<std::uint64_t> revision{0};
  mutable std::mutex mutex;

 private:
  /// Weights next to each other in memory.
  struct Window {
    std::byte *begin, *end;
    std::vector<Entry*> entries;
  };

  Entry& entry_of(const std::string& name, const TensorSpec& spec);
  /// The plain weight if it is there, or the device can see the host's memory; else null.
  static const View* without_copying(Entry& entry, Device& device);
  void leave_mapping(Entry& entry);
  void pack_in_pieces(const View& plain, const View& packed, const Pack& pack) const;
  std::vector<Entry*> to_import(std::span<const std::string> names, Device& device);
  static std::vector<Window> windows_of(std::vector<Entry*> entries);
  static bool import(const Window& window, Device& device);

  std::map<std::string, Entry, std::less<>> entries_;
  bool has_left_ = false;  // weights, since release_left
  std::function<void(const LoadProgress&)> progress_;
};

}  // namespace heddle
