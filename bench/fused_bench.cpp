// What chains of n additions and multiplications cost once they are compiled: the time of each
// beside that of one op and that of a copy of as many bytes. Arrays are larger than the caches, and
// results lie in memory that earlier ones had. Medians of runs that take turns.
#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "base/team.h"
#include "heddle/compile.h"
#include "measure.h"

namespace heddle {
namespace {

constexpr std::int64_t kElements = 16 << 20;  // 64 MiB of float
constexpr int kRuns = 15;
constexpr int kLengths[] = {1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 28, 32};

/// x * a + b * c + d ..., of n ops.
ArrayFunction chain(int n) {
  return compile([n](const Array& x) {
    Array y = x;
    for (int i = 0; i < n; ++i) {
      const float number = 1.01f + 0.01f * static_cast<float>(i);
      y = i % 2 == 0 ? y * number : y + number;
    }
    return y;
  });
}

void copy(const std::vector<float>& from, std::vector<float>& to) {
  current_team().parallel_for(kElements, kElements / 64, [&](std::int64_t begin, std::int64_t end) {
    std::memcpy(to.data() + begin, from.data() + begin,
                static_cast<std::size_t>(end - begin) * sizeof(float));
  });
}

void measure() {
  std::vector<float> from(kElements, 0.5f), to(kElements, 0.0f);
  const Array x(from, {kElements});
  std::vector<ArrayFunction> chains;
  for (const int n : kLengths) chains.push_back(chain(n));
  std::vector<double> copying;
  std::vector<std::vector<double>> times(chains.size());
  for (int run = -1; run < kRuns; ++run) {  // the first is not counted
    const double copied = bench::seconds([&] { copy(from, to); });
    if (run >= 0) copying.push_back(copied);
    for (std::size_t i = 0; i < chains.size(); ++i) {
      const double took = bench::seconds([&] { chains[i](x); });
      if (run >= 0) times[i].push_back(took);
    }
  }
  const double first = bench::median(times[0]), copied = bench::median(copying);
  fmt::print("{} MiB, medians of {}; a copy takes {:.2f} ms\n", kElements * 4 >> 20, kRuns,
             1e3 * copied);
  fmt::print("{:>4} {:>9} {:>10} {:>10}\n", "ops", "ms", "x one op", "x a copy");
  for (std::size_t i = 0; i < chains.size(); ++i) {
    const double took = bench::median(times[i]);
    fmt::print("{:>4} {:>9.2f} {:>10.2f} {:>10.2f}\n", kLengths[i], 1e3 * took, took / first,
               took / copied);
  }
}

}  // namespace
}  // namespace heddle

int main() {
  heddle::measure();
}
