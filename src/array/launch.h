// Running single ops on views: chooses the device, brings operands there, reuses memory where that
// cannot be seen, and gathers device work into batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

#include "array/node.h"
#include "device/lower.h"

namespace heddle {

/// A value on its way into an op or out of it.
struct Operand {
  View view;
  bool unshared = false;  // nobody else can see the memory: it may be written over
  bool written = false;   // the memory was written by the work of the op being run
};

/// The error of work that an op waits for: not its own, and so passed on as it is.
class InheritedError : public Error {
 public:
  using Error::Error;
};

/// One evaluation's launches. Not thread-safe.
class Launcher {
 public:
  Launcher() = default;
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;
  ~Launcher() { submit_all(); }

  /// Runs the op of a claimed node and gives the node its results. The node is done on return, or
  /// once the batch that it joined is submitted. Throws what goes wrong until then; the node is
  /// then the caller's to fail.
  void run(const Ref<Node>& node, std::vector<Operand> operands);

  /// Drops a handle on what an op has read. A node that only its open batch still holds goes with
  /// it: intermediates end at their last use, submitted or not.
  void release(Array input) noexcept;

  /// Submits all open batches: their nodes are then done, or failed.
  void submit_all() noexcept;
  /// Whether the node waits in an open batch.
  bool holds(const Node& node) const noexcept;

  /// The value row-major where the host can read it now: `view` itself if it is so, else a copy.
  /// Throws the error of the work that makes it.
  View read_on_host(const View& view);

 private:
  /// Work that was encoded but not submitted.
  struct Batch {
    Device* device = nullptr;
    Ref<Stream> stream;
    bool open = false;
    std::size_t launches = 0, bytes = 0;
    std::vector<Ref<Node>> nodes;              // done with its submission
    std::vector<Ref<Buffer>> reads;            // written before the batch
    std::vector<Ref<Buffer>> copies;           // made here from other devices' memory, or for it
    std::unordered_set<const Buffer*> writes;  // compared only: they may be gone
    Ref<Buffer> scratch;                       // workspace of one launch after the other
  };
  struct Copied {
    Ref<Buffer> source;
    std::size_t offset = 0, bytes = 0;
    View copy;
  };

  Batch& batch_of(Device& device);
  std::optional<Failure> submit(Batch& batch) noexcept;
  static void note_end(const Batch& batch, const Ref<Completion>& end);
  void join(const Ref<Node>& node, const std::vector<Operand>& results);

  std::vector<Operand> compute(const Node& node, std::vector<Operand> operands);
  std::vector<Operand> run_op(Device& device, const Op& op, std::vector<Operand> operands,
                              std::span<const TensorSpec> outputs);
  std::vector<Operand> run_legal(Device& device, const Op& op, Legal legal,
                                 std::vector<Operand> operands,
                                 std::span<const TensorSpec> outputs);
  std::vector<Operand> run_lowered(Device& device, const Lowered& lowered,
                                   std::vector<Operand> operands);
  Operand run_view(const Op& op, Operand operand, TensorSpec result);
  std::vector<Operand> launch(Device& device, const Op& op,
                              const std::shared_ptr<const Kernel>& kernel,
                              std::vector<Operand> operands, std::span<const TensorSpec> outputs);
  /// A row-major copy on the device that holds `view`.
  Operand contiguous_copy(Operand operand);
  /// The value in the memory of `device`: `view` itself, or a copy with the same layout.
  View move_to(Device& device, const View& view);
  Operand place_output(Device& device, const Kernel& kernel, std::size_t output,
                       OperandSpec operand, std::vector<Operand>& operands);
  View workspace(Batch& batch, std::size_t bytes);

  std::deque<Batch> batches_;  // a deque, so that references hold
  std::deque<Copied> copied_;  // the latest, for what several nodes read
};

/// What evaluation has done since the process began: for tests and profiles.
struct EvalCounts {
  std::uint64_t nodes = 0;      // run, views included
  std::uint64_t launches = 0;   // kernels
  std::uint64_t transfers = 0;  // copies from device to device
  std::uint64_t donations = 0;  // outputs written over an input
  std::uint64_t fallbacks = 0;  // nodes pinned to a device that ran on the CPU instead
};
EvalCounts eval_counts() noexcept;

}  // namespace heddle
