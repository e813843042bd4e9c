// Random functions, compiled and not: the same bits. FUZZ_ROUNDS says how many.
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "array/array_test_support.h"
#include "heddle/compile.h"
#include "support/environment.h"
#include "support/random_program.h"

namespace heddle::test {
namespace {

class CompileFuzz : public testing::TestWithParam<CompileMode> {
 protected:
  void SetUp() override { set_compile_mode(GetParam()); }
  void TearDown() override { enable_compile(); }
  static unsigned rounds() { return static_cast<unsigned>(number_from("FUZZ_ROUNDS", 60)); }
};

std::vector<Bytes> bytes_of(const std::vector<Array>& arrays) {
  std::vector<Bytes> all;
  for (const Array& array : arrays) all.push_back(array.to_bytes());
  return all;
}

/// Fused ops do not round to half types in between, and so their programs have none.
TEST_P(CompileFuzz, RandomPrograms) {
  for (unsigned seed = 6000; seed < 6000 + rounds(); ++seed) {
    const Program program = random_program(seed, {.halves = GetParam() != CompileMode::enabled});
    SCOPED_TRACE(to_string(program));
    std::vector<Array> inputs;
    for (const ProgramInput& input : program.inputs)
      inputs.push_back(Array::from_bytes(input.spec, input.bytes));
    int calls = 0;
    const ArraysFunction f = [&](const std::vector<Array>& given) {
      ++calls;
      const std::vector<Array> values =
          build_values(program, {}, [&](std::size_t i) { return given[i]; });
      std::vector<Array> results;
      for (const std::size_t result : program.results) results.push_back(values[result]);
      return results;
    };
    const std::vector<Bytes> eager = bytes_of(f(inputs));
    const ArraysFunction compiled = compile(f);
    for (int call = 0; call < 2; ++call) {
      const std::vector<Bytes> found = bytes_of(compiled(inputs));
      for (std::size_t i = 0; i < eager.size(); ++i)
        ASSERT_EQ(found[i], eager[i]) << "%" << program.results[i];
    }
    ASSERT_EQ(calls, 2);
  }
}

/// Products with numbers, sums with them, and differences both ways.
Array random_chain(std::mt19937& random, Array y) {
  constexpr float kNumbers[] = {0.0f, -0.0f, 1.0f, -1.5f, 0.1f, 3e30f, 1e-30f, -7.0f};
  const auto steps = 1 + random() % 40;
  for (unsigned i = 0; i < steps; ++i) {
    const float number = kNumbers[random() % std::size(kNumbers)];
    const std::vector<Array> choices{y * number, y + number, y - number, number - y, number * y};
    y = choices[random() % choices.size()];
    if (random() % 12 == 0) y = maximum(y, -y);
  }
  return y;
}

TEST_P(CompileFuzz, ChainsRoundAsTheirOpsDo) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::mt19937 random(3);
  for (unsigned round = 0; round < rounds(); ++round) {
    SCOPED_TRACE(round);
    std::vector<float> values{0.0f, -0.0f, 1.0f, 1e-40f, -3e38f, kInfinity, std::nanf("")};
    values.resize(std::vector<std::size_t>{1, 7, 515, 40000}[random() % 4], 0.3f);
    for (std::size_t i = 7; i < values.size(); ++i) values[i] += 0.01f * static_cast<float>(i);
    const Array x(values, {static_cast<std::int64_t>(values.size())});
    const auto seed = random();
    const ArrayFunction chain = [seed](const Array& y) {
      std::mt19937 again(seed);
      return random_chain(again, y);
    };
    const std::vector<float> eager = chain(x).to_vector<float>(),
                             found = compile(chain)(x).to_vector<float>();
    for (std::size_t i = 0; i < eager.size(); ++i) {
      if (std::isnan(eager[i]) && std::isnan(found[i])) continue;
      ASSERT_EQ(std::bit_cast<std::uint32_t>(found[i]), std::bit_cast<std::uint32_t>(eager[i]))
          << found[i] << " instead of " << eager[i] << " at " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, CompileFuzz,
                         testing::Values(CompileMode::no_simplify, CompileMode::no_fuse,
                                         CompileMode::enabled));

}  // namespace
}  // namespace heddle::test
