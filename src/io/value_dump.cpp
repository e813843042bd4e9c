#include "io/value_dump.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "base/check.h"
#include "exec/statistics.h"
#include "io/atomic_file.h"
#include "io/mapped_file.h"
#include "io/npy.h"

namespace heddle {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr std::size_t kMostName = 120;  // characters; many file systems take 255 bytes

std::string value_name(const ObservedNode& node, std::uint32_t output) {
  return output == 0 ? node.name : fmt::format("{}.{}", node.name, output);
}

Json to_json(const DumpedValue& value) {
  return {{"run", value.run},
          {"name", value.name},
          {"op", value.op},
          {"device", value.device},
          {"dtype", to_string(value.dtype)},
          {"shape", std::vector<std::int64_t>(value.shape.begin(), value.shape.end())},
          {"file", value.file}};
}

/// A path that stays below the directory.
bool is_below(const std::string& file) {
  const fs::path path(file);
  return !file.empty() && path.is_relative() &&
         std::none_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".."; });
}

DumpedValue value_from(const Json& json) {
  DumpedValue value{.run = json.at("run").get<std::uint64_t>(),
                    .name = json.at("name").get<std::string>(),
                    .op = json.at("op").get<std::string>(),
                    .device = json.at("device").get<std::string>(),
                    .file = json.at("file").get<std::string>()};
  const std::string type = json.at("dtype").get<std::string>();
  const std::optional<DType> dtype = dtype_from_name(type);
  require(dtype.has_value(), ErrorCode::io, "there is no type '{}'", type);
  value.dtype = *dtype;
  const auto extents = json.at("shape").get<std::vector<std::int64_t>>();
  value.shape = Shape(extents);
  require(is_below(value.file), ErrorCode::io, "'{}' is no file below the directory", value.file);
  return value;
}

}  // namespace

struct ValueDump::Filter {
  std::regex expression;
  explicit Filter(const std::string& text) try : expression(text) {
  } catch (const std::regex_error& error) {
    fail(ErrorCode::invalid_argument, "'{}' is no regular expression: {}", text, error.what());
  }
};

ValueDump::ValueDump(Options options)
    : options_(std::move(options)),
      filter_(options_.filter.empty() ? nullptr : std::make_unique<Filter>(options_.filter)) {
  std::error_code error;
  fs::create_directories(options_.directory, error);
  require(!error, ErrorCode::io, "{}: cannot make the directory: {}", options_.directory.string(),
          error.message());
  const bool empty = fs::is_empty(options_.directory, error);
  require(!error, ErrorCode::io, "{}: {}", options_.directory.string(), error.message());
  require(empty, ErrorCode::invalid_argument, "{}: the directory for a dump is to be new, or empty",
          options_.directory.string());
}

ValueDump::~ValueDump() = default;

void ValueDump::run_began(const ObservedRun& run) {
  if (run_numbers_.size() < options_.runs) run_numbers_.emplace(run.id, run_numbers_.size());
}

bool ValueDump::wants(const ObservedRun& run, const ObservedNode& node, std::uint32_t output) {
  if (!run_numbers_.contains(run.id)) return false;
  if (filter_) return std::regex_search(value_name(node, output), filter_->expression);
  return !(node.writes_state && output == 0);
}

void ValueDump::node_ran(const ObservedRun& run, const ObservedRecord& record) {
  for (const ObservedValue& value : record.values) write(run_numbers_.at(run.id), record, value);
}

void ValueDump::write(std::uint64_t run, const ObservedRecord& record, const ObservedValue& value) {
  const std::string name = value_name(record.what, value.output);
  const std::string folder = fmt::format("step-{:04}", run);
  DumpedValue dumped{.run = run,
                     .name = name,
                     .op = record.what.text,
                     .device = record.what.device,
                     .dtype = value.spec.dtype,
                     .shape = value.spec.shape,
                     .file = folder + "/" + file_name_for(record.node, name)};
  std::error_code error;
  fs::create_directories(options_.directory / folder, error);
  require(!error, ErrorCode::io, "{}: cannot make the directory: {}",
          (options_.directory / folder).string(), error.message());
  const fs::path path = options_.directory / dumped.file;
  const bool stays = npy::has(value.spec.dtype) && value.spec.dtype != DType::f16;
  if (stays) {
    npy::write(path, value.spec, value.bytes);
  } else {
    std::vector<float> floats(static_cast<std::size_t>(elements(value.spec.shape)));
    decode(value.spec.dtype, value.bytes, 0, floats);
    npy::write(path, {DType::f32, value.spec.shape}, std::as_bytes(std::span(floats)));
  }
  values_.push_back(std::move(dumped));
}

void ValueDump::finish() const {
  Json values = Json::array();
  for (const DumpedValue& value : values_) values.push_back(to_json(value));
  const Json index{{"heddle_dump", kVersion}, {"values", std::move(values)}};
  const std::string text = index.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  AtomicFile file(options_.directory / "index.json");
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

std::vector<DumpedValue> read_dump(const fs::path& directory) {
  const fs::path path = directory / "index.json";
  const MappedFile file(path);
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                              file.bytes().size());
  std::vector<DumpedValue> values;
  try {
    const Json index = Json::parse(text);
    const int version = index.at("heddle_dump").get<int>();
    require(version == kVersion, ErrorCode::io, "version {} of dumps; {} is known", version,
            kVersion);
    std::set<std::pair<std::uint64_t, std::string>> names;
    for (const Json& value : index.at("values")) {
      values.push_back(value_from(value));
      const bool is_new = names.emplace(values.back().run, values.back().name).second;
      require(is_new, ErrorCode::io, "'{}' is there twice", values.back().name);
    }
  } catch (const std::exception& error) {
    fail(ErrorCode::io, "{}: {}", path.string(), error.what());
  }
  return values;
}

std::string file_name_for(std::uint32_t node, const std::string& value_name) {
  std::string safe;
  for (const char c : value_name.substr(0, kMostName)) {
    const bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '.' || c == '-';
    safe += fine ? c : '_';
  }
  return fmt::format("{:04}-{}.npy", node, safe);
}

}  // namespace heddle
