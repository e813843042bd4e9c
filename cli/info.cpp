// heddle info: what a model file holds.
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/check.h"
#include "cli/commands.h"
#include "cli/info_json.h"
#include "cli/model.h"
#include "cli/output.h"

namespace heddle::cli {

namespace {

constexpr std::size_t kShownElements = 6;
constexpr std::size_t kShownCharacters = 72;

/// At most kShownCharacters bytes, cut between characters.
std::string_view beginning(std::string_view text) {
  if (text.size() <= kShownCharacters) return text;
  std::size_t end = kShownCharacters;
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
  while (end > 0 && continues(text[end])) --end;
  return text.substr(0, end);
}

/// In quotes, on one line, cut if it is long.
std::string quoted_text(std::string_view text) {
  const std::string_view start = beginning(text);
  std::string shown;
  for (const char c : start) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n')
      shown += "\\n";
    else if (c == '"' || c == '\\')
      (shown += '\\') += c;
    else if (byte < 0x20 || byte == 0x7f)  // a terminal would obey them
      shown += fmt::format("\\x{:02x}", byte);
    else
      shown += c;
  }
  return fmt::format("\"{}\"{}", shown, start.size() < text.size() ? "…" : "");
}

template <class T>
std::string element_text(const T& value) {
  if constexpr (std::is_same_v<T, std::string>)
    return quoted_text(value);
  else if constexpr (std::is_same_v<T, std::uint8_t> || std::is_same_v<T, std::int8_t>)
    return std::to_string(value);
  else
    return fmt::format("{}", value);
}

template <class T>
std::string array_text(const std::vector<T>& values) {
  std::vector<std::string> shown;
  const std::size_t count = std::min(values.size(), kShownElements);
  for (std::size_t i = 0; i < count; ++i) shown.push_back(element_text(static_cast<T>(values[i])));
  if (count < values.size()) shown.push_back("…");
  return fmt::format("[{}] ({} elements)", fmt::join(shown, ", "), values.size());
}

std::string value_text(const gguf::Value& value) {
  return std::visit(
      [](const auto& v) {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, gguf::Array>)
          return std::visit([](const auto& elements) { return array_text(elements); }, v);
        else
          return element_text(v);
      },
      value);
}

void print_fact(std::string_view what, const std::string& value) {
  print(fmt::format("{:<14} {}\n", what, value));
}

/// "f16 1.6 MiB, f32 8.5 KiB", most bytes first.
std::string types_text(const gguf::File& file) {
  std::map<DType, std::size_t> bytes;
  for (const gguf::Tensor& tensor : file.tensors()) bytes[tensor.dtype] += tensor.data.size();
  std::vector<std::pair<std::size_t, DType>> order;
  for (const auto& [dtype, size] : bytes) order.emplace_back(size, dtype);
  std::sort(order.rbegin(), order.rend());
  std::vector<std::string> parts;
  for (const auto& [size, dtype] : order) {
    parts.push_back(fmt::format("{} {}", to_string(dtype), bytes_text(size)));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

void print_config(const llm::ModelConfig& c) {
  print_fact("architecture", c.architecture);
  print_fact("context", fmt::format("{} positions", c.n_ctx_train));
  print_fact("layers", fmt::format("{}, {} wide, feed-forward {}", c.n_layer, c.n_embd, c.n_ff));
  print_fact("heads", fmt::format("{} of {} features, {} for keys and values{}", c.n_head,
                                  c.n_embd_head, c.n_head_kv, c.has_qk_norm ? ", normalised" : ""));
  print_fact("rope", fmt::format("{}, {} dimensions, base {}, scale {}{}", to_string(c.rope.style),
                                 c.rope.dims, c.rope.base, c.rope.scale,
                                 c.rope.has_factors ? ", with frequency factors" : ""));
  if (c.window > 0) print_fact("window", fmt::format("{} positions", c.window));
  print_fact("vocabulary", fmt::format("{} tokens{}", c.n_vocab,
                                       c.tied_output ? ", output tied to the embedding" : ""));
}

void print_summary(const gguf::File& file) {
  std::int64_t parameters = 0;
  for (const gguf::Tensor& tensor : file.tensors()) parameters += elements(tensor.shape);
  print_fact("file", fmt::format("{} (GGUF {}, {})", file.name(), file.version(),
                                 bytes_text(file.file_bytes())));
  print_fact("name", std::string(file.metadata().find_string("general.name").value_or("-")));
  print_fact("parameters", count_text(parameters));
  print_fact("weights", types_text(file));
  try {
    print_config(llm::read_config(file));
  } catch (const Error& error) {
    print_fact("model", fmt::format("cannot be run: {}", error.what()));
  }
}

}  // namespace

int info(const InfoArguments& arguments) {
  const gguf::File file = open_file(arguments.path);
  if (arguments.json) {
    print(info_json(file));
    return kOk;
  }
  print_summary(file);
  print(fmt::format("\nmetadata ({})\n", file.metadata().entries().size()));
  for (const auto& [key, value] : file.metadata().entries()) {
    print(fmt::format("  {} = {}\n", key, value_text(value)));
  }
  std::size_t width = 0;
  for (const gguf::Tensor& tensor : file.tensors()) width = std::max(width, tensor.name.size());
  print(fmt::format("\ntensors ({})\n", file.tensors().size()));
  for (const gguf::Tensor& tensor : file.tensors()) {
    print(fmt::format("  {:<{}}  {:<6}  {:>9}  {}\n", tensor.name, width, to_string(tensor.dtype),
                      bytes_text(tensor.data.size()), to_string(tensor.shape)));
  }
  return kOk;
}

}  // namespace heddle::cli
