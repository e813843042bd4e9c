// Random programs evaluated lazily and run as plans give the same bytes on one device. FUZZ_ROUNDS
// says how many programs.
#include "exec_test_support.h"
#include "support/environment.h"
#include "support/random_program.h"

namespace heddle::test {
namespace {

/// Fused ops do not round to half types in between, and so their programs have none.
void compare(unsigned first_seed, Device* device, bool fuse) {
  const auto rounds = static_cast<unsigned>(number_from("FUZZ_ROUNDS", 200));
  for (unsigned seed = first_seed; seed < first_seed + rounds; ++seed) {
    Program program;
    ASSERT_NO_THROW(program = random_program(seed, {.halves = !fuse})) << "seed " << seed;
    try {
      const std::vector<Bytes> lazy = run_lazily(program, {seed, device, false});
      const std::vector<Bytes> planned = run_planned(program, device, fuse);
      for (std::size_t i = 0; i < lazy.size(); ++i) {
        ASSERT_EQ(planned[i], lazy[i]) << "the bytes of %" << program.results[i] << " differ in\n"
                                       << to_string(program);
      }
    } catch (const Error& error) {
      FAIL() << error.what() << "\n" << to_string(program);
    }
    if (testing::Test::HasFailure()) FAIL() << to_string(program);
  }
}

AsyncOptions quick() {
  AsyncOptions options;
  options.delay = std::chrono::microseconds(0);
  return options;
}

TEST(LazyAndPlanned, OnTheCpu) {
  compare(1000, nullptr, false);
}
TEST(LazyAndPlanned, OnTheCpuFused) {
  compare(2000, nullptr, true);
}
TEST(LazyAndPlanned, OnAnAsynchronousDevice) {
  AsyncDevice device(quick());
  compare(3000, &device, false);
}
TEST(LazyAndPlanned, OnAnAsynchronousDeviceFused) {
  AsyncDevice device(quick());
  compare(4000, &device, true);
}

}  // namespace
}  // namespace heddle::test
