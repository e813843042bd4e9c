#include "heddle/nn_tree.h"

#include <fmt/ranges.h>

#include <map>
#include <set>

#include "base/check.h"
#include "heddle/ops.h"
#include "tensor/format.h"

namespace heddle::nn {

namespace detail {

std::string joined(const std::string& name, const std::string& part) {
  if (name.empty()) return part;
  return part.empty() ? name : name + "." + part;
}

}  // namespace detail

namespace {

constexpr std::size_t kMostShown = 8;  // names of a kind in a message

std::string listed(const std::vector<std::string>& names) {
  const std::size_t shown = std::min(names.size(), kMostShown);
  std::string text = fmt::format(
      "{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (shown < names.size()) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

/// What keeps `arrays` from being the parameters, in one line; empty if nothing does.
std::string misfit(const std::vector<Parameter>& parameters, const ArrayMap& arrays, bool strict) {
  std::vector<std::string> wrong, missing, unexpected;
  std::set<std::string_view> known;
  for (const Parameter& parameter : parameters) {
    known.insert(parameter.name);
    const auto found = arrays.find(parameter.name);
    if (found == arrays.end()) {
      missing.push_back(parameter.name);
    } else if (found->second.spec() != parameter.array->spec()) {
      wrong.push_back(fmt::format("{} is {} and must be {}", parameter.name, found->second.spec(),
                                  parameter.array->spec()));
    }
  }
  for (const auto& [name, array] : arrays) {
    if (!known.contains(name)) unexpected.push_back(name);
  }
  std::sort(unexpected.begin(), unexpected.end());
  std::vector<std::string> problems;
  if (!wrong.empty()) problems.push_back(listed(wrong));
  if (strict && !missing.empty()) problems.push_back("missing: " + listed(missing));
  if (strict && !unexpected.empty()) problems.push_back("unexpected: " + listed(unexpected));
  return fmt::format("{}", fmt::join(problems, "; "));
}

enum class FileKind { safetensors, gguf };

FileKind kind_of(const std::filesystem::path& file, const char* function) {
  const std::string extension = file.extension().string();
  if (extension == ".safetensors") return FileKind::safetensors;
  require(extension == ".gguf", ErrorCode::invalid_argument,
          "{}: {}: its name must end in .safetensors or .gguf", function, file.string());
  return FileKind::gguf;
}

}  // namespace

namespace detail {

void set_dtype(const std::vector<Parameter>& parameters, DType dtype) {
  require(is_floating(dtype), ErrorCode::invalid_argument, "set_dtype: {} is no floating dtype",
          dtype);
  for (const Parameter& parameter : parameters) {
    if (is_floating(parameter.array->dtype())) *parameter.array = astype(*parameter.array, dtype);
  }
}

void load_parameters(const std::vector<Parameter>& parameters, const ArrayMap& arrays,
                     bool strict) {
  const std::string problem = misfit(parameters, arrays, strict);
  require(problem.empty(), ErrorCode::invalid_argument, "load_parameters: {}", problem);
  for (const Parameter& parameter : parameters) {
    const auto found = arrays.find(parameter.name);
    if (found != arrays.end()) *parameter.array = found->second;
  }
}

void load_parameters(const std::vector<Parameter>& parameters, const std::filesystem::path& file,
                     bool strict) {
  const ArrayMap arrays = kind_of(file, "load_parameters") == FileKind::gguf
                              ? load_gguf(file).first
                              : load_safetensors(file).first;
  const std::string problem = misfit(parameters, arrays, strict);
  require(problem.empty(), ErrorCode::invalid_argument, "load_parameters: {}: {}", file.string(),
          problem);
  load_parameters(parameters, arrays, strict);
}

}  // namespace detail

void save_arrays(const std::filesystem::path& file, const NamedArrays& arrays,
                 const std::unordered_map<std::string, std::string>& metadata) {
  const FileKind kind = kind_of(file, "save_arrays");
  ArrayMap by_name;
  for (const auto& [name, array] : arrays) {
    require(by_name.emplace(name, array).second, ErrorCode::invalid_argument,
            "save_arrays: {}: two arrays are called \"{}\"", file.string(), name);
  }
  if (kind == FileKind::safetensors) return save_safetensors(file, by_name, metadata);
  std::unordered_map<std::string, GGUFMetaData> values(metadata.begin(), metadata.end());
  save_gguf(file, by_name, values);
}

}  // namespace heddle::nn
