// heddle synth and heddle quantize, as a user types them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/process.h"

namespace heddle::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class ModelFileCommands : public testing::Test {
 protected:
  ModelFileCommands() {
    fs::remove_all(directory_);
    fs::create_directories(directory_);
  }
  ~ModelFileCommands() override { fs::remove_all(directory_); }

  std::string at(const std::string& name) const { return (directory_ / name).string(); }
  void make(const std::string& type, const std::string& name) const {
    const Finished run = heddle_program({"synth", "tiny", type, at(name)});
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_THAT(run.out, IsEmpty());
    EXPECT_THAT(run.err, HasSubstr(at(name) + ": "));
  }

  const fs::path directory_ =
      fs::path(testing::TempDir()) /
      (std::string("heddle-cli-") + testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(ModelFileCommands, ASyntheticModelCanBeQuantizedShownAndRun) {
  make("f16", "f16.gguf");
  const Finished quantized = heddle_program({"quantize", at("f16.gguf"), at("q4.gguf"), "Q4_K_M",
                                             "-t", "2", "--output-tensor-type", "q8_0"});
  ASSERT_EQ(quantized.exit_code, 0) << quantized.err;
  EXPECT_THAT(quantized.out, IsEmpty());
  EXPECT_THAT(quantized.err, AllOf(HasSubstr("2.8 MiB -> "),
                                   HasSubstr("tensors: 11 f32, 1 q8_0, 12 q4_K, 2 q6_K")));
  const Finished info = heddle_program({"info", at("q4.gguf")});
  EXPECT_EQ(info.exit_code, 0);
  EXPECT_THAT(info.out, AllOf(HasSubstr("synthetic tiny"), HasSubstr("general.file_type = 15")));
  const Finished run =
      heddle_program({"run", at("q4.gguf"), "-p", "once", "-n", "5", "--temp", "0", "--no-echo"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("generated "));
}

TEST_F(ModelFileCommands, SaysWhatIsLostAndWhatFellBack) {
  make("q8_0", "q8.gguf");
  const Finished again = heddle_program({"quantize", at("q8.gguf"), at("q4.gguf"), "q4_0"});
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_THAT(again.err, HasSubstr("quantised already: 15; they lose precision twice"));
  // The built-in model's rows are of 128 and 352 elements.
  const std::string bundled = std::string(HEDDLE_SOURCE_DIR) + "/models/fable-1m-f16.gguf";
  const Finished small = heddle_program({"quantize", bundled, at("q4k.gguf"), "q4_K_S"});
  EXPECT_EQ(small.exit_code, 0) << small.err;
  EXPECT_THAT(small.err, HasSubstr("(blk.0.attn_q.weight is q5_0, not q4_K)"));
  const Finished run = heddle_program(
      {"run", at("q4k.gguf"), "-p", "Once upon a time", "-n", "8", "--temp", "0", "--no-echo"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
}

TEST_F(ModelFileCommands, FailuresLeaveNothing) {
  make("f16", "a.gguf");
  const Finished same = heddle_program({"quantize", at("a.gguf"), at("a.gguf"), "q8_0"});
  EXPECT_EQ(same.exit_code, 1);
  EXPECT_THAT(same.err, AllOf(StartsWith("heddle: "), HasSubstr("a name of its own")));
  const Finished type = heddle_program({"quantize", at("a.gguf"), at("b.gguf"), "q9"});
  EXPECT_EQ(type.exit_code, 1);
  EXPECT_THAT(type.err, HasSubstr("there is no file type 'q9'; there are f32, "));
  EXPECT_EQ(heddle_program({"quantize", at("none.gguf"), at("b.gguf"), "q8_0"}).exit_code, 1);
  EXPECT_EQ(heddle_program({"synth", "huge", "q8_0", at("b.gguf")}).exit_code, 1);
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_), fs::directory_iterator()), 1);
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"synth", "tiny", "q8_0"},
        {"quantize", "a", "b"},
        {"synth", "tiny", "q8_0", at("b"), "--seed", "-1"},
        {"quantize", "a", "b", "q8_0", "--output-tensor-type", "i32"}}) {
    EXPECT_EQ(heddle_program(arguments).exit_code, 2) << testing::PrintToString(arguments);
  }
}

TEST_F(ModelFileCommands, CtrlCEndsTheWorkAndLeavesNothing) {
  // Far more than can be written before the signal comes, which waits for the first trace of a
  // file.
  Process process({"sh", "-c",
                   "exec \"$0\" \"$@\" & pid=$!; while ! ls " + at("b.gguf") +
                       ".tmp-* >/dev/null 2>&1; do sleep 0.01; done; kill -INT $pid; "
                       "wait $pid",
                   heddle_path(), "synth", "llama-3.2-1b", "q4_K_M", at("b.gguf")});
  const Finished finished = process.finish();
  EXPECT_EQ(finished.exit_code, 130) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("heddle: stopped while tensor '"));
  EXPECT_TRUE(fs::is_empty(directory_));
}

}  // namespace
}  // namespace heddle::test
