// What the machine itself can do, measured: the bounds that kernels are held against.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/team.h"

namespace heddle::bench {

/// Seconds for the team to read these bytes once, and to copy them.
double read_seconds(Team& team, std::span<const std::byte> bytes);
double copy_seconds(Team& team, std::span<const std::byte> from, std::byte* to);

/// Seconds for the team to copy rows of `bytes` bytes from `offsets` on in `from` to one behind
/// another in `to`, or with `back` the other way round: the least that a gather or a scatter takes.
double row_seconds(Team& team, const std::byte* from, std::span<const std::int64_t> offsets,
                   std::size_t bytes, std::byte* to, bool back);
/// Seconds for std::sort to sort a copy of `values`, on one thread.
double sort_seconds(std::span<const float> values);

/// What multiplies: registers alone, so that nothing but the arithmetic counts. An operation is a
/// multiplication or an addition.
enum class Arithmetic : std::uint8_t {
  f32,        // fused multiply-add
  bf16,       // sums of two products
  int8,       // sums of four products of bytes (VNNI), or what this processor has instead
  bf16_tile,  // AMX
  int8_tile
};
inline constexpr Arithmetic kArithmetic[] = {Arithmetic::f32, Arithmetic::bf16, Arithmetic::int8,
                                             Arithmetic::bf16_tile, Arithmetic::int8_tile};
/// Operations a second; nothing where the processor, or the system, has no such instructions.
std::optional<double> arithmetic_rate(Team& team, Arithmetic arithmetic);
const char* name_of(Arithmetic arithmetic);

}  // namespace heddle::bench
