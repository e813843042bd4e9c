#include "exec/observed_evaluation.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "array/watch.h"
#include "exec/observed_plan.h"
#include "exec/observers.h"
#include "exec/transfer.h"
#include "heddle/device.h"

namespace heddle {

namespace {

/// Begins as a run with the first node that has work.
class WatchedEvaluation final : public EvaluationWatch {
 public:
  explicit WatchedEvaluation(Watchers watchers) : watchers_(std::move(watchers)) {
    run_.begin = std::chrono::steady_clock::now();
  }

  ~WatchedEvaluation() override {
    if (run_.id == 0) return;
    const ObservedTime end = std::chrono::steady_clock::now();
    for (const auto& watched : watchers_) {
      watched->tell([&](Observer& observer) {
        if (!failure_) return observer.run_ended(run_, end, nullptr);
        const Error error(failure_->code, failure_->message);
        observer.run_ended(run_, end, &error);
      });
    }
  }

  void ran(const Op& op, std::span<const TensorSpec> inputs, std::span<const View> results,
           Time begin, Time encoded, Time end) noexcept override {
    std::optional<ObservedNode> described;
    for (const auto& watched : watchers_) {
      watched->tell([&](Observer& observer) {
        if (run_.id == 0) run_.id = next_run_id();
        if (!began_) observer.run_began(run_);
        if (!described) described = describe(op, inputs, results);
        const ObservedNode& node = *described;
        std::vector<std::vector<std::byte>> copies(results.size());
        std::vector<ObservedValue> values;
        for (std::uint32_t o = 0; o < results.size(); ++o) {
          if (!is_contiguous(results[o].operand) || !observer.wants(run_, node, o)) continue;
          values.push_back({o, results[o].spec(), bytes_of(results[o], copies[o])});
        }
        observer.node_ran(
            run_, {position_, node, begin, encoded, end, node.bytes, node.operations, values});
      });
    }
    began_ = true;
    ++position_;
  }

  void failed(const Failure& failure) noexcept override {
    if (!failure_) failure_ = std::make_shared<const Failure>(failure);
  }

 private:
  ObservedNode describe(const Op& op, std::span<const TensorSpec> inputs,
                        std::span<const View> results) {
    ObservedNode node;
    node.op = node.name = name(op);
    if (const int uses = ++uses_[node.op]; uses > 1) node.name += "#" + std::to_string(uses);
    node.family = family_name(op);
    node.text = to_string(op);
    for (const View& result : results) node.outputs.push_back(result.spec());
    node.device = results.front().buffer->device().name();
    const Cost spent = cost(op, inputs, node.outputs);
    node.bytes = spent.bytes;
    node.operations = spent.operations;
    node.writes_state = writes_state(op);
    return node;
  }

  static std::span<const std::byte> bytes_of(const View& view, std::vector<std::byte>& copy) {
    const std::size_t bytes = byte_size(view.spec());
    if (view.buffer->host()) return {view.host(), bytes};
    copy.resize(bytes);
    read_buffer(view.buffer, view.offset, copy);
    return copy;
  }

  const Watchers watchers_;
  ObservedRun run_;
  std::uint32_t position_ = 0;
  bool began_ = false;
  std::map<std::string, int> uses_;  // of each op
  std::shared_ptr<const Failure> failure_;
};

std::unique_ptr<EvaluationWatch> make_watch() {
  Watchers watchers = watchers_now();
  if (watchers.empty()) return nullptr;
  return std::make_unique<WatchedEvaluation>(std::move(watchers));
}

}  // namespace

void watch_evaluations() noexcept {
  make_evaluation_watch.store(&make_watch, std::memory_order_release);
}

}  // namespace heddle
