// States: tensors that outlive runs and are updated in place, such as KV caches.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "heddle/array.h"

namespace heddle {

struct Failure;

/// A tensor with an identity: bound by name to any number of Executables, which read and write the
/// one buffer in turn. Thread-safe.
class State : public RefCounted {
 public:
  /// What becomes of the state when a run that wrote it fails.
  enum class OnFailure : std::uint8_t {
    fail,  // reads and runs throw the run's error until `seed` or `reset`
    keep,  // the owner promises that runs write only rows which nobody counts as valid before they
           // end
  };

  /// All zeros, on `device`.
  State(Device& device, TensorSpec spec, OnFailure on_failure = OnFailure::fail);

  TensorSpec spec() const;
  Device& device() const noexcept { return device_; }
  /// Whether the value went with a loss of its device. Reads and runs then throw device_lost until
  /// `seed` or `reset`.
  bool is_lost() const;
  /// Changes with every seed, reset and growth, not with runs.
  std::uint64_t generation() const;

  /// Replaces the value and ends a failure. Throws invalid_argument unless dtype and shape are the
  /// state's.
  void seed(const Array& value);
  void reset();  // to zeros
  /// More rows (axis 0): the old ones are kept, the new ones zero. Executables bound to it see them
  /// from their next run on. Throws invalid_argument for fewer.
  void grow(std::int64_t rows);
  /// Copies rows [from, from + count) over [to, to + count), which must not overlap them.
  void copy_rows(std::int64_t from, std::int64_t to, std::int64_t count);
  /// The value, copied, once pending runs have ended; throws the error of a run that failed it.
  Array read() const;
  /// Rows [begin, end) of it.
  Array read_rows(std::int64_t begin, std::int64_t end) const;

 private:
  friend class StateUse;
  /// Throws if the value is lost or failed.
  void check_usable() const;
  /// Waits for pending runs. With OnFailure::keep their errors are theirs alone.
  void settle() const;
  void replace(Ref<Buffer> buffer);

  Device& device_;
  const OnFailure on_failure_;
  mutable std::mutex mutex_;  // held while a run that uses the state is being submitted
  TensorSpec spec_;
  Ref<Buffer> buffer_;
  std::uint64_t generation_ = 0;
  std::shared_ptr<const Failure> failure_;
};

}  // namespace heddle
