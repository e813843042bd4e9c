#include "exec/profile.h"

#include "observe_support.h"
#include "pipeline.h"

namespace heddle::test {
namespace {

double seconds(const std::vector<ProfileRow>& rows) {
  double all = 0;
  for (const ProfileRow& row : rows) all += row.seconds();
  return all;
}

class Profiled : public Pipeline {};

TEST_F(Profiled, RowsAddUpToTheTimeThatPassed) {
  const auto executable = make();
  expect_run(*executable, 0);
  const auto profile =
      std::make_shared<Profile>(std::map<std::string, DeviceBounds>{{"cpu", {1e9, 2e9}}});
  const auto before = std::chrono::steady_clock::now();
  profile->begin();
  {
    const ObserveScope scope(profile);
    for (int i = 0; i < 5; ++i) run(*executable);
  }
  profile->end();
  const double passed =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
  const ProfileResult result = profile->result();
  EXPECT_EQ(result.runs, 5u);
  EXPECT_LE(result.wall, passed);
  EXPECT_GT(result.wall, 0);
  EXPECT_GE(result.within_runs, 0);
  EXPECT_GE(result.outside_runs, 0);
  for (const auto& rows : {result.families, result.nodes}) {
    EXPECT_NEAR(seconds(rows) + result.within_runs + result.outside_runs, result.wall,
                1e-9 * result.wall);
    EXPECT_TRUE(std::ranges::is_sorted(rows, std::ranges::greater(), &ProfileRow::seconds));
  }
}

TEST_F(Profiled, CountsAndBoundsByFamilyNodeAndDevice) {
  const auto executable = make();
  const auto profile = std::make_shared<Profile>(
      std::map<std::string, DeviceBounds>{{"cpu", {1e9, 1e12}}, {"async", {1e12, 1e9}}});
  const ObserveScope scope(profile);
  for (int i = 0; i < 3; ++i) run(*executable);
  const ProfileResult result = profile->result();
  const auto find = [](const std::vector<ProfileRow>& rows, std::string_view name,
                       std::string_view device) {
    const auto row = std::ranges::find_if(
        rows, [&](const ProfileRow& r) { return r.name == name && r.device == device; });
    EXPECT_NE(row, rows.end()) << name;
    return *row;
  };
  const ProfileRow product = find(result.nodes, "w/linear", "async");
  EXPECT_EQ(product.count, 3u);
  EXPECT_EQ(product.operations, 3 * 2.0 * 4 * 32 * 32);
  EXPECT_DOUBLE_EQ(product.bound, product.operations / 1e9);
  const ProfileRow sum = find(result.nodes, "x/add", "cpu");
  EXPECT_EQ(sum.bytes, 3 * 3.0 * 4 * 32 * 4);
  EXPECT_DOUBLE_EQ(sum.bound, sum.bytes / 1e9);
  EXPECT_EQ(find(result.families, "unary", "cpu").count, 3u * 3);    // tanh
  EXPECT_EQ(find(result.families, "unary", "async").count, 3u * 2);  // silu
  EXPECT_GT(find(result.families, "copy", "cpu").count, 0u);
  EXPECT_GT(find(result.nodes, "w/linear", "async").wait, 0);
}

TEST(Bounds, OfTheCpuArePlausible) {
  const DeviceBounds bounds = measure_bounds(cpu_device());
  EXPECT_GT(bounds.bytes_per_second, 1e7);
  EXPECT_LT(bounds.bytes_per_second, 1e14);
  EXPECT_GT(bounds.operations_per_second, 1e7);
  EXPECT_LT(bounds.operations_per_second, 1e16);
}

}  // namespace
}  // namespace heddle::test
