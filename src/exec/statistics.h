// What there is to say of a tensor's values in a few numbers.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "heddle/tensor.h"

namespace heddle {

struct Statistics {
  static constexpr std::size_t kBins = 32;
  static constexpr std::int64_t kSampleRows = 8, kSampleColumns = 32;

  std::int64_t count = 0;  // elements, all kinds
  std::int64_t nan = 0, inf = 0;
  /// Of the finite ones; nothing if there are none.
  std::optional<double> min, max, mean, mean_magnitude;
  std::array<std::int64_t, kBins> histogram{};  // finite ones, by equal steps from min to max
  std::int64_t sample_columns = 0;
  std::vector<float> sample;  // rows of sample_columns values, evenly chosen
};

/// Of a contiguous tensor; nothing for complex numbers.
std::optional<Statistics> statistics_of(const TensorSpec& spec, std::span<const std::byte> bytes);

/// Whether `decode` can say the type's values.
bool has_real_values(DType dtype) noexcept;
/// Elements [first, first + out.size()) of a contiguous tensor, each rounded to float once; of a
/// block type, both ends lie between blocks or at a row's end.
void decode(DType dtype, std::span<const std::byte> bytes, std::int64_t first,
            std::span<float> out);

}  // namespace heddle
