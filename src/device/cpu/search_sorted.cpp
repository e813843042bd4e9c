// search_sorted: a binary search for each value, by keys.
#include "device/cpu/kernel.h"
#include "device/cpu/lines.h"
#include "device/cpu/order_keys.h"

namespace heddle::cpu {

namespace {

// Values that are searched for side by side, so that their reads from memory overlap.
constexpr std::int64_t kSideBySide = 16;

template <class Key, bool kRight>
struct Searcher {
  std::int64_t length = 0;

  /// How many of `sorted` stand before each of n values, n <= kSideBySide.
  void search(const std::byte* sorted, const std::byte* values, std::int64_t first, std::int64_t n,
              std::uint32_t* out) const {
    typename Key::Bits keys[kSideBySide];
    std::int64_t base[kSideBySide] = {};
    for (std::int64_t i = 0; i < n; ++i) keys[i] = Key::ranked(load_bits<Key>(values, first + i));
    // The answer lies in [base, base + left].
    std::int64_t left = length;
    while (left > 0) {
      const std::int64_t half = (left + 1) / 2;
      for (std::int64_t i = 0; i < n; ++i) {
        const auto key = Key::ranked(load_bits<Key>(sorted, base[i] + half - 1));
        const bool before = kRight ? key <= keys[i] : key < keys[i];
        base[i] += before ? half : 0;
      }
      left -= half;
    }
    for (std::int64_t i = 0; i < n; ++i) out[first + i] = static_cast<std::uint32_t>(base[i]);
  }

  void run(const Launch& launch, std::int64_t count) const {
    constexpr std::int64_t kSearchGrain = 1024;
    parallel(launch.team, count, kSearchGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; i += kSideBySide) {
        search(launch.inputs[0].data, launch.inputs[1].data, i, std::min(kSideBySide, end - i),
               launch.outputs[0].as<std::uint32_t>());
      }
    });
  }
};

template <class Key, bool kRight>
Run search_run(std::int64_t length, std::int64_t count, std::int64_t per_row) {
  return [searcher = Searcher<Key, kRight>{length}, count, per_row](const Launch& launch) {
    const bool all = launch.extent < 0 || per_row == 0;
    searcher.run(launch, all ? count : std::min(count, launch.extent * per_row));
  };
}

}  // namespace

Prepared prepare_search_sorted(const PrepareArgs& args) {
  if (std::string reason = contiguous_refusal(args); !reason.empty()) return refuse(reason);
  const bool right = std::get<SearchSorted>(args.op).right;
  const TensorSpec &sorted = args.inputs[0].spec, &values = args.inputs[1].spec;
  const std::int64_t count = elements(values.shape);
  const bool has_rows = !values.shape.empty() && values.shape[0] > 0;
  const std::int64_t per_row = has_rows ? count / values.shape[0] : 0;
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.honours_extent = !values.shape.empty();
  Run run = with_key(sorted.dtype, [&](auto tag) -> Run {
    using Key = typename decltype(tag)::type;
    const std::int64_t length = sorted.shape[0];
    return right ? search_run<Key, true>(length, count, per_row)
                 : search_run<Key, false>(length, count, per_row);
  });
  return make_kernel(std::move(traits), std::move(run));
}

}  // namespace heddle::cpu
