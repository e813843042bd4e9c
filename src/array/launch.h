// Running single ops on views: chooses the device, brings operands there, and reuses memory where
// that cannot be seen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "array/batches.h"
#include "array/operand.h"
#include "array/watch.h"
#include "device/lower.h"

namespace heddle {

/// What evaluation has done since the process began: for tests and profiles.
struct EvalCounts {
  std::uint64_t nodes = 0;      // run, views included
  std::uint64_t launches = 0;   // kernels
  std::uint64_t transfers = 0;  // copies from device to device
  std::uint64_t donations = 0;  // outputs written over an input
  std::uint64_t fallbacks = 0;  // nodes pinned to a device that ran on the CPU instead
};
EvalCounts eval_counts() noexcept;
/// Of the fallbacks, how many of each op, by name.
std::map<std::string, std::uint64_t> fallbacks_by_op();

/// One evaluation's launches. Not thread-safe.
class Launcher {
 public:
  Launcher() = default;
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;
  ~Launcher();

  /// The value of an array whose node has it, or waits for it in an open batch.
  Operand operand_of(const Array& input);
  /// Runs the op of a claimed node and gives the node its results. The node is settled on return,
  /// or once the batch that it joined is submitted. Throws what goes wrong until then; the node is
  /// then the caller's to fail.
  void run(const Ref<Node>& node, OperandList&& operands);

  Batches& batches() noexcept { return batches_; }
  /// Whoever watches this evaluation; null if nobody does.
  EvaluationWatch* watch() noexcept { return watch_.get(); }

  /// The value row-major where the host can read it now: `view` itself if it is so, else a copy.
  /// Throws the error of the work that makes it.
  View read_on_host(const View& view);

 private:
  struct Copied {
    Ref<Buffer> source;
    std::size_t offset = 0, bytes = 0;
    View copy;
  };

  OperandList results_watched(const Node& node, OperandList&& operands);
  void join(const Ref<Node>& node, const OperandList& results);
  OperandList results_of(const Node& node, OperandList&& operands);
  OperandList compute(const Node& node, OperandList&& operands);
  OperandList run_op(Batch& batch, const Op& op, OperandList&& operands,
                     std::span<const TensorSpec> outputs);
  OperandList run_legal(Batch& batch, const Op& op, Legal legal, OperandList&& operands,
                        std::span<const TensorSpec> outputs);
  OperandList run_lowered(Batch& batch, const Lowered& lowered, OperandList&& operands);
  Operand run_view(const Op& op, Operand operand, TensorSpec result);
  OperandList launch(Batch& batch, const std::shared_ptr<const Kernel>& kernel,
                     OperandList&& operands, std::span<const OperandSpec> outputs);
  Operand place_output(Batch& batch, const Kernel& kernel, std::size_t output,
                       const OperandSpec& spec, OperandList& operands);
  View workspace(Batch& batch, std::size_t bytes);
  /// A row-major copy on the device that holds `view`.
  Operand contiguous_copy(Operand operand);
  /// The value in memory of the batch's device: `view` itself, or a copy with the same layout.
  Operand move_to(Batch& batch, const View& view);

  Batches batches_;
  std::deque<Copied> copied_;  // the latest, for what several nodes read
  EvalCounts counts_;
  const std::unique_ptr<EvaluationWatch> watch_ = watch_evaluation();
};

}  // namespace heddle
