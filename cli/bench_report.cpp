#include "cli/bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/settings.h"
#include "base/system.h"
#include "cli/device_report.h"
#include "cli/model.h"
#include "cli/output.h"
#include "heddle/device.h"

namespace heddle::cli {

namespace {

using Json = nlohmann::ordered_json;

struct Statistics {
  double mean = 0, deviation = 0;  // of a sample: divided by one less than their number
};

template <class T>
Statistics statistics(const std::vector<T>& samples) {
  const auto count = static_cast<double>(samples.size());
  const double mean = std::accumulate(samples.begin(), samples.end(), 0.0) / count;
  double squares = 0;
  for (const T sample : samples) {
    const double difference = static_cast<double>(sample) - mean;
    squares += difference * difference;
  }
  return {mean, samples.size() > 1 ? std::sqrt(squares / (count - 1)) : 0};
}

std::vector<double> tokens_per_second(const BenchTest& test) {
  std::vector<double> rates;
  for (const std::int64_t nanoseconds : test.samples) {
    rates.push_back(1e9 * static_cast<double>(test.n_prompt + test.n_gen) /
                    static_cast<double>(nanoseconds));
  }
  return rates;
}

/// As a person would name it: "fable-1m f16".
std::string model_type(const llm::Model& model) {
  const llm::ModelConfig& config = model.config();
  return fmt::format("{} {}", config.name.empty() ? config.architecture : config.name,
                     to_string(main_dtype(model.file())));
}

std::string device_names(const llm::Context& context) {
  std::string names;
  for (const Device* device : devices_of(context)) {
    (names += names.empty() ? "" : ",") += device->name();
  }
  return names;
}

/// As llama-bench counts: the output is one more layer.
std::int64_t gpu_layers(const llm::Context& context) {
  const llm::LayerDevices& placed = context.devices();
  const auto is_gpu = [](const Device* device) { return device && device != &cpu_device(); };
  return std::ranges::count_if(placed.layers, is_gpu) + (is_gpu(placed.output) ? 1 : 0);
}

Json to_json(const llm::Context& context, const BenchTest& test) {
  const llm::Model& model = context.model();
  const llm::ContextOptions& options = context.options();
  const std::vector<double> rates = tokens_per_second(test);
  const Statistics speed = statistics(rates), time = statistics(test.samples);
  return {{"build_version", HEDDLE_VERSION},
          {"cpu_info", processor_name()},
          {"backends", device_names(context)},
          {"model_filename", model.file().name()},
          {"model_type", model_type(model)},
          {"model_size", model.weight_bytes()},
          {"model_n_params", model.parameter_count()},
          {"n_batch", options.chunk},
          {"n_threads", options.threads},
          {"n_gpu_layers", gpu_layers(context)},
          {"type_k", to_string(options.kv_type)},
          {"type_v", to_string(options.kv_type)},
          {"lazy", options.lazy},
          {"matmul", settings().matmul},
          {"n_prompt", test.n_prompt},
          {"n_gen", test.n_gen},
          {"test_time", test.time},
          {"avg_ns", std::llround(time.mean)},
          {"stddev_ns", std::llround(time.deviation)},
          {"avg_ts", speed.mean},
          {"stddev_ts", speed.deviation},
          {"samples_ns", test.samples},
          {"samples_ts", rates}};
}

}  // namespace

std::string test_name(const BenchTest& test) {
  return test.n_gen == 0 ? fmt::format("pp{}", test.n_prompt) : fmt::format("tg{}", test.n_gen);
}

std::string bench_table(const llm::Context& context, const std::vector<BenchTest>& tests) {
  const llm::Model& model = context.model();
  const std::string type = model_type(model);
  const auto width = std::max<std::size_t>(type.size(), 5);
  std::string table = fmt::format(
      "| {:<{}} | {:>9} | {:>8} | {:<8} | {:>7} | {:>5} | {:>7} | {:>22} |\n"
      "| {:-<{}} | {:->8}: | {:->7}: | {:-<8} | {:->6}: | {:->4}: | {:->6}: | {:->21}: |\n",
      "model", width, "size", "params", "backend", "threads", "kv", "test", "t/s", "", width, "",
      "", "", "", "", "", "");
  for (const BenchTest& test : tests) {
    const Statistics speed = statistics(tokens_per_second(test));
    table += fmt::format(
        "| {:<{}} | {:>9} | {:>8} | {:<8} | {:>7} | {:>5} | {:>7} | {:>22} |\n", type, width,
        bytes_text(model.weight_bytes()), count_text(model.parameter_count()),
        device_names(context), context.options().threads, to_string(context.options().kv_type),
        test_name(test), fmt::format("{:.2f} ± {:.2f}", speed.mean, speed.deviation));
  }
  return table + fmt::format("\n{}, heddle {}\n{}", processor_name(), HEDDLE_VERSION,
                             precision_text(context));
}

std::string bench_json(const llm::Context& context, const std::vector<BenchTest>& tests) {
  Json all = Json::array();
  for (const BenchTest& test : tests) all.push_back(to_json(context, test));
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace heddle::cli
