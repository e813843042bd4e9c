#include <nlohmann/json.hpp>

#include "exec_test_support.h"

namespace heddle::test {
namespace {

using testing::HasSubstr;

class PlanDump : public testing::Test {
 protected:
  static Plan plan_on(AsyncDevice& device) {
    GraphBuilder builder;
    const Array x = builder.input("x \"quoted\"", f32({4, 32})) * 2.0f;
    builder.output("y", linear(silu(x) + x, builder.parameter("w", f32({32, 32}))));
    return plan_of(builder.build(), {&device});
  }
  static AsyncOptions options(bool hides_local) {
    AsyncOptions options = accepting("async", {"silu"});
    options.hides_local = hides_local;
    return options;
  }
  AsyncDevice device_{options(true)}, shared_{options(false)};
  const Plan plan_ = plan_on(device_);
};

TEST_F(PlanDump, Text) {
  const std::string text = to_text(plan_);
  EXPECT_THAT(text, HasSubstr("device cpu: arena"));
  EXPECT_THAT(text, HasSubstr("device async: arena"));
  EXPECT_THAT(text,
              HasSubstr("3 splits, 0 feed splits, 1 repacks when loaded, 2 copies of 1024 B"));
  EXPECT_THAT(text, HasSubstr("waits for [1]"));
  EXPECT_THAT(text,
              testing::ContainsRegex("\n  split 0 on cpu: 1 op, [0-9]+ barriers?; copies %[0-9]+ "
                                     "\\(512 B\\) to async\n"));
  EXPECT_THAT(text, testing::ContainsRegex("\n  split 2 on cpu: 2 ops, [0-9]+ barriers?\n"));
  EXPECT_THAT(text, HasSubstr("\n  ops by device: async 1, cpu 3\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("another device was asked for")));
  EXPECT_THAT(text, HasSubstr("output \"y\""));
  // A product of 4 rows with a matrix of 32 by 32: 4 * 32 * 32 multiplications and additions.
  EXPECT_THAT(text, testing::ContainsRegex("linear +1 .* 8192 op"));
}

TEST_F(PlanDump, TextOfWhatIsShared) {
  const std::string text = to_text(plan_on(shared_));
  EXPECT_THAT(text, HasSubstr("3 splits, 0 feed splits, 1 repacks when loaded, 0 copies of 0 B"));
  EXPECT_THAT(text, testing::ContainsRegex("multiply .* -> async's arena\\+"));
  EXPECT_THAT(text, testing::ContainsRegex("silu  arena\\+[0-9]+ -> arena\\+"));
  EXPECT_THAT(text, testing::ContainsRegex("add  async's arena.*, async's arena.* -> arena\\+"));
}

TEST_F(PlanDump, Json) {
  const auto json = nlohmann::json::parse(to_json(plan_));
  EXPECT_EQ(json["splits"].size(), 3u);
  EXPECT_EQ(json["splits"][1]["device"], "async");
  EXPECT_EQ(json["splits"][2]["waits"], nlohmann::json::array({1}));
  EXPECT_EQ(json["load"].size(), 1u);
  EXPECT_EQ(json["figures"]["copies"], 2);
  EXPECT_EQ(json["figures"]["device_ops"], (nlohmann::json{{"async", 1}, {"cpu", 3}}));
  EXPECT_TRUE(json["figures"]["host_ops"].empty());
  EXPECT_EQ(json["splits"][1]["ops"], 1);
  EXPECT_EQ(json["splits"][1]["copies"], 1);
  EXPECT_EQ(json["splits"][1]["copied_bytes"], 512);
  EXPECT_EQ(json["figures"]["families"]["linear"]["operations"], 8192.0);
  EXPECT_EQ(json["arenas"].size(), 2u);
  EXPECT_EQ(json["outputs"][0]["name"], "y");
}

TEST_F(PlanDump, DotNamesEveryNodeOnce) {
  const std::string dot = to_dot(plan_);
  EXPECT_THAT(dot, HasSubstr("cluster_split_1"));
  EXPECT_THAT(dot, HasSubstr("x \\\"quoted\\\""));
  EXPECT_THAT(dot, HasSubstr("label=copy"));
  EXPECT_EQ(std::count(dot.begin(), dot.end(), '{'), std::count(dot.begin(), dot.end(), '}'));
}

}  // namespace
}  // namespace heddle::test
