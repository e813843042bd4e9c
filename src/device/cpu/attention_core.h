// What attention over dense operands and over states have in common: some rows of queries that
// share one head of keys and values, computed block by block with an online softmax.
//
// Positions are taken in blocks of kPositionBlock and splits of kSplit, both counted from position
// 0; each split's sums start afresh and join the total in order. A row's blocks, and the order
// within them, so depend on what the row sees and on nothing else: not on the rows beside it, nor
// on whether splits were computed by one thread or many.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/cpu/products.h"

namespace heddle::cpu {

inline constexpr std::int64_t kPositionBlock = kGroupColumns;
inline constexpr std::int64_t kSplit = 512;
inline constexpr std::int64_t kMostHead = 1024;     // features of a head
inline constexpr std::int64_t kMostQueries = 48;    // rows computed together
inline constexpr std::int64_t kQueryFloats = 6144;  // ... and their features, padded

/// Decodes one stored row of a head into floats, padded with zeros to a multiple of 16.
using DecodeRow = void (*)(const std::byte* from, std::int64_t count, float* to);

/// One head's keys or values. Position p is in row p, or, with a table, in row
/// table[p / block_size] * block_size + p % block_size.
struct HeadSource {
  const std::byte* data;
  std::int64_t row_bytes;   // from a row to the next
  std::int64_t head_bytes;  // of a row that are this head's
  std::int64_t features;
  DecodeRow decode;
  const std::int32_t* table = nullptr;
  std::int64_t block_size = 1;

  const std::byte* row(std::int64_t position) const noexcept {
    if (!table) return data + position * row_bytes;
    const std::int64_t block = table[position / block_size];
    return data + (block * block_size + position % block_size) * row_bytes;
  }
};

/// Changes the scores of positions [begin, end); scores[0] is that of `begin`, `mask` the mask's
/// element for position 0 and `stride` the bytes from one position's to the next.
using ApplyMask = void (*)(float* scores, const std::byte* mask, std::int64_t stride,
                           std::int64_t begin, std::int64_t end);

/// Positions [begin, end) that a row sees.
struct Visible {
  std::int64_t begin = 0, end = 0;
};

/// Softmax sums of some rows: sum of e^(score - maximum), and of that times values.
struct Sums {
  float maximum[kMostQueries];
  float sum[kMostQueries];
  alignas(64) float output[kQueryFloats];  // [rows][features of values, padded]
};

/// Working memory for one thread. Large; lives on its stack.
struct AttentionScratch {
  alignas(64) float keys[kPositionBlock * kMostHead];    // panels
  alignas(64) float values[kPositionBlock * kMostHead];  // rows; keys pass through it
  alignas(64) float queries[kQueryFloats];               // scaled, [rows][features, padded]
  alignas(64) float scores[kMostQueries * kPositionBlock];
  float rescale[kMostQueries];
  Sums split, total;
};

struct AttentionRows {
  const Products& loops;
  HeadSource keys, values;
  std::int64_t rows;
  Visible visible[kMostQueries];
  ApplyMask apply_mask = nullptr;
  const std::byte* mask[kMostQueries] = {};
  std::int64_t mask_stride = 0;

  /// The positions that any row sees; nothing outside is read.
  Visible all() const noexcept;
};

/// How many rows of such heads fit in a scratch.
std::int64_t most_rows(std::int64_t features, std::int64_t value_features) noexcept;

/// Row `row`'s queries: `count` stored elements times `scale`.
void load_query(AttentionScratch& scratch, std::int64_t row, DecodeRow decode,
                const std::byte* from, std::int64_t count, float scale);

/// scratch.split = the sums over positions [begin, begin + kSplit); begin is a multiple of kSplit.
void sum_split(const AttentionRows& task, AttentionScratch& scratch, std::int64_t begin);

/// scratch.total = the sums over all positions.
void sum_all(const AttentionRows& task, AttentionScratch& scratch);

/// One row's sums, wherever they are kept.
struct RowSums {
  float* maximum;
  float* sum;
  float* output;
};
void clear(const RowSums& row, std::int64_t padded_features) noexcept;
/// total += part, for a part that lies after the total's.
void join(const Products& loops, const RowSums& total, const RowSums& part,
          std::int64_t padded_features) noexcept;
/// The row's result in its `output`: zeros if it saw nothing.
void finish(const RowSums& row, std::int64_t features) noexcept;

inline RowSums row_of(Sums& sums, std::int64_t row, std::int64_t padded_features) noexcept {
  return {sums.maximum + row, sums.sum + row, sums.output + row * padded_features};
}

}  // namespace heddle::cpu
