#include "tensor/block_panels.h"

#include <algorithm>
#include <cstring>

#include "tensor/blocks.h"

namespace heddle {

namespace {

using Kind = BlockField::Kind;

constexpr BlockField half_at(std::size_t offset) {
  return {Kind::halves, static_cast<std::uint8_t>(offset), 2};
}
constexpr BlockField field(Kind kind, std::size_t offset, std::size_t bytes) {
  return {kind, static_cast<std::uint8_t>(offset), static_cast<std::uint8_t>(bytes)};
}
#define HEDDLE_HALF(Block, member) half_at(offsetof(Block, member))
#define HEDDLE_FIELD(kind, Block, member) \
  field(Kind::kind, offsetof(Block, member), sizeof(Block::member))

constexpr BlockField kQ40[] = {HEDDLE_HALF(BlockQ4_0, d), HEDDLE_FIELD(codes, BlockQ4_0, qs)};
constexpr BlockField kQ41[] = {HEDDLE_HALF(BlockQ4_1, d), HEDDLE_HALF(BlockQ4_1, m),
                               HEDDLE_FIELD(codes, BlockQ4_1, qs)};
constexpr BlockField kQ50[] = {HEDDLE_HALF(BlockQ5_0, d), HEDDLE_FIELD(bits, BlockQ5_0, qh),
                               HEDDLE_FIELD(codes, BlockQ5_0, qs)};
constexpr BlockField kQ51[] = {HEDDLE_HALF(BlockQ5_1, d), HEDDLE_HALF(BlockQ5_1, m),
                               HEDDLE_FIELD(bits, BlockQ5_1, qh),
                               HEDDLE_FIELD(codes, BlockQ5_1, qs)};
constexpr BlockField kQ80[] = {HEDDLE_HALF(BlockQ8_0, d), HEDDLE_FIELD(codes, BlockQ8_0, qs)};
constexpr BlockField kQ2K[] = {HEDDLE_FIELD(bytes, BlockQ2K, scales),
                               HEDDLE_FIELD(codes, BlockQ2K, qs), HEDDLE_HALF(BlockQ2K, d),
                               HEDDLE_HALF(BlockQ2K, dmin)};
constexpr BlockField kQ3K[] = {HEDDLE_FIELD(codes, BlockQ3K, hmask),
                               HEDDLE_FIELD(codes, BlockQ3K, qs),
                               HEDDLE_FIELD(bytes, BlockQ3K, scales), HEDDLE_HALF(BlockQ3K, d)};
constexpr BlockField kQ4K[] = {HEDDLE_HALF(BlockQ4K, d), HEDDLE_HALF(BlockQ4K, dmin),
                               HEDDLE_FIELD(bytes, BlockQ4K, scales),
                               HEDDLE_FIELD(codes, BlockQ4K, qs)};
constexpr BlockField kQ5K[] = {
    HEDDLE_HALF(BlockQ5K, d), HEDDLE_HALF(BlockQ5K, dmin), HEDDLE_FIELD(bytes, BlockQ5K, scales),
    HEDDLE_FIELD(codes, BlockQ5K, qh), HEDDLE_FIELD(codes, BlockQ5K, qs)};
constexpr BlockField kQ6K[] = {HEDDLE_FIELD(codes, BlockQ6K, ql), HEDDLE_FIELD(codes, BlockQ6K, qh),
                               HEDDLE_FIELD(bytes, BlockQ6K, scales), HEDDLE_HALF(BlockQ6K, d)};
constexpr BlockField kIq4Nl[] = {HEDDLE_HALF(BlockIq4Nl, d), HEDDLE_FIELD(codes, BlockIq4Nl, qs)};
constexpr BlockField kIq4Xs[] = {
    HEDDLE_HALF(BlockIq4Xs, d), HEDDLE_FIELD(bytes, BlockIq4Xs, scales_h),
    HEDDLE_FIELD(bytes, BlockIq4Xs, scales_l), HEDDLE_FIELD(codes, BlockIq4Xs, qs)};

#undef HEDDLE_HALF
#undef HEDDLE_FIELD

/// Every other bit, from bit 0 on, in the low half.
std::uint32_t even_bits(std::uint32_t x) {
  x &= 0x55555555;
  x = (x | x >> 1) & 0x33333333;
  x = (x | x >> 2) & 0x0f0f0f0f;
  x = (x | x >> 4) & 0x00ff00ff;
  return (x | x >> 8) & 0x0000ffff;
}
/// The low half's bits, each two places from the next.
std::uint32_t spread_bits(std::uint32_t x) {
  x &= 0x0000ffff;
  x = (x | x << 8) & 0x00ff00ff;
  x = (x | x << 4) & 0x0f0f0f0f;
  x = (x | x << 2) & 0x33333333;
  return (x | x << 1) & 0x55555555;
}
std::uint32_t exchange_middle(std::uint32_t x) {
  return (x & 0xff0000ff) | (x & 0x0000ff00) << 8 | (x & 0x00ff0000) >> 8;
}

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <class T>
void store(T value, std::byte* to) {
  std::memcpy(to, &value, sizeof value);
}

/// Calls f(item, offset in a block, offset from 16 * that for row r) for each item of the field.
template <class T, class F>
void for_items(const BlockField& field, std::int64_t row, const F& f) {
  for (std::int64_t i = 0; i < field.bytes; i += sizeof(T)) {
    const std::int64_t at = field.offset + i;
    f(at, at * kPanelBlocks + row * static_cast<std::int64_t>(sizeof(T)));
  }
}

void pack_block(std::span<const BlockField> fields, const std::byte* from, std::int64_t row,
                std::byte* to) {
  for (const BlockField& field : fields) {
    switch (field.kind) {
      case Kind::halves:
        for_items<std::uint16_t>(field, row, [&](std::int64_t at, std::int64_t there) {
          store(load<std::uint16_t>(from + at), to + there);
        });
        break;
      case Kind::bytes:
        for_items<std::byte>(field, row,
                             [&](std::int64_t at, std::int64_t there) { to[there] = from[at]; });
        break;
      case Kind::codes:
        for_items<std::uint32_t>(field, row, [&](std::int64_t at, std::int64_t there) {
          store(exchange_middle(load<std::uint32_t>(from + at)), to + there);
        });
        break;
      case Kind::bits:
        for_items<std::uint32_t>(field, row, [&](std::int64_t at, std::int64_t there) {
          const auto all = load<std::uint32_t>(from + at);
          store(even_bits(all) | even_bits(all >> 1) << 16, to + there);
        });
        break;
    }
  }
}

void unpack_block(std::span<const BlockField> fields, const std::byte* from, std::int64_t row,
                  std::byte* to) {
  for (const BlockField& field : fields) {
    switch (field.kind) {
      case Kind::halves:
        for_items<std::uint16_t>(field, row, [&](std::int64_t at, std::int64_t there) {
          store(load<std::uint16_t>(from + there), to + at);
        });
        break;
      case Kind::bytes:
        for_items<std::byte>(field, row,
                             [&](std::int64_t at, std::int64_t there) { to[at] = from[there]; });
        break;
      case Kind::codes:
        for_items<std::uint32_t>(field, row, [&](std::int64_t at, std::int64_t there) {
          store(exchange_middle(load<std::uint32_t>(from + there)), to + at);
        });
        break;
      case Kind::bits:
        for_items<std::uint32_t>(field, row, [&](std::int64_t at, std::int64_t there) {
          const auto all = load<std::uint32_t>(from + there);
          store(spread_bits(all) | spread_bits(all >> 16) << 1, to + at);
        });
        break;
    }
  }
}

}  // namespace

std::span<const BlockField> block_fields(DType dtype) noexcept {
  switch (dtype) {
    case DType::q4_0:
      return kQ40;
    case DType::q4_1:
      return kQ41;
    case DType::q5_0:
      return kQ50;
    case DType::q5_1:
      return kQ51;
    case DType::q8_0:
      return kQ80;
    case DType::q2_K:
      return kQ2K;
    case DType::q3_K:
      return kQ3K;
    case DType::q4_K:
      return kQ4K;
    case DType::q5_K:
      return kQ5K;
    case DType::q6_K:
      return kQ6K;
    case DType::iq4_nl:
      return kIq4Nl;
    case DType::iq4_xs:
      return kIq4Xs;
    default:
      return {};
  }
}

void pack_block_panel(DType dtype, const std::byte* from, std::size_t row_bytes, std::int64_t rows,
                      std::int64_t blocks, std::byte* to) {
  const std::span<const BlockField> fields = block_fields(dtype);
  const auto block = static_cast<std::size_t>(info(dtype).block_bytes);
  const std::size_t side_by_side = block * kPanelBlocks;
  if (rows < kPanelBlocks)
    std::fill_n(to, static_cast<std::size_t>(blocks) * side_by_side, std::byte{});
  for (std::int64_t b = 0; b < blocks; ++b, from += block, to += side_by_side) {
    for (std::int64_t r = 0; r < rows; ++r) {
      pack_block(fields, from + static_cast<std::size_t>(r) * row_bytes, r, to);
    }
  }
}

void unpack_block_row(DType dtype, const std::byte* panel, std::int64_t row, std::int64_t first,
                      std::int64_t count, std::byte* to) {
  const std::span<const BlockField> fields = block_fields(dtype);
  const auto block = static_cast<std::size_t>(info(dtype).block_bytes);
  const std::size_t side_by_side = block * kPanelBlocks;
  panel += static_cast<std::size_t>(first) * side_by_side;
  for (std::int64_t b = 0; b < count; ++b, panel += side_by_side, to += block) {
    unpack_block(fields, panel, row, to);
  }
}

}  // namespace heddle
