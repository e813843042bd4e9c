// What the program shows of its runs: traces, profiles, dumps, and comparisons of those.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/process.h"
#include "io/npy.h"
#include "io/value_dump.h"
#include "support/file_contents.h"
#include "support/trace_checker.h"

namespace heddle::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// Of the program, which need not have been built as its tests were.
std::string why_without_vulkan() {
  const json why = json::parse(heddle_program({"devices", "--json"}).out)["why_no_vulkan"];
  return why.is_string() ? why.get<std::string>() : "";
}

class Observing : public testing::Test {
 protected:
  Observing()
      : directory_(fs::path(testing::TempDir()) / ("observing-" + std::to_string(getpid()))) {
    fs::create_directories(directory_);
  }
  ~Observing() override { fs::remove_all(directory_); }
  std::string path(const std::string& name) const { return (directory_ / name).string(); }

  /// The whole program's words, the files in this test's directory.
  static Finished told(std::vector<std::string> more, const std::string& tokens = "6") {
    std::vector<std::string> all{"run", "-p", "Once upon a time", "-n", tokens, "--temp", "0",
                                 "-c",  "64"};
    all.insert(all.end(), more.begin(), more.end());
    return heddle_program(all);
  }

  const fs::path directory_;
};

TEST_F(Observing, ATraceIsWhatTheDocumentSaysAndTheTextTheSame) {
  const Finished plain = told({}), traced = told({"--trace", path("t.json"), "--trace-steps", "4"});
  ASSERT_EQ(traced.exit_code, 0) << traced.err;
  EXPECT_EQ(traced.out, plain.out);
  const std::string text = contents(path("t.json"));
  EXPECT_THAT(faults_of_trace(text), IsEmpty());
  const json trace = json::parse(text).at("heddle");
  EXPECT_EQ(trace.at("runs").size(), 4u);
  EXPECT_GE(trace.at("dropped_runs"), 1u);
  EXPECT_THAT(traced.err, HasSubstr("t.json: steps 4"));
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(directory_)) ++files;
  EXPECT_EQ(files, 1u) << "no temporary file is left";
}

TEST_F(Observing, LazyRunsAreTracedToo) {
  const Finished traced = told({"--lazy", "--trace", path("t.json")}, "2");
  ASSERT_EQ(traced.exit_code, 0) << traced.err;
  const std::string text = contents(path("t.json"));
  EXPECT_THAT(faults_of_trace(text), IsEmpty());
  const json trace = json::parse(text).at("heddle");
  EXPECT_TRUE(trace.at("plans").empty());
  EXPECT_GE(trace.at("runs").size(), 2u);
  EXPECT_GT(trace.at("runs")[0].at("records").size(), 40u);
}

TEST_F(Observing, ATraceThatCannotBeWrittenIsAnError) {
  const Finished failed = told({"--trace", path("absent/t.json")}, "1");
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_THAT(failed.err, HasSubstr("absent/t.json"));
}

/// The rows between a table's head and its "all", without those two: milliseconds of each.
std::vector<double> milliseconds(const std::string& text, const std::string& head, double* all) {
  std::istringstream lines(text.substr(text.find("\n" + head) + 1));
  std::string line;
  std::getline(lines, line);
  const std::size_t column = line.find(" ms");  // right-aligned
  EXPECT_NE(column, std::string::npos) << text;
  std::vector<double> rows;
  while (std::getline(lines, line)) {
    const std::size_t begin = line.find_last_of(' ', column + 2);
    const double value = std::stod(line.substr(begin));
    if (line.starts_with("all")) {
      *all = value;
      return rows;
    }
    rows.push_back(value);
  }
  ADD_FAILURE() << "no row for all in\n" << text;
  return rows;
}

TEST_F(Observing, AProfilesRowsAddUp) {
  const Finished run = told({"--profile", "--profile-bandwidth", "10", "--profile-peak", "50"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("bounds of cpu: 10 GB/s, 50 Gop/s"));
  for (const char* head : {"op family", "node"}) {
    double all = 0, sum = 0;
    const std::vector<double> rows = milliseconds(run.err, head, &all);
    ASSERT_GT(rows.size(), 8u);
    for (const double row : rows) sum += row;
    EXPECT_NEAR(sum, all, 0.0006 * static_cast<double>(rows.size() + 1)) << head;
  }
  EXPECT_THAT(run.err, AllOf(HasSubstr("linear "), HasSubstr("token_embd.weight/linear"),
                             HasSubstr("between nodes"), HasSubstr("outside steps")));
}

TEST_F(Observing, BenchAndLogitsTakeTheSameOptions) {
  const Finished bench =
      heddle_program({"bench", "-p", "4", "-n", "2", "-r", "2", "--profile", "--profile-bandwidth",
                      "10", "--profile-peak", "50", "--trace", path("b.json")});
  ASSERT_EQ(bench.exit_code, 0) << bench.err;
  EXPECT_THAT(bench.err, HasSubstr("6 steps, node by node"));  // without warming up
  EXPECT_THAT(faults_of_trace(contents(path("b.json"))), IsEmpty());
  const Finished plain = heddle_program({"logits", "--tokens", "1,2,3", "-o", path("plain")});
  const Finished logits = heddle_program(
      {"logits", "--tokens", "1,2,3", "-o", path("watched"), "--dump", path("dump")});
  ASSERT_EQ(logits.exit_code, 0) << logits.err;
  EXPECT_EQ(contents(path("plain")), contents(path("watched")));
  const std::vector<DumpedValue> values = read_dump(path("dump"));
  const auto last = std::ranges::find(values, "token_embd.weight/linear", &DumpedValue::name);
  ASSERT_NE(last, values.end());
  const npy::Tensor tensor = npy::read(directory_ / "dump" / last->file);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()),
            contents(path("plain")))
      << "the logits are dumped as they are written";
}

