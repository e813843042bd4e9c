// Barriers between Vulkan's own kernels, by the ranges that they declare (see tests/exec).
#include "support/barriers.h"

#include "device/vulkan/vulkan_device.h"
#include "exec/planner.h"
#include "support/environment.h"
#include "support/random_program.h"

namespace heddle::test {
namespace {

TEST_F(Vulkan, BarriersOfPlansSeparateConflictsAndNothingElse) {
  const auto rounds = static_cast<unsigned>(number_from("FUZZ_ROUNDS", 20));
  std::size_t barriers = 0;
  for (unsigned seed = 25000; seed < 25000 + rounds; ++seed) {
    const Program program = random_program(seed);
    CompileOptions options;
    options.devices = {&device(), &cpu_device()};
    const Plan plan = plan_graph(graph_of(program), options);
    ASSERT_EQ(unordered_use(plan), "") << to_string(program) << to_text(plan);
    ASSERT_EQ(barriers_for_nothing(plan), std::vector<std::string>{}) << to_text(plan);
    barriers += inner_barriers(plan);
  }
  EXPECT_GT(barriers, rounds);
}

}  // namespace
}  // namespace heddle::test
