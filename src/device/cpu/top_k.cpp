// top_k: the largest of each row, by keys that are the smaller the larger the value.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "device/cpu/block_io.h"
#include "device/cpu/kernel.h"
#include "device/cpu/lines.h"
#include "device/cpu/order_keys.h"
#include "device/cpu/sort_keys.h"

namespace heddle::cpu {

namespace {

template <class Key>
using KeyOf = std::conditional_t<sizeof(typename Key::Bits) == 8, WideKey, std::uint64_t>;

template <class Key>
void load(const std::byte* x, std::int64_t first, std::int64_t n, KeyOf<Key>* keys) {
  using Bits = typename Key::Bits;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto rank = static_cast<Bits>(~Key::ranked(load_bits<Key>(x, first + i)));
    if constexpr (sizeof(Bits) == 8) {
      keys[i].hi = rank;
      keys[i].lo = static_cast<std::uint64_t>(first + i);
    } else {
      keys[i] = (std::uint64_t{rank} << 32) | static_cast<std::uint32_t>(first + i);
    }
  }
}

std::uint32_t index_of(std::uint64_t key) {
  return static_cast<std::uint32_t>(key);
}
std::uint32_t index_of(const WideKey& key) {
  return static_cast<std::uint32_t>(key.lo);
}

/// Gathers what may be among the k largest, and whenever there is no more room, sorts that and
/// keeps k. So a row costs a comparison an element, and sorting as much as k is large.
template <class Key>
struct Chooser {
  using K = KeyOf<Key>;
  Lines lines;
  LineSlots slots;
  std::int64_t k = 0;

  /// Keys that a row may gather. Twice as many as stay, so that sorting is worth its while; or all.
  static std::int64_t room(std::int64_t length, std::int64_t k) {
    return std::min(length, 2 * k + 4 * kBlock) + kBlock;
  }

  void run(const Launch& launch) const {
    const std::int64_t count = lines.bundles_that_count(launch.extent);
    if (k == 0 || count == 0) return;
    auto* keys = reinterpret_cast<K*>(launch.workspace);
    if (slots.one_by_one(launch.team, count)) {
      for (std::int64_t l = 0; l < count; ++l) sort_with_team(launch, l, keys);
      return;
    }
    parallel(launch.team, slots.slots, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t s = begin; s < end; ++s) {
        const std::int64_t last = count * (s + 1) / slots.slots;
        for (std::int64_t l = count * s / slots.slots; l < last; ++l) {
          choose(launch, l, keys + s * slots.room);
        }
      }
    });
  }

 private:
  static constexpr std::int64_t kItem = sizeof(typename Key::Bits);

  const std::byte* row(const Launch& launch, std::int64_t line) const {
    return launch.inputs[0].data + line * lines.length * kItem;
  }

  void choose(const Launch& launch, std::int64_t line, K* kept) const {
    const std::byte* x = row(launch, line);
    std::int64_t n = 0;  // kept
    bool full = false;   // k of them are, and what is behind `worst` is not wanted
    K worst{};
    K block[kBlock];
    for (std::int64_t i = 0; i < lines.length; i += kBlock) {
      const std::int64_t count = std::min(kBlock, lines.length - i);
      if (!full) {
        load<Key>(x, i, count, kept + n);
        n += count;
      } else {
        load<Key>(x, i, count, block);
        for (std::int64_t j = 0; j < count; ++j) {
          kept[n] = block[j];
          n += less(block[j], worst);
        }
      }
      if (n + kBlock <= slots.room || i + count == lines.length) continue;
      sort_keys(kept, n);
      n = std::min(n, k);
      full = n == k;
      worst = kept[n - 1];
    }
    sort_keys(kept, n);
    store(launch, line, kept, 0, k);
  }

  void sort_with_team(const Launch& launch, std::int64_t line, K* keys) const {
    const std::byte* x = row(launch, line);
    parallel(launch.team, lines.length, kGrainElements, [&](std::int64_t begin, std::int64_t end) {
      load<Key>(x, begin, end - begin, keys + begin);
    });
    const K* sorted = sort_keys(launch.team, keys, keys + slots.room, lines.length);
    parallel(launch.team, k, kGrainElements, [&](std::int64_t begin, std::int64_t end) {
      store(launch, line, sorted, begin, end);
    });
  }

  /// The results [begin, end) of a row.
  void store(const Launch& launch, std::int64_t line, const K* sorted, std::int64_t begin,
             std::int64_t end) const {
    const std::byte* x = row(launch, line);
    std::byte* values = launch.outputs[0].data + line * k * kItem;
    std::uint32_t* indices = launch.outputs[1].as<std::uint32_t>() + line * k;
    for (std::int64_t i = begin; i < end; ++i) {
      indices[i] = index_of(sorted[i]);
      std::memcpy(values + i * kItem, x + indices[i] * kItem, kItem);
    }
  }
};

}  // namespace

Prepared prepare_top_k(const PrepareArgs& args) {
  if (std::string reason = contiguous_refusal(args); !reason.empty()) return refuse(reason);
  const TensorSpec& x = args.inputs[0].spec;
  const Lines lines(x.shape, static_cast<std::int64_t>(x.shape.size()) - 1);
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.honours_extent = lines.honours_extent();
  const std::int64_t k = std::get<TopK>(args.op).k;
  return with_key(x.dtype, [&](auto tag) -> Prepared {
    using Key = typename decltype(tag)::type;
    const std::int64_t room = Chooser<Key>::room(lines.length, k);
    const Chooser<Key> chooser{lines, LineSlots(lines.outer, lines.length, room), k};
    traits.workspace_bytes =
        static_cast<std::size_t>(chooser.slots.keys()) * sizeof(typename Chooser<Key>::K);
    return make_kernel(std::move(traits), [chooser](const Launch& launch) { chooser.run(launch); });
  });
}

}  // namespace heddle::cpu
