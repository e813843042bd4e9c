// A model file with its weights in other types.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/check.h"
#include "heddle/gguf.h"
#include "heddle/model_file.h"
#include "io/mapped_file.h"
#include "llm/file_types.h"
#include "llm/write_tensors.h"
#include "tensor/blocks.h"
#include "tensor/quantize.h"

namespace heddle::llm {

namespace {

constexpr std::array<std::string_view, 3> kSplitKeys{"split.no", "split.count",
                                                     "split.tensors.count"};

bool is_same_file(const std::filesystem::path& a, const std::filesystem::path& b) {
  std::error_code missing;
  return std::filesystem::equivalent(a, b, missing);
}

/// All files that the model is read from: `first`, and the parts that follow it.
std::vector<std::filesystem::path> part_paths(const gguf::File& file,
                                              const std::filesystem::path& first) {
  std::vector<std::filesystem::path> paths{first};
  const std::int64_t count = file.metadata().find_int("split.count").value_or(1);
  const std::string name = first.filename().string();
  const std::size_t number = name.rfind("-00001-of-");
  for (std::int64_t part = 2; part <= count && number != std::string::npos; ++part) {
    std::string other = name;
    paths.push_back(first.parent_path() / other.replace(number + 1, 5, fmt::format("{:05}", part)));
  }
  return paths;
}

gguf::Metadata metadata_for(const gguf::File& file, const FileType& type) {
  gguf::Metadata metadata(file.name());
  for (const auto& [key, value] : file.metadata().entries()) {
    if (std::ranges::find(kSplitKeys, key) == kSplitKeys.end()) metadata.set(key, value);
  }
  metadata.set("general.file_type", type.id);
  metadata.set("general.quantization_version", kQuantizationVersion);
  return metadata;
}

/// A number of the model's, where the file has exactly one: some have one for each layer.
std::optional<std::int64_t> find_number(const gguf::Metadata& metadata, const std::string& key) {
  const gguf::Value* value = metadata.find(key);
  if (!value || std::holds_alternative<gguf::Array>(*value)) return std::nullopt;
  return metadata.find_int(key);
}

ModelFacts facts_of(const gguf::Metadata& metadata) {
  const std::string architecture(metadata.find_string("general.architecture").value_or(""));
  const auto heads = find_number(metadata, architecture + ".attention.head_count");
  const auto kv_heads = find_number(metadata, architecture + ".attention.head_count_kv");
  if (!heads || !kv_heads || *kv_heads <= 0) return {};
  return {.heads_per_kv_head = *heads / *kv_heads};
}

/// The least magnitude that `dtype` would make infinite: beyond its largest number and half a step.
float first_infinite(DType dtype) {
  if (dtype == DType::f16) return 65520.0f;
  if (dtype == DType::bf16) return std::bit_cast<float>(0x7f7f8000u);
  return std::numeric_limits<float>::infinity();
}

/// Turns pieces of the source's tensors into pieces of the new file's.
class Converter {
 public:
  Converter(const gguf::File& file, const std::vector<gguf::TensorEntry>& tensors)
      : file_(file), tensors_(tensors) {}

  void convert(const Piece& piece, std::byte* bytes) const {
    const gguf::Tensor& source = file_.tensors()[piece.tensor];
    const DType dtype = tensors_[piece.tensor].dtype;
    const std::int64_t count = piece.end - piece.begin;
    const std::span<const std::byte> stored =
        source.data.subspan(row_bytes(source.dtype, piece.begin), row_bytes(source.dtype, count));
    if (source.dtype == dtype) {
      std::ranges::copy(stored, bytes);
    } else {
      std::vector<float> values(static_cast<std::size_t>(count));
      dequantize_row(source.dtype, stored.data(), values.data(), count);
      check(piece, values);
      quantize_row(dtype, values.data(), bytes, count);
    }
    release_mapped_pages(stored);
  }

 private:
  void check(const Piece& piece, std::span<const float> values) const {
    const gguf::TensorEntry& tensor = tensors_[piece.tensor];
    const float limit = first_infinite(tensor.dtype);
    const auto bad =
        std::ranges::find_if(values, [limit](float value) { return !(std::fabs(value) < limit); });
    if (bad == values.end()) return;
    const std::int64_t at = piece.begin + (bad - values.begin());
    const std::int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
    fail(ErrorCode::invalid_argument, "{}: tensor '{}': row {}, column {} is {}, which {} {}",
         file_.name(), tensor.name, at / row, at % row, *bad,
         std::isfinite(*bad) ? "is too large for" : "is not finite, and cannot become",
         to_string(tensor.dtype));
  }

  const gguf::File& file_;
  const std::vector<gguf::TensorEntry>& tensors_;
};

void compare_with_source(const gguf::File& file, const std::vector<gguf::TensorEntry>& tensors,
                         ModelFileSummary& summary) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const gguf::Tensor& source = file.tensors()[i];
    summary.bytes_before += source.data.size();
    summary.requantized += is_block(source.dtype) && tensors[i].dtype != source.dtype &&
                           tensors[i].dtype != DType::f32;
  }
}

}  // namespace

ModelFileSummary quantize_model(const std::filesystem::path& from, const std::filesystem::path& to,
                                std::string_view file_type, const ModelFileOptions& options) {
  const FileType& type = find_file_type(file_type);
  const gguf::File file = gguf::File::open(from);
  for (const std::filesystem::path& part : part_paths(file, from)) {
    require(!is_same_file(part, to), ErrorCode::invalid_argument,
            "{}: is the model that is read; the quantised one needs a name of its own",
            to.string());
  }
  std::vector<gguf::TensorEntry> tensors;
  for (const gguf::Tensor& tensor : file.tensors()) {
    tensors.push_back({tensor.name, tensor.dtype, tensor.shape});
  }
  ModelFileSummary summary;
  summary.fallbacks = choose_types(type, facts_of(file.metadata()), options, tensors);
  const Converter converter(file, tensors);
  write_model(
      to, metadata_for(file, type), tensors,
      [&](const Piece& piece, std::byte* bytes) { converter.convert(piece, bytes); }, options);
  compare_with_source(file, tensors, summary);
  count_tensors(tensors, summary);
  return summary;
}

}  // namespace heddle::llm
