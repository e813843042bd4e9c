#include "exec/observed_run.h"

#include "exec/transfer.h"

namespace heddle {

namespace {

bool is_barrier(const PlannedStep& step) {
  return std::holds_alternative<PlannedBarrier>(step);
}

/// The first bytes of what lies there: where the host sees them, or in `copy`. What is made on a
/// device is copied right after its producer, which has ended: nothing has written over it yet.
std::span<const std::byte> read(const Bindings& bindings, const Location& at, std::size_t bytes,
                                std::vector<std::byte>& copy) {
  const Ref<Buffer>& buffer = bindings.buffer(at.slot);
  const std::size_t offset = bindings.offset(at.slot) + at.offset;
  if (buffer->host()) {
    buffer->wait_for_writes();
    return {buffer->host() + offset, bytes};
  }
  copy.resize(bytes);
  read_buffer(buffer, offset, copy);
  return copy;
}

}  // namespace

void NodeRecordings::make(const Plan& plan) {
  for (const auto* splits : {&plan.splits, &plan.feeds}) {
    for (const Split& split : *splits) {
      if (made_.contains(&split)) continue;
      List list;
      for (const PlannedStep& step : split.steps) {
        if (is_barrier(step)) continue;
        Split alone;
        alone.device = split.device;
        alone.steps = {PlannedBarrier{}, step};  // after the submission before it
        list.push_back(record(plan, alone));
      }
      made_.emplace(&split, std::move(list));
    }
  }
}

WatchedRun::WatchedRun(Watchers watchers, const Plan& plan,
                       std::shared_ptr<const ObservedPlan> described,
                       std::span<const NamedTensor> inputs)
    : watchers_(std::move(watchers)),
      plan_(plan),
      inputs_(inputs),
      costs_(plan.placed.graph, plan.placed.extents, inputs),
      run_{next_run_id(), std::move(described), std::chrono::steady_clock::now()} {
  for (const auto& watched : watchers_) {
    watched->tell([&](Observer& observer) { observer.run_began(run_); });
  }
}

WatchedRun::~WatchedRun() {
  if (finished_) return;
  finish(std::make_shared<const Failure>(
      Failure{ErrorCode::cancelled, "the run ended before its first node"}));
}

void WatchedRun::finish(std::shared_ptr<const Failure> failure) {
  finished_ = true;
  const ObservedTime end = std::chrono::steady_clock::now();
  for (const auto& watched : watchers_) {
    watched->tell([&](Observer& observer) {
      if (!failure) return observer.run_ended(run_, end, nullptr);
      const Error error(failure->code, failure->message);
      observer.run_ended(run_, end, &error);
    });
  }
}

bool WatchedRun::is_wanted(const ObservedNode& node, std::uint32_t output) {
  bool wanted = false;
  for (const auto& watched : watchers_) {
    watched->tell(
        [&](Observer& observer) { wanted = wanted || observer.wants(run_, node, output); });
  }
  return wanted;
}

void WatchedRun::tell(ObservedRecord record, const std::vector<ObservedValue>& values) {
  std::vector<ObservedValue> wanted;
  for (const auto& watched : watchers_) {
    watched->tell([&](Observer& observer) {
      wanted.clear();
      for (const ObservedValue& value : values) {
        if (observer.wants(run_, record.what, value.output)) wanted.push_back(value);
      }
      record.values = wanted;
      observer.node_ran(run_, record);
    });
  }
}

void WatchedRun::tell_of_inputs() {
  const std::vector<ObservedNode>& nodes = run_.plan->nodes;
  for (std::uint32_t n = 0; n < nodes.size(); ++n) {
    if (nodes[n].kind != ObservedNode::Kind::input) continue;
    for (const auto& [name, tensor] : inputs_) {
      if (name != nodes[n].name) continue;
      std::vector<ObservedValue> values;
      if (is_wanted(nodes[n], 0)) {
        TensorSpec spec = tensor.spec;
        if (!spec.shape.empty()) spec.shape[0] = costs_.rows(nodes[n].id, 0);
        values.push_back({0, spec, tensor.bytes.first(byte_size(spec))});
      }
      const ObservedTime now = std::chrono::steady_clock::now();
      tell({n, nodes[n], now, now, now, 0, 0, {}}, values);
    }
  }
}

void WatchedRun::begin(NodeRecordings& recordings) {
  recordings.make(plan_);
  tell_of_inputs();
}

Ref<Completion> WatchedRun::run_split(std::size_t index, const Split& split, Stream& stream,
                                      const Bindings& bindings, const NodeRecordings& recordings) {
  last_end_ = nullptr;
  const NodeRecordings::List& list = recordings.of(split);
  const std::vector<std::uint32_t>& nodes = run_.plan->splits[index].nodes;
  std::size_t next = 0;
  for (const PlannedStep& step : split.steps) {
    if (is_barrier(step)) continue;
    run_node(nodes[next], step, *list[next], stream, bindings);
    ++next;
  }
  if (!last_end_) last_end_ = stream.submit();
  return last_end_;
}

void WatchedRun::run_node(std::uint32_t node, const PlannedStep& step, const Recording& recording,
                          Stream& stream, const Bindings& bindings) {
  const ObservedNode& what = run_.plan->nodes[node];
  const ObservedTime begin = std::chrono::steady_clock::now();
  stream.replay(recording, bindings.table(&stream.device()));
  last_end_ = stream.submit();
  const ObservedTime encoded = std::chrono::steady_clock::now();
  last_end_->wait();
  const ObservedTime end = std::chrono::steady_clock::now();
  const auto* launch = std::get_if<PlannedLaunch>(&step);
  if (!launch) return tell({node, what, begin, encoded, end, what.bytes, 0, {}}, {});
  const Cost spent = costs_.of(launch->node);
  tell({node, what, begin, encoded, end, spent.bytes, spent.operations, {}},
       values_of(what, *launch, bindings));
}

std::vector<ObservedValue> WatchedRun::values_of(const ObservedNode& node,
                                                 const PlannedLaunch& launch,
                                                 const Bindings& bindings) {
  std::vector<ObservedValue> values;
  copies_.resize(launch.outputs.size());
  for (std::uint32_t o = 0; o < launch.outputs.size(); ++o) {
    const Location& at = launch.outputs[o];
    if (!is_contiguous(at.operand) || !is_wanted(node, o)) continue;
    ObservedValue value{o, at.operand.spec, {}};
    if (!value.spec.shape.empty()) value.spec.shape[0] = costs_.rows(launch.node, o);
    try {
      value.bytes = read(bindings, at, byte_size(value.spec), copies_[o]);
      values.push_back(std::move(value));
    } catch (...) {  // the node has done its work: only those who wanted to see it are the worse
      for (const auto& watched : watchers_) {
        watched->tell([&](Observer& observer) {
          if (observer.wants(run_, node, o)) throw;
        });
      }
    }
  }
  return values;
}

}  // namespace heddle
