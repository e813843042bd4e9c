// sort and argsort: rows as keys, which are sorted and turned back.
#include <cstring>
#include <type_traits>

#include "device/cpu/kernel.h"
#include "device/cpu/lines.h"
#include "device/cpu/order_keys.h"
#include "device/cpu/sort_keys.h"

namespace heddle::cpu {

namespace {

/// How rows become keys of type K, and these what is stored.
template <class K>
struct Conversion {
  /// Of elements [first, first + n) of the row x.
  void (*load)(const std::byte* x, std::int64_t first, std::int64_t n, K* keys);
  /// To elements [first, first + n) of the result; x is the whole row.
  void (*store)(const K* keys, std::int64_t first, std::int64_t n, const std::byte* x,
                std::byte* out);
};

template <class Key>
void store_bits(std::byte* out, std::int64_t i, typename Key::Bits bits) {
  std::memcpy(out + i * static_cast<std::int64_t>(sizeof bits), &bits, sizeof bits);
}

// ---- Values themselves

template <class Key, class K>
void load_values(const std::byte* x, std::int64_t first, std::int64_t n, K* keys) {
  for (std::int64_t i = 0; i < n; ++i) keys[i] = Key::exact(load_bits<Key>(x, first + i));
}
template <class Key, class K>
void store_values(const K* keys, std::int64_t first, std::int64_t n, const std::byte*,
                  std::byte* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    store_bits<Key>(out, first + i, Key::value(static_cast<typename Key::Bits>(keys[i])));
  }
}

// ---- Keys with their indices

template <class Key>
void load_indexed(const std::byte* x, std::int64_t first, std::int64_t n, std::uint64_t* keys) {
  for (std::int64_t i = 0; i < n; ++i) {
    keys[i] = (std::uint64_t{Key::ranked(load_bits<Key>(x, first + i))} << 32) |
              static_cast<std::uint32_t>(first + i);
  }
}
template <class Key>
void load_wide(const std::byte* x, std::int64_t first, std::int64_t n, WideKey* keys) {
  for (std::int64_t i = 0; i < n; ++i) {
    keys[i].hi = Key::ranked(load_bits<Key>(x, first + i));
    keys[i].lo = static_cast<std::uint64_t>(first + i);
  }
}
std::uint32_t index_of(std::uint64_t key) {
  return static_cast<std::uint32_t>(key);
}
std::uint32_t index_of(const WideKey& key) {
  return static_cast<std::uint32_t>(key.lo);
}
template <class K>
void store_indices(const K* keys, std::int64_t first, std::int64_t n, const std::byte*,
                   std::byte* out) {
  auto* indices = reinterpret_cast<std::uint32_t*>(out) + first;
  for (std::int64_t i = 0; i < n; ++i) indices[i] = index_of(keys[i]);
}
template <class Key>
void store_chosen(const WideKey* keys, std::int64_t first, std::int64_t n, const std::byte* x,
                  std::byte* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    store_bits<Key>(out, first + i, load_bits<Key>(x, index_of(keys[i])));
  }
}

// ---- The kernel

template <class K>
struct Sorter {
  Conversion<K> conversion;
  Lines lines;
  LineSlots slots;
  std::int64_t item = 0, out_item = 0;

  void run(const Launch& launch) const {
    const std::int64_t count = lines.bundles_that_count(launch.extent);
    if (lines.length == 0 || count == 0) return;
    auto* keys = reinterpret_cast<K*>(launch.workspace);
    if (slots.one_by_one(launch.team, count)) {
      for (std::int64_t l = 0; l < count; ++l) sort_with_team(launch, l, keys);
      return;
    }
    parallel(launch.team, slots.slots, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t s = begin; s < end; ++s) {
        K* own = keys + s * slots.room;
        const std::int64_t last = count * (s + 1) / slots.slots;
        for (std::int64_t l = count * s / slots.slots; l < last; ++l) {
          const std::byte* x = row(launch, l);
          conversion.load(x, 0, lines.length, own);
          sort_keys(own, lines.length);
          conversion.store(own, 0, lines.length, x, out_row(launch, l));
        }
      }
    });
  }

 private:
  const std::byte* row(const Launch& launch, std::int64_t line) const {
    return launch.inputs[0].data + line * lines.length * item;
  }
  std::byte* out_row(const Launch& launch, std::int64_t line) const {
    return launch.outputs[0].data + line * lines.length * out_item;
  }

  void sort_with_team(const Launch& launch, std::int64_t line, K* keys) const {
    const std::byte* x = row(launch, line);
    parallel(launch.team, lines.length, kGrainElements, [&](std::int64_t begin, std::int64_t end) {
      conversion.load(x, begin, end - begin, keys + begin);
    });
    const K* sorted = sort_keys(launch.team, keys, keys + slots.room, lines.length);
    parallel(launch.team, lines.length, kGrainElements, [&](std::int64_t begin, std::int64_t end) {
      conversion.store(sorted + begin, begin, end - begin, x, out_row(launch, line));
    });
  }
};

template <class K>
Prepared make_sort(const PrepareArgs& args, const Conversion<K>& conversion) {
  const TensorSpec &x = args.inputs[0].spec, &out = args.outputs[0].spec;
  const Lines lines(x.shape, static_cast<std::int64_t>(x.shape.size()) - 1);
  const LineSlots slots(lines.outer, lines.length, lines.length);
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.honours_extent = lines.honours_extent();
  traits.workspace_bytes = static_cast<std::size_t>(slots.keys()) * sizeof(K);
  const Sorter<K> sorter{conversion, lines, slots, static_cast<std::int64_t>(item_size(x.dtype)),
                         static_cast<std::int64_t>(item_size(out.dtype))};
  return make_kernel(std::move(traits), [sorter](const Launch& launch) { sorter.run(launch); });
}

template <class Key>
Prepared make_argsort(const PrepareArgs& args) {
  if constexpr (sizeof(typename Key::Bits) == 8) {
    return make_sort<WideKey>(args, {load_wide<Key>, store_indices<WideKey>});
  } else {
    return make_sort<std::uint64_t>(args, {load_indexed<Key>, store_indices<std::uint64_t>});
  }
}

template <class Key>
Prepared make_value_sort(const PrepareArgs& args) {
  if constexpr (std::is_same_v<Key, ComplexKey>) {
    return make_sort<WideKey>(args, {load_wide<Key>, store_chosen<Key>});
  } else {
    using K = std::conditional_t<sizeof(typename Key::Bits) <= 2, std::uint16_t, std::uint64_t>;
    return make_sort<K>(args, {load_values<Key, K>, store_values<Key, K>});
  }
}

}  // namespace

Prepared prepare_sort(const PrepareArgs& args) {
  if (std::string reason = contiguous_refusal(args); !reason.empty()) return refuse(reason);
  const bool values = std::get<Sort>(args.op).kind == SortKind::sort;
  return with_key(args.inputs[0].spec.dtype, [&](auto tag) -> Prepared {
    using Key = typename decltype(tag)::type;
    return values ? make_value_sort<Key>(args) : make_argsort<Key>(args);
  });
}

}  // namespace heddle::cpu
