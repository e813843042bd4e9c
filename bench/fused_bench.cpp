// What compiled programs of element-wise ops cost: the time of each beside that of one op and that
// of a copy of as many bytes. First chains of n additions and multiplications, then such as hold
// other ops too. Arrays are larger than the caches, and results lie in memory that earlier ones
// had. Medians of runs that take turns.
#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
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
Array chain(Array x, int n) {
  for (int i = 0; i < n; ++i) {
    const float number = 1.01f + 0.01f * static_cast<float>(i);
    x = i % 2 == 0 ? x * number : x + number;
  }
  return x;
}

struct Program {
  std::string name;
  ArraysFunction function;
};

template <class F>
Program program(std::string name, const F& of) {
  return {std::move(name), compile([of](const std::vector<Array>& given) {
            return std::vector<Array>{of(given[0], given[1])};
          })};
}

std::vector<Program> chains() {
  std::vector<Program> all;
  for (const int n : kLengths) {
    all.push_back(program(fmt::format("{} ops", n),
                          [n](const Array& x, const Array&) { return chain(x, n); }));
  }
  return all;
}

std::vector<Program> mixtures() {
  return {
      program("one op of two arrays", [](const Array& x, const Array& y) { return x + y; }),
      program("8 ops, exp, 8 ops",
              [](const Array& x, const Array&) { return chain(exp(-chain(x, 8)), 8); }),
      program("x * y + y, 4 times",
              [](const Array& x, const Array& y) {
                Array z = x;
                for (int i = 0; i < 4; ++i) z = z * y + y;
                return z;
              }),
      program("where of two chains of 4",
              [](const Array& x, const Array& y) {
                return where(less(x, y), chain(x, 4), chain(y, 4));
              }),
      program("the gradient of silu",
              [](const Array& x, const Array& y) {
                const Array s = sigmoid(x);
                return y * (s + x * s * (1.0f - s));
              }),
  };
}

void copy(const std::vector<float>& from, std::vector<float>& to) {
  current_team().parallel_for(kElements, kElements / 64, [&](std::int64_t begin, std::int64_t end) {
    std::memcpy(to.data() + begin, from.data() + begin,
                static_cast<std::size_t>(end - begin) * sizeof(float));
  });
}

void measure() {
  std::vector<float> from(kElements, 0.5f), to(kElements, 0.0f);
  const std::vector<Array> inputs{Array(from, {kElements}), Array(from, {kElements})};
  std::vector<Program> programs = chains();
  for (Program& mixture : mixtures()) programs.push_back(std::move(mixture));
  std::vector<double> copying;
  std::vector<std::vector<double>> times(programs.size());
  for (int run = -1; run < kRuns; ++run) {  // the first is not counted
    const double copied = bench::seconds([&] { copy(from, to); });
    if (run >= 0) copying.push_back(copied);
    for (std::size_t i = 0; i < programs.size(); ++i) {
      const double took = bench::seconds([&] { programs[i].function(inputs); });
      if (run >= 0) times[i].push_back(took);
    }
  }
  const double first = bench::median(times[0]), copied = bench::median(copying);
  fmt::print("{} MiB, medians of {}; a copy takes {:.2f} ms\n", kElements * 4 >> 20, kRuns,
             1e3 * copied);
  fmt::print("{:<26} {:>9} {:>10} {:>10}\n", "program", "ms", "x one op", "x a copy");
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const double took = bench::median(times[i]);
    fmt::print("{:<26} {:>9.2f} {:>10.2f} {:>10.2f}\n", programs[i].name, 1e3 * took, took / first,
               took / copied);
  }
}

}  // namespace
}  // namespace heddle

int main() {
  heddle::measure();
}
