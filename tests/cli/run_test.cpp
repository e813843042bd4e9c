// heddle run, as people and scripts use it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/process.h"
#include "llm/endless_model.h"
#include "support/file_contents.h"
#include "support/shared_files.h"

namespace heddle::test {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr const char* kPrompt = "Once upon a time";

std::string story() {
  return contents(HEDDLE_SOURCE_DIR "/models/fable-1m.greedy.txt");
}

TEST(Run, TellsTheBundledStoryToTheLastCharacter) {
  const Finished run = heddle_program({"run", "-p", kPrompt, "--temp", "0"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.out, story());
}

TEST(Run, TakesThePromptFromStandardInput) {
  const std::string echoed = std::string(kPrompt) + "\n";  // as the shell's echo writes it
  EXPECT_EQ(heddle_program({"run", "--temp", "0"}, kPrompt).out, story());
  EXPECT_EQ(heddle_program({"run", "--temp", "0"}, echoed).out, story());
  EXPECT_EQ(heddle_program({"run", "-p", "-", "--temp", "0"}, echoed).out, story());
}

TEST(Run, ThreadsChunksAndLazinessChangeNothing) {
  for (const std::vector<std::string>& more : {std::vector<std::string>{"-t", "1", "--chunk", "1"},
                                               {"-t", "2", "--chunk", "7"},
                                               {"--lazy"},
                                               {"--kv-type", "f32"},
                                               {"-c", "512"}}) {
    std::vector<std::string> arguments{"run", "-p", kPrompt, "--temp", "0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    EXPECT_EQ(heddle_program(arguments).out, story()) << more.front();
  }
}

TEST(Run, FiguresGoToStandardError) {
  const Finished run = heddle_program({"run", "-p", kPrompt, "--temp", "0"});
  EXPECT_THAT(run.err, AllOf(HasSubstr("prompt "), HasSubstr("tokens/s"), HasSubstr("weights"),
                             HasSubstr("KV"), HasSubstr("arenas"), HasSubstr("peak")));
  EXPECT_THAT(run.err, Not(HasSubstr("\033")));  // nothing for terminals where there is none
  EXPECT_THAT(run.err, Not(HasSubstr("seed")));
}

TEST(Run, ShowsProgressOnATerminal) {
  if (Process({"sh", "-c", "command -v script"}).finish().exit_code != 0)
    GTEST_SKIP() << "skipped: there is no script(1) to make a terminal with";
  const std::string command = "'" + heddle_path() + "' run -p Once -n 3 --temp 0 --chunk 1";
  const Finished run = Process({"script", "-qec", command, "/dev/null"}).finish();
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out, AllOf(HasSubstr("opening the model\r\033[K"), HasSubstr("prompt: 0 of "),
                             HasSubstr("tokens\r\033[KOnce")));
}

TEST(Run, NoEchoLeavesThePromptOut) {
  const Finished run = heddle_program({"run", "-p", kPrompt, "--temp", "0", "--no-echo"});
  EXPECT_EQ(run.out, story().substr(std::string(kPrompt).size()));
}

TEST(Run, LimitsTheNumberOfTokens) {
  const Finished run = heddle_program({"run", "-p", kPrompt, "--temp", "0", "-n", "3"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.err, HasSubstr("generated 3 tokens"));
  EXPECT_THAT(run.out, AllOf(StartsWith(kPrompt), EndsWith("\n")));
  EXPECT_THAT(story(), StartsWith(run.out.substr(0, run.out.size() - 1)));
  EXPECT_EQ(heddle_program({"run", "-p", kPrompt, "-n", "0"}).out, std::string(kPrompt) + "\n");
}

TEST(Run, StopsAtTexts) {
  const std::string text = story();
  // Of several tokens: it begins within a word and ends within another.
  const std::string stop = text.substr(text.find(". ") - 2, 9);
  const Finished run =
      heddle_program({"run", "-p", kPrompt, "--temp", "0", "--stop", "zebra", "--stop", stop});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.out, text.substr(0, text.find(stop)) + "\n");
}

TEST(Run, SeedsAreReproducibleAndSaid) {
  const std::vector<std::string> arguments{"run", "-p", kPrompt, "--temp", "2", "-n", "40"};
  const auto with_seed = [&](const std::string& seed) {
    std::vector<std::string> all = arguments;
    all.insert(all.end(), {"--seed", seed});
    return heddle_program(all);
  };
  EXPECT_EQ(with_seed("7").out, with_seed("7").out);
  EXPECT_NE(with_seed("7").out, with_seed("8").out);
  const Finished random = heddle_program(arguments);
  ASSERT_THAT(random.err, StartsWith("seed "));
  EXPECT_EQ(with_seed(random.err.substr(5, random.err.find('\n') - 5)).out, random.out);
}

TEST(Run, SaysWhenTheContextIsFull) {
  const Finished run = heddle_program({"run", "-p", kPrompt, "--temp", "0", "-c", "32"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.err, HasSubstr("the context of 32 tokens is full (-c)"));
}

TEST(Run, RefusesWhatCannotBe) {
  const auto refused = [](const std::vector<std::string>& more, const std::string& why) {
    std::vector<std::string> arguments{"run", "-p", kPrompt};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished run = heddle_program(arguments);
    EXPECT_EQ(run.exit_code, 1) << why;
    EXPECT_THAT(run.out, IsEmpty());
    EXPECT_THAT(run.err, AllOf(HasSubstr("heddle: "), HasSubstr(why)));
  };
  refused({"-c", "1000000"}, "-c 1000000");
  refused({"-c", "3"}, "-c");
  refused({"--stop", ""}, "stop text is empty");
  refused({"/no/such/model.gguf"}, "/no/such/model.gguf");
  refused({HEDDLE_SOURCE_DIR}, HEDDLE_SOURCE_DIR);
  refused({HEDDLE_SOURCE_DIR "/LICENSE"}, "LICENSE");
}

TEST(Run, RefusesABrokenModel) {
  const std::string whole = contents(HEDDLE_SOURCE_DIR "/models/fable-1m-f16.gguf");
  const std::string path = testing::TempDir() + "heddle-broken.gguf";
  for (const std::size_t length : {std::size_t{10}, whole.size() / 2, whole.size() - 1}) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, length);
    const Finished run = heddle_program({"run", path, "-p", kPrompt});
    EXPECT_EQ(run.exit_code, 1) << length;
    EXPECT_THAT(run.out, IsEmpty());
    EXPECT_THAT(run.err, AllOf(HasSubstr("heddle: "), HasSubstr(path)));
  }
  std::filesystem::remove(path);
}

TEST(Run, OpensAModelFile) {
  const Finished run = heddle_program(
      {"run", HEDDLE_SOURCE_DIR "/models/fable-1m-f16.gguf", "-p", kPrompt, "--temp", "0"});
  EXPECT_EQ(run.out, story());
}

// The text has one token more than the 256 that its description names.
TEST(Run, TellsTheReferenceStoryOfAnotherModel) {
  HEDDLE_SHARED_FILE(model, "models/stories260K.gguf");
  const Finished run = heddle_program({"run", model, "-p", "", "--temp", "0", "-n", "257"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, contents(shared_dir() / "models/stories260K.greedy.txt"));
}

class Endless : public testing::Test {
 protected:
  void SetUp() override { path_ = endless_model(); }
  void TearDown() override { std::filesystem::remove(path_); }
  std::vector<std::string> command() const {
    return {heddle_path(), "run", path_, "-p", "A fox", "--temp", "5", "-n", "-1", "-c", "200000"};
  }
  std::string path_;
};

TEST_F(Endless, AnInterruptEndsItCleanly) {
  Process process(command());
  const std::string begun = process.read_some();
  EXPECT_THAT(begun, StartsWith("A"));
  process.signal(SIGINT);
  const Finished run = process.finish("", std::chrono::seconds(60));
  EXPECT_EQ(run.exit_code, 130) << run.err;
  EXPECT_THAT(begun + run.out, EndsWith("\n"));
  EXPECT_THAT(run.err, HasSubstr("tokens/s"));
}

TEST_F(Endless, AReaderThatGoesEndsItQuietly) {
  Process process(command());
  process.read_some();
  process.close_output();
  const Finished run = process.finish("", std::chrono::seconds(60));
  EXPECT_EQ(run.exit_code, 128 + SIGPIPE);
  EXPECT_THAT(run.err, Not(HasSubstr("heddle:")));
}

TEST(Run, HoldsTheTextToAGrammarOrSchema) {
  const auto folder = std::filesystem::temp_directory_path();
  const std::string schema = (folder / "heddle-run-schema.json").string(),
                    grammar = (folder / "heddle-run.gbnf").string();
  std::ofstream(schema) << R"({"type": "object", "properties": {"animal": {"enum": ["fox", "crow"]},
    "legs": {"type": "integer", "minimum": 2, "maximum": 4}}, "required": ["animal", "legs"]})";
  std::ofstream(grammar) << "root ::= \" yes\" | \" no\"";
  const std::vector<std::string> run{"run", "-p", kPrompt, "--temp", "0", "--no-echo"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), run.begin(), run.end());
    return heddle_program(more);
  };
  EXPECT_THAT(with({"--json-schema", schema}).out,
              testing::MatchesRegex("[{]\"animal\": ?\"(fox|crow)\", ?\"legs\": ?[234][}]\n"));
  EXPECT_THAT(with({"--grammar-file", grammar}).out, testing::MatchesRegex(" (yes|no)\n"));
  EXPECT_EQ(with({"--grammar-file", grammar, "--json-schema", schema}).exit_code, 2);
  const Finished wrong = with({"--grammar-file", schema});
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_THAT(wrong.err, HasSubstr("grammar, line 1, column 1: expected the name of a rule"));
  std::filesystem::remove(schema);
  std::filesystem::remove(grammar);
}

TEST(Run, AFullDiskIsAnError) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "skipped: no /dev/full here";
  const std::string command = "'" + heddle_path() + "' run -p Once -n 5 >/dev/full";
  const Finished run = Process({"sh", "-c", command}).finish();
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("heddle: standard output: "));
}

}  // namespace
}  // namespace heddle::test
