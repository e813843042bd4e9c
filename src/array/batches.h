// One evaluation's work on devices that take it in batches: what is encoded, submitted, in order
// with the rest, and which memory it may use again.
#pragma once

#include <cstddef>
#include <deque>
#include <unordered_map>
#include <vector>

#include "array/node.h"
#include "heddle/device.h"

namespace heddle {

/// The error of work that an op waits for: not its own, and so passed on as it is.
class InheritedError : public Error {
 public:
  using Error::Error;
};

using BufferSet = std::unordered_map<const Buffer*, Ref<Buffer>>;

/// Work on one stream that was encoded but not submitted, and what outlives it there.
struct Batch {
  Ref<Stream> stream;
  Device* device = nullptr;
  bool by_default = false;  // also for nodes that name no stream
  bool on_cpu = false;      // computes as it encodes: never open
  bool open = false;
  std::size_t launches = 0, bytes = 0;
  std::vector<Ref<Node>> nodes;    // settled with its submission
  BufferSet reads;                 // written before the batch
  BufferSet writes;                // copies for other devices among them
  std::vector<Ref<Buffer>> spare;  // of dead intermediates
  Ref<Buffer> scratch;             // workspace of launch after launch
  Ref<Completion> last_end;        // of the batch before
};

/// Not thread-safe.
class Batches {
 public:
  Batches() = default;
  Batches(const Batches&) = delete;
  Batches& operator=(const Batches&) = delete;
  ~Batches() { submit_all(); }

  /// The batch of `stream`, or of the device's default stream if that is null.
  Batch& of(Device& device, const Ref<Stream>& stream = nullptr);
  /// The open batch that writes `buffer`, or null.
  Batch* writing(const Buffer& buffer) noexcept;

  /// Adds work: calls add(stream). Throws InheritedError, without the call, if earlier batches of
  /// this evaluation failed. When the call throws, all that the batch has added is lost.
  template <class Add>
  void add_to(Batch& batch, const Add& add) {
    open(batch);
    try {
      add(*batch.stream);
    } catch (...) {
      abandon(batch, failure_of(std::current_exception()));
      throw;
    }
  }
  /// Makes what `batch` does next come after what writes `buffer`; or after all that uses it.
  void order_after_writes(Batch& batch, const Buffer& buffer);
  void order_after_uses(Batch& batch, const Buffer& buffer);

  /// Throws the error of the work that wrote `buffer` if it is known by now.
  static void throw_known_error(const Buffer& buffer);

  void note_read(Batch& batch, const Ref<Buffer>& buffer, bool only_owner);
  void note_write(Batch& batch, const Ref<Buffer>& buffer);
  /// Handles on `buffer` that open batches hold because they use it.
  std::int64_t handles_on(const Buffer& buffer) const noexcept;

  /// Memory for work of `batch`; of intermediates that died, if it fits. At a limit waits for work
  /// in flight, and throws out_of_memory when there is none.
  Ref<Buffer> allocate(Batch& batch, std::size_t bytes);
  Ref<Buffer> allocate(Device& device, std::size_t bytes, MemoryKind kind);

  /// Takes the memory of what the batch has just read for later work of it, if nobody else holds or
  /// uses it.
  static void recycle(Batch& batch, Ref<Buffer> buffer);

  /// Adds a node whose results some open batch makes, and submits it if it is large enough.
  void join(Batch& batch, const Ref<Node>& node);
  /// Drops a handle on what an op has read. A node that only its open batch still holds goes with
  /// it: intermediates end at their last use, submitted or not.
  void release(Array input) noexcept;

  std::shared_ptr<const Failure> submit(Batch& batch) noexcept;
  /// Throws the failure as an InheritedError.
  void submit_or_throw(Batch& batch);
  void submit_all() noexcept;

 private:
  void open(Batch& batch);
  void order(Batch& batch, const Ref<Completion>& work);
  /// Fails the batch's nodes (a CPU has none) and, as a failed submission does, what comes later.
  void abandon(Batch& batch, std::shared_ptr<const Failure> failure) noexcept;
  static void reset(Batch& batch) noexcept;
  void note_end(const Batch& batch, const Ref<Completion>& end);
  void give_back(Device& device) noexcept;
  static Ref<Buffer> take_spare(Batch& batch, std::size_t bytes);

  std::deque<Batch> batches_;               // a deque, so that references hold
  std::shared_ptr<const Failure> failure_;  // of the first submission that failed
};

}  // namespace heddle