TEST_F(Observing, BadDumpsAreRefusedBeforeAnythingRuns) {
  std::ofstream(path("file")) << "here";
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{"--dump", directory_.string()},
        {"--dump", path("file")},
        {"--dump", path("d"), "--dump-filter", "(("}}) {
    const Finished refused = told(options, "1");
    EXPECT_EQ(refused.exit_code, 1) << options[1];
    EXPECT_THAT(refused.err, HasSubstr("heddle: "));
  }
  EXPECT_EQ(told({"--trace-steps", "0"}, "1").exit_code, 2);
}

TEST_F(Observing, AChatIsTracedFromItsFirstTurnToItsLast) {
  std::ofstream(path("template.jinja"))
      << "{% for message in messages %}{{ message.content }} {% endfor %}";
  const Finished chat = heddle_program({"chat", "--chat-template", path("template.jinja"), "-c",
                                        "64", "-n", "3", "--temp", "0", "--trace", path("c.json")},
                                       "Once upon a time\nand then\n/exit\n");
  ASSERT_EQ(chat.exit_code, 0) << chat.err;
  const std::string text = contents(path("c.json"));
  EXPECT_THAT(faults_of_trace(text), IsEmpty());
  EXPECT_GE(json::parse(text).at("heddle").at("runs").size(), 6u);
}

TEST_F(Observing, AServersTraceIsWrittenWhenItEnds) {
  Process server({heddle_path(), "serve", "--port", "0", "--trace", path("s.json")});
  EXPECT_THAT(server.read_some(), HasSubstr("listening on"));
  server.signal(SIGTERM);
  const Finished ended = server.finish();
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(faults_of_trace(contents(path("s.json"))), IsEmpty());
}

// ---- compare

class Comparing : public Observing {
 protected:
  void dump(const std::string& name, const std::string& tokens = "1,2,3") const {
    const Finished done = heddle_program({"logits", "--tokens", tokens, "-o", path("logits"),
                                          "--dump", path(name), "--dump-filter", "blk.0|tokens"});
    ASSERT_EQ(done.exit_code, 0) << done.err;
  }
  /// Adds to one element of a dumped value.
  void change(const std::string& dump, const std::string& value, std::size_t at, float by) const {
    const std::vector<DumpedValue> values = read_dump(path(dump));
    const auto found = std::ranges::find(values, value, &DumpedValue::name);
    ASSERT_NE(found, values.end()) << value;
    npy::Tensor tensor = npy::read(directory_ / dump / found->file);
    float element;
    std::memcpy(&element, tensor.bytes.data() + 4 * at, 4);
    element += by;
    std::memcpy(tensor.bytes.data() + 4 * at, &element, 4);
    npy::write(directory_ / dump / found->file, tensor.spec, tensor.bytes);
  }
  Finished compare(std::vector<std::string> more = {}) const {
    std::vector<std::string> all{"compare", path("a"), path("b")};
    all.insert(all.end(), more.begin(), more.end());
    return heddle_program(all);
  }
};

TEST_F(Comparing, WhatIsTheSameIsAndTheExitCodeSaysSo) {
  dump("a");
  dump("b");
  const Finished same = compare({"--atol", "0", "--rtol", "0"});
  EXPECT_EQ(same.exit_code, 0) << same.out << same.err;
  EXPECT_THAT(same.out, HasSubstr(" values compared, 0 differ"));
}

TEST_F(Comparing, WhereTheyPartFirstIsNamedWithThePlace) {
  dump("a");
  dump("b");
  change("b", "blk.0.ffn_down.weight/linear", 5, 100);
  change("b", "blk.0.attn_output.weight/linear", 130, 0.5f);
  change("b", "blk.0.attn_norm.weight/rms_norm", 3, 1e-7f);
  const Finished parted = compare();
  EXPECT_EQ(parted.exit_code, 3) << parted.err;
  EXPECT_THAT(parted.out, HasSubstr("2 differ by more than 0.001 + 0.001 * |B|"));
  EXPECT_THAT(parted.out,
              HasSubstr("they part first at\n  step 0, blk.0.attn_output.weight/linear: "
                        "largest difference 0.5 absolute"));
  EXPECT_THAT(parted.out, HasSubstr("at [1, 2] of [3, 128]"));
  EXPECT_THAT(parted.out, HasSubstr("blk.0.ffn_down.weight/linear: largest difference 100 "));
  EXPECT_EQ(compare({"--atol", "1000"}).exit_code, 0);
  EXPECT_EQ(compare({"--atol", "0", "--rtol", "0"}).exit_code, 3);
}

