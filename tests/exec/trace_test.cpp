// Traces against docs/trace.md.
#include "exec/trace.h"

#include <nlohmann/json.hpp>

#include "observe_support.h"
#include "pipeline.h"
#include "support/trace_checker.h"

namespace heddle::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class Traced : public Pipeline {
 protected:
  static std::string text_of(const Trace& trace) {
    std::string text;
    trace.write([&](std::string_view piece) { text += piece; });
    return text;
  }
};

TEST_F(Traced, IsSoundAndSaysWhatRan) {
  const auto executable = make();
  const auto trace = std::make_shared<Trace>(Trace::Options{});
  const auto seen = std::make_shared<Collector>();
  const ObserveScope scope(trace), other(seen);
  for (int i = 0; i < 3; ++i) run(*executable);
  (void)(Array(1.0f) + Array(2.0f)).item<float>();
  ASSERT_FALSE(scope.error());
  const std::string text = text_of(*trace);
  EXPECT_THAT(faults_of_trace(text), IsEmpty());
  const json file = json::parse(text).at("heddle");
  ASSERT_EQ(file.at("runs").size(), 4u);
  EXPECT_EQ(file.at("plans").size(), 1u);
  EXPECT_TRUE(file.at("runs")[3].at("plan").is_null());
  EXPECT_EQ(file.at("runs")[3].at("records")[0].at("op"), "add");
  const json& run = file.at("runs")[2];
  const auto of_run = std::ranges::count(seen->records, seen->runs[2].id, &Collector::Record::run);
  EXPECT_EQ(run.at("records").size(), static_cast<std::size_t>(of_run));
  const json& nodes = file.at("plans")[0].at("nodes");
  bool found = false;
  for (const json& record : run.at("records")) {
    const json& node = nodes.at(record.at("node").get<std::size_t>());
    if (node.at("name") != "x") continue;
    found = true;
    EXPECT_DOUBLE_EQ(record.at("values")[0].at("min").get<double>(), *std::ranges::min_element(x_));
  }
  EXPECT_TRUE(found) << "inputs are included";
}

TEST_F(Traced, KeepsTheLastRunsOnly) {
  const auto executable = make();
  const auto trace = std::make_shared<Trace>(Trace::Options{.runs = 2});
  const auto tiny = std::make_shared<Trace>(Trace::Options{.runs = 100, .bytes = 1});
  const auto seen = std::make_shared<Collector>();
  const ObserveScope scope(trace), other(tiny), third(seen);
  for (int i = 0; i < 5; ++i) run(*executable);
  EXPECT_EQ(trace->runs(), 2u);
  EXPECT_EQ(trace->dropped_runs(), 3u);
  EXPECT_EQ(tiny->runs(), 1u) << "the latest is kept, whatever its size";
  const std::string text = text_of(*trace);
  EXPECT_THAT(faults_of_trace(text), IsEmpty());
  const json file = json::parse(text).at("heddle");
  EXPECT_EQ(file.at("dropped_runs"), 3);
  EXPECT_EQ(file.at("runs")[0].at("run"), seen->runs[3].id);
  EXPECT_EQ(file.at("runs")[1].at("run"), seen->runs[4].id);
}

TEST_F(Traced, OfNothing) {
  EXPECT_THAT(faults_of_trace(text_of(Trace({}))), IsEmpty());
}

TEST_F(Traced, ARunThatFailedIsThereWithItsError) {
  const auto executable = make();
  expect_run(*executable, 0);
  const auto trace = std::make_shared<Trace>(Trace::Options{});
  const ObserveScope scope(trace);
  device_.fail_call(8);
  EXPECT_THROW(run(*executable), Error);
  const std::string text = text_of(*trace);
  EXPECT_THAT(faults_of_trace(text), IsEmpty());
  const json run = json::parse(text).at("heddle").at("runs")[0];
  EXPECT_THAT(run.at("error").get<std::string>(), HasSubstr("injected fault"));
}

TEST_F(Traced, LinesAreTheSame) {
  const auto executable = make();
  std::vector<std::string> lines;
  const auto live =
      std::make_shared<TraceLines>([&](const std::string& line) { lines.push_back(line); });
  const auto trace = std::make_shared<Trace>(Trace::Options{});
  const ObserveScope scope(live), other(trace);
  for (int i = 0; i < 2; ++i) run(*executable);
  EXPECT_THAT(faults_of_lines(lines), IsEmpty());
  const json file = json::parse(text_of(*trace)).at("heddle");
  std::size_t records = 0, plans = 0, next = 0;
  for (const std::string& line : lines) {
    json object = json::parse(line);
    const std::string type = object.at("type");
    plans += type == "plan";
    if (type == "run") next = 0;
    if (type != "record") continue;
    const json& same = file.at("runs")[records < file["runs"][0]["records"].size() ? 0 : 1];
    EXPECT_EQ(object.at("values"), same.at("records")[next++].at("values"));
    ++records;
  }
  EXPECT_EQ(plans, 1u);
  EXPECT_EQ(records, 2 * file.at("runs")[0].at("records").size());
}

/// The checker itself: what is wrong is noticed.
TEST_F(Traced, TheCheckerNotices) {
  const auto executable = make();
  const auto trace = std::make_shared<Trace>(Trace::Options{});
  {
    const ObserveScope scope(trace);
    run(*executable);
  }
  const json sound = json::parse(text_of(*trace));
  ASSERT_THAT(faults_of_trace(sound.dump()), IsEmpty());
  const std::vector<std::pair<json::json_pointer, json>> breaks{
      {json::json_pointer("/heddle/version"), 2},
      {json::json_pointer("/heddle/runs/0/plan"), 12345},
      {json::json_pointer("/heddle/runs/0/end"), -1.0},
      {json::json_pointer("/heddle/runs/0/records/0/node"), 100000},
      {json::json_pointer("/heddle/runs/0/records/3/wait"), -1.0},
      {json::json_pointer("/heddle/runs/0/records/0/values/0/histogram/3"), 1000},
      {json::json_pointer("/heddle/plans/0/nodes/1/name"), "x"},
      {json::json_pointer("/heddle/plans/0/arenas/0/items/0/first"), 1000},
      {json::json_pointer("/traceEvents/5/dur"), -1.0}};
  for (const auto& [place, value] : breaks) {
    json broken = sound;
    ASSERT_TRUE(broken.contains(place)) << place.to_string();
    broken[place] = value;
    EXPECT_THAT(faults_of_trace(broken.dump()), Not(IsEmpty())) << place.to_string();
  }
}

}  // namespace
}  // namespace heddle::test
