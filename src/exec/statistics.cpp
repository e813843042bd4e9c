#include "exec/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "heddle/half.h"
#include "tensor/blocks.h"

namespace heddle {

namespace {

template <class T>
void decode_as(const std::byte* from, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, from + i * sizeof(T), sizeof(T));
    out[i] = static_cast<float>(value);
  }
}

// A whole number of blocks of every type.
constexpr std::int64_t kChunk = 4096;

/// Calls visit(values) for the tensor's elements in order, chunk by chunk.
template <class Visit>
void in_chunks(const TensorSpec& spec, std::span<const std::byte> bytes, const Visit& visit) {
  std::array<float, kChunk> chunk;
  const std::int64_t count = elements(spec.shape);
  for (std::int64_t first = 0; first < count; first += kChunk) {
    const std::span<float> values(chunk.data(),
                                  static_cast<std::size_t>(std::min(kChunk, count - first)));
    decode(spec.dtype, bytes, first, values);
    visit(std::span<const float>(values));
  }
}

void find_moments(const TensorSpec& spec, std::span<const std::byte> bytes, Statistics& out) {
  double least = INFINITY, most = -INFINITY, sum = 0, magnitude = 0;
  in_chunks(spec, bytes, [&](std::span<const float> values) {
    for (const float value : values) {
      if (std::isnan(value)) {
        ++out.nan;
      } else if (std::isinf(value)) {
        ++out.inf;
      } else {
        least = std::min<double>(least, value);
        most = std::max<double>(most, value);
        sum += value;
        magnitude += std::abs(value);
      }
    }
  });
  const std::int64_t finite = out.count - out.nan - out.inf;
  if (finite == 0) return;
  out.min = least;
  out.max = most;
  out.mean = sum / static_cast<double>(finite);
  out.mean_magnitude = magnitude / static_cast<double>(finite);
}

void count_bins(const TensorSpec& spec, std::span<const std::byte> bytes, Statistics& out) {
  if (!out.min) return;
  const double width = (*out.max - *out.min) / static_cast<double>(Statistics::kBins);
  in_chunks(spec, bytes, [&](std::span<const float> values) {
    for (const float value : values) {
      if (!std::isfinite(value)) continue;
      const double bin = width > 0 ? (value - *out.min) / width : 0;
      ++out.histogram[std::min(static_cast<std::size_t>(bin), Statistics::kBins - 1)];
    }
  });
}

/// Which of `all` to take as the `i`th of `taken`.
std::int64_t chosen(std::int64_t i, std::int64_t taken, std::int64_t all) {
  return taken <= 1 ? 0 : i * (all - 1) / (taken - 1);
}

void take_sample(const TensorSpec& spec, std::span<const std::byte> bytes, Statistics& out) {
  if (out.count == 0) return;
  const std::int64_t columns = spec.shape.empty() ? 1 : spec.shape.back();
  const std::int64_t rows = out.count / columns;
  const std::int64_t taken_rows = std::min(rows, Statistics::kSampleRows);
  out.sample_columns = std::min(columns, Statistics::kSampleColumns);
  const std::int64_t block = info(spec.dtype).block_elements;
  std::vector<float> values(static_cast<std::size_t>(block));
  for (std::int64_t r = 0; r < taken_rows; ++r) {
    for (std::int64_t c = 0; c < out.sample_columns; ++c) {
      const std::int64_t at =
          chosen(r, taken_rows, rows) * columns + chosen(c, out.sample_columns, columns);
      decode(spec.dtype, bytes, at / block * block, values);
      out.sample.push_back(values[static_cast<std::size_t>(at % block)]);
    }
  }
}

}  // namespace

bool has_real_values(DType dtype) noexcept {
  return info(dtype).kind != DTypeKind::complex;
}

void decode(DType dtype, std::span<const std::byte> bytes, std::int64_t first,
            std::span<float> out) {
  const DTypeInfo& type = info(dtype);
  const std::byte* from = bytes.data() + first / type.block_elements * type.block_bytes;
  switch (dtype) {
    case DType::bool_:
    case DType::u8:
      return decode_as<std::uint8_t>(from, out);
    case DType::u16:
      return decode_as<std::uint16_t>(from, out);
    case DType::u32:
      return decode_as<std::uint32_t>(from, out);
    case DType::u64:
      return decode_as<std::uint64_t>(from, out);
    case DType::i8:
      return decode_as<std::int8_t>(from, out);
    case DType::i16:
      return decode_as<std::int16_t>(from, out);
    case DType::i32:
      return decode_as<std::int32_t>(from, out);
    case DType::i64:
      return decode_as<std::int64_t>(from, out);
    case DType::f64:
      return decode_as<double>(from, out);
    default:
      return dequantize_row(dtype, from, out.data(), static_cast<std::int64_t>(out.size()));
  }
}

std::optional<Statistics> statistics_of(const TensorSpec& spec, std::span<const std::byte> bytes) {
  if (!has_real_values(spec.dtype)) return std::nullopt;
  Statistics out;
  out.count = elements(spec.shape);
  find_moments(spec, bytes, out);
  count_bins(spec, bytes, out);
  take_sample(spec, bytes, out);
  return out;
}

}  // namespace heddle