TEST_F(Comparing, NansAndInfinitiesDiffer) {
  dump("a");
  dump("b");
  change("b", "blk.0.ffn_down.weight/linear", 5, std::nanf(""));
  const Finished nan = compare({"--atol", "1e30"});
  EXPECT_EQ(nan.exit_code, 3);
  EXPECT_THAT(nan.out, AllOf(HasSubstr("0 NaN in A, 1 in B"), HasSubstr("nan in B")));
  change("a", "blk.0.ffn_down.weight/linear", 5, std::nanf(""));
  EXPECT_EQ(compare().exit_code, 0) << "NaNs agree with NaNs";
  change("b", "blk.0.attn_output.weight/linear", 0, INFINITY);
  EXPECT_EQ(compare({"--rtol", "1"}).exit_code, 3);
  change("a", "blk.0.attn_output.weight/linear", 0, INFINITY);
  EXPECT_EQ(compare().exit_code, 0);
}

TEST_F(Comparing, WhatOnlyOneHasIsSaidAndShapesDiffer) {
  dump("a");
  dump("b", "1,2");
  const Finished shapes = compare();
  EXPECT_EQ(shapes.exit_code, 3);
  EXPECT_THAT(shapes.out, HasSubstr("tokens: [3] in A, [2] in B"));
  json index = json::parse(contents(path("b/index.json")));
  index["values"].erase(1);
  std::ofstream(path("b/index.json")) << index;
  EXPECT_THAT(compare().out, HasSubstr("only in A: 1 values\n  step 0, n_tokens\n"));
  index["values"] = json::array();
  std::ofstream(path("b/index.json")) << index;
  const Finished nothing = compare();
  EXPECT_EQ(nothing.exit_code, 1);
  EXPECT_THAT(nothing.err, HasSubstr("no value in common"));
}

TEST_F(Comparing, BadArguments) {
  EXPECT_EQ(heddle_program({"compare"}).exit_code, 2);
  EXPECT_EQ(heddle_program({"compare", "--device", "cpu"}).exit_code, 2);
  EXPECT_EQ(heddle_program({"compare", "a", "b", "--device", "cpu"}).exit_code, 2);
  EXPECT_EQ(heddle_program({"compare", path("absent"), path("absent")}).exit_code, 1);
  EXPECT_EQ(
      heddle_program({"compare", "--device", "cpu", "--device", "cpu", "--filter", "(("}).exit_code,
      1);
}

TEST_F(Comparing, ADeviceWithItself) {
  const Finished same = heddle_program({"compare", "--device", "cpu", "--device", "cpu", "--atol",
                                        "0", "--rtol", "0", "--tokens", "5,6,7"});
  EXPECT_EQ(same.exit_code, 0) << same.out << same.err;
  EXPECT_THAT(same.out, HasSubstr("A: cpu, B: cpu\n"));
}

TEST_F(Comparing, TheCpuWithVulkan) {
  if (const std::string why = why_without_vulkan(); !why.empty()) {
    GTEST_SKIP() << "no Vulkan device: " << why;
  }
  const Finished near = heddle_program({"compare", "--device", "cpu,vulkan"});
  EXPECT_EQ(near.exit_code, 0) << near.out << near.err;
  EXPECT_THAT(near.out, Not(HasSubstr("only in"))) << "values have the same names on both";
  const Finished exact = heddle_program(
      {"compare", "--device", "cpu", "--device", "vulkan", "--atol", "0", "--rtol", "0"});
  EXPECT_EQ(exact.exit_code, 3);
  EXPECT_THAT(exact.out, HasSubstr("they part first at"));
}

TEST_F(Observing, OnVulkanWithTheCpu) {
  if (const std::string why = why_without_vulkan(); !why.empty()) {
    GTEST_SKIP() << "no Vulkan device: " << why;
  }
  const Finished run = told({"--device", "vulkan", "--gpu-layers", "2", "--trace", path("v.json"),
                             "--profile", "--profile-bandwidth", "10", "--profile-peak", "50"},
                            "3");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, told({"--device", "vulkan", "--gpu-layers", "2"}, "3").out);
  const std::string text = contents(path("v.json"));
  EXPECT_THAT(faults_of_trace(text), IsEmpty());
  double waited = 0;
  const json trace = json::parse(text).at("heddle");
  const json& nodes = trace.at("plans")[0].at("nodes");
  for (const json& record : trace.at("runs")[0].at("records")) {
    if (nodes.at(record.at("node").get<std::size_t>()).at("device") == "vulkan:0") {
      waited += record.at("wait").get<double>();
      EXPECT_GT(record.at("encode"), 0.0);
    }
  }
  EXPECT_GT(waited, 0);
  EXPECT_THAT(run.err, HasSubstr("vulkan:0"));
}

}  // namespace
}  // namespace heddle::test
