#include "exec/trace.h"

#include "exec/trace_json.h"

namespace heddle {

namespace {

using trace_json::Json;
using trace_json::microseconds;
using trace_json::text;

/// Whole states are large, and parameters do not change.
bool is_worth_a_look(const ObservedNode& node, std::uint32_t output) {
  return !(node.writes_state && output == 0);
}

Json plan_number(const ObservedRun& run) {
  return run.plan ? Json(run.plan->id) : Json(nullptr);
}
Json message(const Error* error) {
  return error ? Json(error->what()) : Json(nullptr);
}

void append(std::string& list, const Json& item) {
  if (!list.empty()) list += ",\n";
  list += text(item);
}

Json name_event(const char* what, int thread, const std::string& name) {
  return {{"ph", "M"}, {"pid", 1}, {"tid", thread}, {"name", what}, {"args", {{"name", name}}}};
}

}  // namespace

Trace::Trace(const Options& options) : options_(options) {}

void Trace::run_began(const ObservedRun& run) {
  const std::lock_guard lock(mutex_);
  running_[run.id].plan = run.plan ? run.plan->id : 0;
  if (run.plan) plans_.emplace(run.plan->id, run.plan);
}

bool Trace::wants(const ObservedRun&, const ObservedNode& node, std::uint32_t output) {
  return is_worth_a_look(node, output);
}

void Trace::node_ran(const ObservedRun& run, const ObservedRecord& record) {
  const Json json = trace_json::of(run, record, start_);
  const std::lock_guard lock(mutex_);
  Run& kept = running_.at(run.id);
  append(kept.records, json);
  if (record.what.device.empty()) return;
  const auto next = static_cast<int>(threads_.size()) + 1;
  const int thread = threads_.emplace(record.what.device, next).first->second;
  append(kept.events, trace_json::event_of(run, record, start_, thread));
}

void Trace::run_ended(const ObservedRun& run, ObservedTime end, const Error* error) {
  const std::lock_guard lock(mutex_);
  Run kept = std::move(running_.at(run.id));
  running_.erase(run.id);
  const double begin = microseconds(start_, run.begin), ended = microseconds(start_, end);
  kept.text = "{\"run\":" + std::to_string(run.id) + ",\"plan\":" + text(plan_number(run)) +
              ",\"begin\":" + text(begin) + ",\"end\":" + text(ended) +
              ",\"error\":" + text(message(error)) + ",\"records\":[\n" +
              std::exchange(kept.records, {}) + "]}";
  append(kept.events, {{"ph", "X"},
                       {"pid", 1},
                       {"tid", 0},
                       {"ts", begin},
                       {"dur", ended - begin},
                       {"name", "run " + std::to_string(run.id)},
                       {"cat", "run"},
                       {"args", {{"run", run.id}, {"error", message(error)}}}});
  bytes_ += kept.text.size() + kept.events.size();
  ended_.push_back(std::move(kept));
  drop_old();
}

void Trace::drop_old() {
  while (ended_.size() > 1 && (ended_.size() > options_.runs || bytes_ > options_.bytes)) {
    bytes_ -= ended_.front().text.size() + ended_.front().events.size();
    ended_.pop_front();
    ++dropped_;
  }
}

std::size_t Trace::runs() const {
  const std::lock_guard lock(mutex_);
  return ended_.size();
}

std::uint64_t Trace::dropped_runs() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

void Trace::write(const std::function<void(std::string_view)>& out) const {
  const std::lock_guard lock(mutex_);
  out("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
  out(text(name_event("process_name", 0, "heddle")) + ",\n" +
      text(name_event("thread_name", 0, "runs")));
  for (const auto& [device, thread] : threads_) {
    out(",\n" + text(name_event("thread_name", thread, device)));
  }
  std::map<std::uint64_t, bool> named;
  for (const Run& run : ended_) {
    out(",\n");
    out(run.events);
    if (run.plan != 0) named[run.plan] = true;
  }
  out("],\n\"heddle\":{\"version\":1,\"program\":\"heddle\",\"dropped_runs\":" +
      std::to_string(dropped_) + ",\"plans\":[");
  const char* separator = "\n";
  for (const auto& [plan, is_named] : named) {
    out(std::exchange(separator, ",\n"));
    out(text(trace_json::of(*plans_.at(plan))));
  }
  out("],\n\"runs\":[");
  separator = "\n";
  for (const Run& run : ended_) {
    out(std::exchange(separator, ",\n"));
    out(run.text);
  }
  out("]}}\n");
}

TraceLines::TraceLines(std::function<void(const std::string&)> line) : line_(std::move(line)) {}

void TraceLines::run_began(const ObservedRun& run) {
  if (run.plan && told_[run.plan->id].expired()) {
    Json json{{"type", "plan"}};
    json.update(trace_json::of(*run.plan));
    line_(text(json));
    told_[run.plan->id] = run.plan;
  }
  line_(text({{"type", "run"},
              {"run", run.id},
              {"plan", plan_number(run)},
              {"begin", microseconds(start_, run.begin)}}));
}

bool TraceLines::wants(const ObservedRun&, const ObservedNode& node, std::uint32_t output) {
  return is_worth_a_look(node, output);
}

void TraceLines::node_ran(const ObservedRun& run, const ObservedRecord& record) {
  Json json{{"type", "record"}, {"run", run.id}};
  json.update(trace_json::of(run, record, start_));
  line_(text(json));
}

void TraceLines::run_ended(const ObservedRun& run, ObservedTime end, const Error* error) {
  line_(text({{"type", "end"},
              {"run", run.id},
              {"end", microseconds(start_, end)},
              {"error", message(error)}}));
}

}  // namespace heddle
