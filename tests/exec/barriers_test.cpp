// Barriers are where declared byte ranges conflict, and nowhere else (rule 13): on random programs,
// by a simulator that knows only ranges and barriers. FUZZ_ROUNDS says how many programs.
#include "support/barriers.h"

#include "exec/planner.h"
#include "exec_test_support.h"
#include "support/environment.h"
#include "support/random_program.h"

namespace heddle::test {
namespace {

Plan plan_on(Device& device, const Program& program, bool fuse) {
  CompileOptions options;
  options.devices = {&device, &cpu_device()};
  options.fuse = fuse;
  return plan_graph(graph_of(program), options);
}

void check(unsigned first_seed, bool fuse) {
  AsyncDevice device;
  const auto rounds = static_cast<unsigned>(number_from("FUZZ_ROUNDS", 100));
  std::size_t barriers = 0;
  for (unsigned seed = first_seed; seed < first_seed + rounds; ++seed) {
    const Program program = random_program(seed);
    const Plan plan = plan_on(device, program, fuse);
    ASSERT_EQ(unordered_use(plan), "") << to_string(program) << to_text(plan);
    ASSERT_EQ(barriers_for_nothing(plan), std::vector<std::string>{}) << to_text(plan);
    barriers += inner_barriers(plan);
  }
  EXPECT_GT(barriers, rounds);  // there was something to see
}

TEST(Barriers, SeparateConflictsAndNothingElse) {
  check(21000, false);
}
TEST(Barriers, SeparateConflictsAndNothingElseFused) {
  check(22000, true);
}

// The simulator is not blind: each barrier that goes missing shows.
TEST(Barriers, AnyThatIsTakenAwayIsMissed) {
  AsyncDevice device;
  for (unsigned seed = 23000; seed < 23010; ++seed) {
    const Plan plan = plan_on(device, random_program(seed), true);
    for (std::size_t s = 0; s < plan.splits.size(); ++s) {
      for (std::size_t i = 1; i < plan.splits[s].steps.size(); ++i) {
        if (!std::holds_alternative<PlannedBarrier>(plan.splits[s].steps[i])) continue;
        Plan broken = plan;
        broken.splits[s].steps.erase(broken.splits[s].steps.begin() + static_cast<long>(i));
        EXPECT_NE(unordered_use(broken), "") << "split " << s << " step " << i;
        EXPECT_THROW(verify(broken), Error) << "split " << s << " step " << i;
      }
    }
  }
}

}  // namespace
}  // namespace heddle::test
