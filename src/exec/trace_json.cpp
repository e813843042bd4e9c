#include "exec/trace_json.h"

#include <cmath>

#include "exec/statistics.h"

namespace heddle::trace_json {

namespace {

Json of(const TensorSpec& spec) {
  return {{"dtype", to_string(spec.dtype)},
          {"shape", std::vector<std::int64_t>(spec.shape.begin(), spec.shape.end())}};
}

Json of(const std::vector<TensorSpec>& specs) {
  Json list = Json::array();
  for (const TensorSpec& spec : specs) list.push_back(of(spec));
  return list;
}

Json of(const ObservedNode& node) {
  Json inputs = Json::array();
  for (const auto& [source, output] : node.inputs) inputs.push_back({source, output});
  return {{"kind", to_string(node.kind)},
          {"op", node.op},
          {"family", node.family},
          {"name", node.name},
          {"text", node.text},
          {"id", node.id},
          {"inputs", std::move(inputs)},
          {"outputs", of(node.outputs)},
          {"split", node.split},
          {"device", node.device},
          {"bytes", node.bytes},
          {"operations", node.operations},
          {"writes_state", node.writes_state}};
}

Json of(const ObservedPlan::Arena& arena) {
  Json items = Json::array();
  for (const ObservedPlan::Item& item : arena.items) {
    items.push_back({{"node", item.node},
                     {"output", item.output},
                     {"offset", item.offset},
                     {"bytes", item.bytes},
                     {"first", item.first},
                     {"last", item.last}});
  }
  return {{"device", arena.device},
          {"bytes", arena.bytes},
          {"lower_bound", arena.lower_bound},
          {"items", std::move(items)}};
}

/// Four digits are what a picture shows.
Json rounded(double value) {
  if (!std::isfinite(value)) return nullptr;
  if (value == 0) return 0.0;
  const double scale = std::pow(10.0, 3 - std::floor(std::log10(std::abs(value))));
  return std::isfinite(scale) && scale > 0 ? std::round(value * scale) / scale : value;
}
Json exact(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json sample_of(const Statistics& statistics) {
  Json rows = Json::array();
  const auto columns = static_cast<std::size_t>(statistics.sample_columns);
  for (std::size_t at = 0; at < statistics.sample.size(); at += columns) {
    Json row = Json::array();
    for (std::size_t c = 0; c < columns; ++c) {
      row.push_back(rounded(static_cast<double>(statistics.sample[at + c])));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Json of(const ObservedValue& value, const Statistics& statistics) {
  const Shape& shape = value.spec.shape;
  return {{"output", value.output},
          {"rows", shape.empty() ? Json(nullptr) : Json(shape[0])},
          {"count", statistics.count},
          {"nan", statistics.nan},
          {"inf", statistics.inf},
          {"min", exact(statistics.min)},
          {"max", exact(statistics.max)},
          {"mean", exact(statistics.mean)},
          {"mean_magnitude", exact(statistics.mean_magnitude)},
          {"histogram", statistics.histogram},
          {"sample", sample_of(statistics)}};
}

}  // namespace

double microseconds(ObservedTime since, ObservedTime until) {
  return std::chrono::duration<double, std::micro>(until - since).count();
}

std::string text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json of(const ObservedPlan& plan) {
  Json nodes = Json::array(), splits = Json::array(), arenas = Json::array();
  for (const ObservedNode& node : plan.nodes) nodes.push_back(of(node));
  for (const ObservedPlan::Split& split : plan.splits) {
    splits.push_back({{"device", split.device}, {"feeds", split.feeds}, {"nodes", split.nodes}});
  }
  for (const ObservedPlan::Arena& arena : plan.arenas) arenas.push_back(of(arena));
  return {{"plan", plan.id},
          {"nodes", std::move(nodes)},
          {"splits", std::move(splits)},
          {"arenas", std::move(arenas)}};
}

Json of(const ObservedRun& run, const ObservedRecord& record, ObservedTime start) {
  Json values = Json::array();
  for (const ObservedValue& value : record.values) {
    const auto statistics = statistics_of(value.spec, value.bytes);
    if (statistics) values.push_back(of(value, *statistics));
  }
  Json json{{"node", record.node},
            {"begin", microseconds(start, record.begin)},
            {"encode", microseconds(record.begin, record.encoded)},
            {"wait", microseconds(record.encoded, record.end)},
            {"bytes", record.bytes},
            {"operations", record.operations},
            {"values", std::move(values)}};
  if (!run.plan) {
    json["op"] = record.what.op;
    json["family"] = record.what.family;
    json["text"] = record.what.text;
    json["device"] = record.what.device;
    json["outputs"] = of(record.what.outputs);
  }
  return json;
}

Json event_of(const ObservedRun& run, const ObservedRecord& record, ObservedTime start,
              int thread) {
  const ObservedNode& node = record.what;
  return {{"ph", "X"},
          {"pid", 1},
          {"tid", thread},
          {"ts", microseconds(start, record.begin)},
          {"dur", microseconds(record.begin, record.end)},
          {"name", node.op},
          {"cat", node.family},
          {"args",
           {{"run", run.id},
            {"node", record.node},
            {"name", node.name},
            {"shape", node.outputs.empty() ? std::string() : to_string(node.outputs[0])}}}};
}

}  // namespace heddle::trace_json
