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

// Found by random programs: what only an order needed is dead in a graph.
TEST(LazyAndPlanned, ADeadViewOfOneThatWouldCopyIsNoTrouble) {
  GraphBuilder builder;
  const Array x = builder.input("x", {DType::f32, {2, 3}});
  const Array copied = reshape(transpose(x), {6});
  builder.output("y", depends({x + x}, {slice(copied, {1}, {3})})[0]);
  CompileOptions options;
  options.verify = true;
  const auto executable = Executable::compile(builder.build(), options);
  const std::vector<float> values(6, 2.0f);
  const HostTensor tensor({DType::f32, {2, 3}}, std::as_bytes(std::span(values)));
  const std::vector<NamedTensor> inputs{{"x", tensor}};
  executable->run(inputs);
  EXPECT_EQ(executable->output("y").to_vector<float>(), std::vector<float>(6, 4.0f));
}

}  // namespace
}  // namespace heddle::test
