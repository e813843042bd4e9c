// The inner loops of products with quantised groups, in one version for each level of instructions.
//
// Activations stay exact: codes become floats, and a group's scale joins once 16 chains of
// multiply-adds have summed their part of it. A sum's order depends on the format and on the depth
// only: 16 lanes, into which the terms of a step are summed first, are added up at the end. So a
// row's result is the same bits whatever rows are computed beside it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/cpu/group_codes.h"
#include "device/cpu/isa.h"

namespace heddle::cpu {

/// Terms of a row that are taken together, so that activations of some rows stay in the first level
/// of caches.
inline constexpr std::int64_t kGroupBlock = 1024;
inline constexpr std::int64_t kGroupRowsMost = 96;  // of a call
/// Codes that begin at a word's start whatever their bits.
inline constexpr std::int64_t kWordCodes = 32;

/// The rows of a quantised matrix, from some row on.
struct GroupRows {
  const std::uint32_t* codes;
  std::int64_t row_words;
  const std::byte *scales, *biases;  // no biases: null
  GroupScale scale;                  // how both are stored
  std::int64_t groups;               // of a row
  std::int64_t group_size;           // a power of two
};

/// out[r * out_stride + c] = the sum over k < depth of x[r][k] * w[c][k].
struct GroupDots {
  GroupRows w;
  std::int64_t depth, columns;
  const float* const* x;  // rows as `arrange` makes them
  std::int64_t rows;      // at most kGroupRowsMost
  float* out;
  std::int64_t out_stride;
};

struct GroupLoops {
  void (*dots[kGroupCodes])(const GroupDots&);
  /// Values of elements [first, first + count) of row `row`; `first` is a multiple of kWordCodes.
  /// `out` has room for a multiple of kWordCodes.
  void (*decode[kGroupCodes])(const GroupRows&, std::int64_t row, std::int64_t first,
                              std::int64_t count, float* out);
};

/// The loops for `level`, or for the best one below it that this build has.
const GroupLoops& group_loops(Isa level);

// ---- How dots wants its activations: in the order in which codes come out of their words, then
// the sum of each group.

/// Vectors of 16 codes that are unpacked together, and words that hold them. Codes of 2, 4 or 8
/// bits: a word to a lane, of which vector v has code v. Others: 32 codes in their order.
struct GroupStep {
  std::int64_t vectors, words;
  bool word_in_lane;
};
constexpr GroupStep group_step(GroupCode code) noexcept {
  switch (code) {
    case GroupCode::bits2:
      return {16, 16, true};
    case GroupCode::bits4:
    case GroupCode::e2m1:
      return {8, 16, true};
    case GroupCode::bits8:
    case GroupCode::e4m3:
      return {4, 16, true};
    case GroupCode::bits3:
      return {2, 3, false};
    case GroupCode::bits5:
      return {2, 5, false};
    case GroupCode::bits6:
      return {2, 6, false};
  }
  return {};
}

/// Floats of an arranged row of `depth` elements.
std::int64_t arranged_floats(GroupCode code, std::int64_t depth, std::int64_t group_size) noexcept;
/// Puts elements [first, first + n) of a row at their places. `first` is a multiple of 512 and `n`
/// one of 512 too, but at the row's end.
void arrange(GroupCode code, std::int64_t group_size, std::int64_t depth, const float* x,
             std::int64_t first, std::int64_t n, float* row) noexcept;

namespace portable {
extern const GroupLoops kGroupLoops;
}
namespace avx2 {
extern const GroupLoops kGroupLoops;
}
namespace avx512 {
extern const GroupLoops kGroupLoops;
}

}  // namespace heddle::cpu
