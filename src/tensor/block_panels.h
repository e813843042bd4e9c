// Rows of blocks in panels of 16 (LayoutKind::panel16 of a block type): the same bits in an order
// in which vector instructions find 16 rows side by side.
//
// A panel holds 16 rows block by block: first the 16 rows' first blocks, then their second ones.
// Sixteen blocks take the bytes of 16 blocks, and what lies in a block from `offset` on lies here
// from 16 * offset on, in one of these orders, with row r of 16:
//
//   halves  an f16:           2 bytes for each row
//   bytes   byte i of many:   at 16 * i, one for each row
//   codes   four bytes i..:   at 16 * i, four for each row, the middle two exchanged
//   bits    32 bits:          four bytes for each row, the even bits first and then the odd ones
//
// So in 16-bit elements 2r and 2r + 1 of `codes` and `bits` lie, at the same bit, two codes that
// are neighbours in row r.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "heddle/dtype.h"

namespace heddle {

inline constexpr int kPanelBlocks = 16;

struct BlockField {
  enum class Kind : std::uint8_t { halves, bytes, codes, bits };
  Kind kind;
  std::uint8_t offset, bytes;  // in a block of one row
};

/// The parts of a block; none where the type has no panels.
std::span<const BlockField> block_fields(DType dtype) noexcept;

/// Packs 16 rows of `blocks` blocks, of which the first `rows` lie `row_bytes` apart from `from`
/// on; the others become zeros.
void pack_block_panel(DType dtype, const std::byte* from, std::size_t row_bytes, std::int64_t rows,
                      std::int64_t blocks, std::byte* to);

/// Blocks [first, first + count) of row `row` of 16, as they were before packing.
void unpack_block_row(DType dtype, const std::byte* panel, std::int64_t row, std::int64_t first,
                      std::int64_t count, std::byte* to);

}  // namespace heddle
