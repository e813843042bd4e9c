// Which outputs may be written over inputs, and that the verifier sees those that may not.
#include "exec_test_support.h"
#include "heddle/memory.h"

namespace heddle::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Updates {
  GraphBuilder builder;
  Array m = builder.input("m", f32({4})), g = builder.input("g", f32({4}));

  Plan plan(std::vector<Device*> devices = {}) {
    Plan made = plan_of(builder.build(), std::move(devices));
    verify(made);
    return made;
  }
};

/// "output over input"
std::vector<std::string> overwrites(const Plan& plan) {
  std::vector<std::string> pairs;
  for (const Overwrite& each : plan.overwrites)
    pairs.push_back(plan.slots[each.output].name + " over " + plan.slots[each.input].name);
  return pairs;
}

TEST(Overwrites, TheLastReaderElementByElement) {
  Updates u;
  u.builder.output("sum", sum(u.m));
  u.builder.output("next", u.m * 0.5f + exp(u.g));
  u.builder.output("more", u.g + 1.0f);
  EXPECT_THAT(overwrites(u.plan()), ElementsAre("more over g"));
}

TEST(Overwrites, EachInputOnce) {
  Updates u;
  u.builder.output("one", u.m + u.g);
  u.builder.output("two", u.m - u.g);
  EXPECT_THAT(overwrites(u.plan()), ElementsAre("two over m"));
}

TEST(Overwrites, NotWhatIsReadLaterOrInAnotherWay) {
  Updates u;
  u.builder.output("next", u.m + 1.0f);
  u.builder.output("later", sum(u.m));
  u.builder.output("turned", slice(u.g, {3}, {-5}, {-1}) + u.g);
  EXPECT_THAT(overwrites(u.plan()), IsEmpty());
}

TEST(Overwrites, NotWhatIsHandedOut) {
  Updates u;
  u.builder.output("m", u.m);
  u.builder.output("next", u.m + 1.0f);
  EXPECT_THAT(overwrites(u.plan()), IsEmpty());
}

TEST(Overwrites, NotBeforeWhatMayFail) {
  Updates u;
  const Array place = u.builder.input("place", i32({}));
  u.builder.output("next", u.m + 1.0f);
  u.builder.output("element", take(u.g, place + 1, 0));
  u.builder.output("later", u.m + u.g);
  EXPECT_THAT(overwrites(u.plan()), ElementsAre("later over m"));
}

TEST(Overwrites, NotBeforeACopyForTheCaller) {
  Updates u;
  u.builder.output("part", slice(u.g, {1}, {3}));
  u.builder.output("next", u.m + 1.0f);
  EXPECT_THAT(overwrites(u.plan()), IsEmpty());
}

TEST(Overwrites, NotWithOtherDevices) {
  AsyncDevice device(accepting("async", {"exp"}));
  Updates u;
  const Array there = on(device, [&] { return exp(u.g); });
  u.builder.output("next", u.m + there);
  EXPECT_THAT(overwrites(u.plan({&device})), IsEmpty());
}

class BrokenOverwrites : public testing::Test {
 protected:
  void SetUp() override {
    u_.builder.output("next", u_.m * u_.g);
    u_.builder.output("last", u_.g + take(u_.builder.input("table", f32({2})),
                                          u_.builder.input("place", i32({})) + 0, 0));
    u_.builder.output("small", sum(u_.g));
    plan_ = u_.plan();
    ASSERT_THAT(plan_.overwrites, IsEmpty());
  }

  std::uint32_t slot(const std::string& name) const {
    const auto found = std::ranges::find(plan_.slots, name, &Slot::name);
    return static_cast<std::uint32_t>(found - plan_.slots.begin());
  }
  void expect_refused(const std::vector<std::pair<std::string, std::string>>& pairs,
                      const std::string& reason) {
    plan_.overwrites.clear();
    for (const auto& [output, input] : pairs)
      plan_.overwrites.push_back({slot(output), slot(input)});
    expect_error(ErrorCode::backend, reason, [&] { verify(plan_); });
  }

  Updates u_;
  Plan plan_;
};

TEST_F(BrokenOverwrites, AreSeen) {
  expect_refused({{"next", "m"}}, "may fail");
  expect_refused({{"last", "g"}}, "read afterwards");
  expect_refused({{"next", "g"}}, "may fail");
  expect_refused({{"small", "g"}}, "not as large");
  expect_refused({{"m", "next"}}, "only outputs");
  expect_refused({{"last", "m"}, {"last", "m"}}, "two pairs");
}

// ---- Calls

TEST(CallOver, UsesTheMemoryOfWhatNobodyElseHolds) {
  GraphBuilder builder;
  builder.output("y", builder.input("x", f32({100000})) * 2.0f);
  const auto executable = compiled(builder.build());
  const auto call = [&](Array x, bool overwrite) {
    const std::vector<NamedArray> inputs{{"x", std::move(x), overwrite}};
    return executable->call(inputs)[0];
  };
  Array y = call(ones({100000}) + 1.0f, false);
  const std::byte* memory = y.view().host();
  const std::size_t used = cpu_device().memory()->active();
  for (int i = 0; i < 3; ++i) y = call(std::move(y), true);
  EXPECT_EQ(y.view().host(), memory);
  EXPECT_EQ(cpu_device().memory()->active(), used);
  const Array other = call(y, true);  // which `y` holds too
  EXPECT_NE(other.view().host(), memory);
  EXPECT_EQ(y.to_vector<float>()[7], 32.0f);
  EXPECT_EQ(other.to_vector<float>()[7], 64.0f);
  EXPECT_NE(call(std::move(y), false).view().host(), memory);
}

}  // namespace
}  // namespace heddle::test
