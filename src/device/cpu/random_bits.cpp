// Random bits: threefry's stream under each key, blocks of counters side by side.
#include <algorithm>
#include <cstring>

#include "device/cpu/isa.h"
#include "device/cpu/kernel.h"
#include "device/cpu/lines.h"
#include "device/cpu/simd_targets.h"
#include "op/threefry.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/random_bits.cpp"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"

#ifndef HEDDLE_CPU_RANDOM_ONCE
#define HEDDLE_CPU_RANDOM_ONCE
namespace heddle::cpu {
/// The words of `n` counters (first + i, first + i + offset), each side by side.
struct ThreefryBlock {
  ThreefryPair key;
  std::uint32_t first, offset;
  std::int64_t n;
  std::uint32_t *low, *high;
};
using ThreefryFunction = void (*)(const ThreefryBlock&);
}  // namespace heddle::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using WordTag = hn::ScalableTag<std::uint32_t>;
using WordVec = hn::Vec<WordTag>;

template <int kTurn>
HWY_INLINE HWY_ATTR void mix(WordVec& x, WordVec& y) {
  x = hn::Add(x, y);
  y = hn::Xor(hn::RotateRight<32 - kTurn>(y), x);
}

template <int kGroup>
HWY_INLINE HWY_ATTR void mix_group(WordVec& x, WordVec& y, const WordVec* schedule) {
  constexpr auto kTurns = kThreefryTurns[kGroup % 2];
  mix<kTurns[0]>(x, y);
  mix<kTurns[1]>(x, y);
  mix<kTurns[2]>(x, y);
  mix<kTurns[3]>(x, y);
  x = hn::Add(x, schedule[(kGroup + 1) % 3]);
  y = hn::Add(y,
              hn::Add(schedule[(kGroup + 2) % 3], hn::Set(WordTag(), std::uint32_t{kGroup + 1})));
}

HWY_NOINLINE HWY_ATTR void threefry_block(const ThreefryBlock& block) {
  const WordTag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto words = threefry_schedule(block.key);
  const WordVec schedule[3] = {hn::Set(d, words[0]), hn::Set(d, words[1]), hn::Set(d, words[2])};
  const WordVec places = hn::Iota(d, block.first);
  const WordVec offset = hn::Set(d, block.offset);
  for (std::int64_t i = 0; i < block.n; i += lanes) {
    const WordVec counter = hn::Add(places, hn::Set(d, static_cast<std::uint32_t>(i)));
    WordVec x = hn::Add(counter, schedule[0]);
    WordVec y = hn::Add(hn::Add(counter, offset), schedule[1]);
    mix_group<0>(x, y, schedule);
    mix_group<1>(x, y, schedule);
    mix_group<2>(x, y, schedule);
    mix_group<3>(x, y, schedule);
    mix_group<4>(x, y, schedule);
    if (i + lanes <= block.n) {
      hn::StoreU(x, d, block.low + i);
      hn::StoreU(y, d, block.high + i);
      continue;
    }
    HWY_ALIGN std::uint32_t rest[2][hn::MaxLanes(d)];
    hn::Store(x, d, rest[0]);
    hn::Store(y, d, rest[1]);
    std::copy_n(rest[0], block.n - i, block.low + i);
    std::copy_n(rest[1], block.n - i, block.high + i);
  }
}

ThreefryFunction find_threefry() {
  return threefry_block;
}

}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle::cpu {

namespace {

// Pairs of words that are computed together: what leaves 16 KiB, half of a first-level cache.
constexpr std::int64_t kBlockPairs = 2048;

ThreefryFunction threefry_function() {
  HEDDLE_SIMD_RETURN(find_threefry);
}

/// The bytes of each key's stream, in blocks. The last word of a stream may count in part.
struct Bits {
  std::int64_t keys, key_bytes, keys_per_row;  // of axis 0; 0 where there are no rows
  ThreefryCount count;
  ThreefryFunction words;

  std::int64_t blocks() const {
    return std::max<std::int64_t>(1, (count.pairs + kBlockPairs - 1) / kBlockPairs);
  }
  std::int64_t keys_that_count(std::int64_t extent) const {
    return extent < 0 || keys_per_row == 0 ? keys : std::min(keys, extent * keys_per_row);
  }

  void run(const Launch& launch) const {
    if (key_bytes == 0) return;
    parallel(launch.team, keys_that_count(launch.extent) * blocks(),
             row_grain(std::min(count.pairs + 1, kBlockPairs)),
             [&](std::int64_t begin, std::int64_t end) {
               for (std::int64_t i = begin; i < end; ++i) {
                 compute(launch, i / blocks(), i % blocks());
               }
             });
  }

 private:
  void compute(const Launch& launch, std::int64_t index, std::int64_t block) const {
    const auto* from = launch.inputs[0].as<const std::uint32_t>() + 2 * index;
    const ThreefryPair key{from[0], from[1]};
    std::byte* out = launch.outputs[0].data + index * key_bytes;
    const std::int64_t first = block * kBlockPairs;
    const std::int64_t n = std::min(kBlockPairs, count.pairs - first);
    ThreefryBlock job{key,
                      static_cast<std::uint32_t>(first),
                      static_cast<std::uint32_t>(count.offset),
                      n,
                      nullptr,
                      nullptr};
    if (key_bytes % 4 == 0) {
      job.low = reinterpret_cast<std::uint32_t*>(out) + first;
      job.high = job.low + count.offset;
      words(job);
    } else {
      std::uint32_t low[kBlockPairs], high[kBlockPairs];
      job.low = low;
      job.high = high;
      words(job);
      put(out, first, low, n);
      put(out, first + count.offset, high, n);
    }
    if (count.odd && block == 0) {
      const std::uint32_t middle = threefry(key, {static_cast<std::uint32_t>(count.pairs), 0})[0];
      put(out, count.pairs, &middle, 1);
    }
  }

  void put(std::byte* out, std::int64_t word, const std::uint32_t* from, std::int64_t n) const {
    const std::int64_t bytes = std::min(4 * n, key_bytes - 4 * word);
    if (bytes > 0) std::memcpy(out + 4 * word, from, static_cast<std::size_t>(bytes));
  }
};

}  // namespace

Prepared prepare_random_bits(const PrepareArgs& args) {
  if (std::string reason = contiguous_refusal(args); !reason.empty()) return refuse(reason);
  const Shape& keys = args.inputs[0].spec.shape;
  const auto& op = std::get<RandomBits>(args.op);
  const std::int64_t count = elements(keys) / 2;
  const std::int64_t bytes = elements(op.shape) * op.width;
  const bool has_rows = keys.size() > 1 && keys[0] > 0;
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.honours_extent = has_rows;
  const Bits bits{count, bytes, has_rows ? count / keys[0] : 0, ThreefryCount((bytes + 3) / 4),
                  threefry_function()};
  return make_kernel(std::move(traits), [bits](const Launch& launch) { bits.run(launch); });
}

}  // namespace heddle::cpu
#endif
