// heddle chat from a pipe, and its session files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include "cli/chat_file.h"
#include "cli/process.h"
#include "llm/endless_model.h"
#include "support/file_contents.h"

namespace heddle::test {
namespace {

namespace fs = std::filesystem;
using cli::SavedChat;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// Greedy replies of a few tokens, which have one line each, unless `more` says otherwise.
std::vector<std::string> chat_arguments(const std::vector<std::string>& more) {
  std::vector<std::string> all{heddle_path(), "chat"};
  for (const auto& [option, value] : {std::pair("--temp", "0"), {"-n", "6"}}) {
    if (std::ranges::find(more, option) == more.end()) all.insert(all.end(), {option, value});
  }
  all.insert(all.end(), more.begin(), more.end());
  return all;
}
Finished chat(const std::string& input, const std::vector<std::string>& more = {}) {
  return Process(chat_arguments(more)).finish(input);
}

class ChatPipe : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("heddle-pipe-" + std::to_string(getpid()));
    fs::create_directories(folder_);
    session_ = folder_ / "session.json";
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
  std::string session_;
};

TEST_F(ChatPipe, AReplyForEachLine) {
  const Finished run = chat("A fox?\r\n\nAnd a hen?", {"--session", session_});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(lines_of(run.out).size(), 2u) << run.out;
  EXPECT_THAT(run.out, AllOf(StartsWith("Once upon"), EndsWith("\n"), Not(HasSubstr("> "))));
  EXPECT_THAT(run.err, AllOf(Not(HasSubstr("\033")), Not(HasSubstr("Ctrl-D"))));
  EXPECT_EQ(cli::read_chat(session_).turns[0].user, "A fox?");
  const Finished nothing = chat("");
  EXPECT_EQ(nothing.exit_code, 0);
  EXPECT_THAT(nothing.out, IsEmpty());
}

TEST_F(ChatPipe, RepliesToTheEnd) {
  const Finished run = Process({heddle_path(), "chat", "--temp", "0"}).finish("A fox?\n");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out, AllOf(StartsWith("Once upon a time"), EndsWith("\n")));
  EXPECT_GT(run.out.size(), 300u);
  EXPECT_THAT(run.err, IsEmpty());
}

TEST_F(ChatPipe, CommandsAndBlocks) {
  const Finished run = chat(
      "/system You tell fables.\nA fox?\n\"\"\"\n/clear\nis a word\n\"\"\"\nand\\\nso on\n"
      "/stats\n/exit\nnever read\n",
      {"--session", session_});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(lines_of(run.out).size(), 3u);
  EXPECT_THAT(run.err,
              AllOf(HasSubstr("turns: 3, of which 0 left the context"), HasSubstr("of 512 tokens"),
                    HasSubstr("last reply: prompt "), HasSubstr("all replies: prompt "),
                    HasSubstr("generated 18 tokens"), HasSubstr("KV 512 KiB")));
  const SavedChat saved = cli::read_chat(session_);
  EXPECT_EQ(saved.system, "You tell fables.");
  ASSERT_EQ(saved.turns.size(), 3u);
  EXPECT_EQ(saved.turns[1].user, "/clear\nis a word");
  EXPECT_EQ(saved.turns[2].user, "and\nso on");
}

TEST_F(ChatPipe, ClearRegenerateSaveAndLoad) {
  const std::string file = folder_ / "saved.json";
  const Finished run = chat("A fox?\n/save " + file + "\n/clear\nA hen?\n/regen\n/load " + file +
                                "\nAnd?\n/save " + file + "\n",
                            {"--session", session_});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const std::vector<std::string> replies = lines_of(run.out);
  ASSERT_EQ(replies.size(), 4u);
  EXPECT_EQ(replies[1], replies[2]);
  const SavedChat saved = cli::read_chat(file);
  EXPECT_EQ(saved.turns,
            (std::vector<llm::ChatTurn>{{"A fox?", replies[0]}, {"And?", replies[3]}}));
  EXPECT_EQ(cli::read_chat(session_).turns, saved.turns);
  // At temperatures above 0 another reply is another one.
  const Finished warm = chat("A fox?\n/regen\n/regen\n", {"--temp", "1.5", "--seed", "5"});
  const std::vector<std::string> others = lines_of(warm.out);
  ASSERT_EQ(others.size(), 3u);
  EXPECT_FALSE(others[0] == others[1] && others[1] == others[2]);
}

TEST_F(ChatPipe, SaveLeavesOtherFilesAlone) {
  const std::string file = folder_ / "notes.txt";
  std::ofstream(file) << "my notes";
  const Finished run = chat("A fox?\n/save " + file + "\n");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, AllOf(HasSubstr(file), HasSubstr("choose another name")));
  EXPECT_EQ(contents(file), "my notes");
}

TEST_F(ChatPipe, TheFirstFailureEndsIt) {
  const auto fails = [&](const std::string& input, const std::string& why,
                         const std::vector<std::string>& more = {}) {
    const Finished run = chat(input, more);
    EXPECT_EQ(run.exit_code, 1) << input;
    EXPECT_THAT(run.err, AllOf(HasSubstr("heddle: "), HasSubstr(why))) << input;
    return run.out;
  };
  EXPECT_EQ(lines_of(fails("A fox?\n/nonsense\nA hen?\n", "no command '/nonsense'")).size(), 1u);
  fails("/regen\n", "no message to reply to");
  fails("/load\n", "/load wants a FILE");
  fails("/exit now\n", "/exit takes nothing after it");
  fails("/load /no/such/file\n", "/no/such/file: No such file");
  fails("\"\"\"\nA fox?\n", "in the midst of a block");
  fails("A fox?\\\n", "in the midst of a line continued");
  std::string words;
  for (int i = 0; i < 80; ++i) words += "fox ";
  fails(words + "\n", "the message is too long", {"-c", "64"});
}

TEST_F(ChatPipe, CommandLinesThatCannotBe) {
  const auto refused = [&](int code, const std::vector<std::string>& more, const std::string& why) {
    const Finished run = chat("A fox?\n", more);
    EXPECT_EQ(run.exit_code, code) << why;
    EXPECT_THAT(run.out, IsEmpty());
    EXPECT_THAT(run.err, AllOf(HasSubstr("heddle: "), HasSubstr(why)));
  };
  const std::string form = folder_ / "form.jinja";
  std::ofstream(form) << "{{ messages";
  refused(2, {"--system", "a", "--system-file", form}, "--system");
  refused(1, {"--system-file", "/no/such/file"}, "/no/such/file");
  refused(1, {"--chat-template", "/no/such/file"}, "/no/such/file");
  refused(1, {"--chat-template", form}, form + ": chat template, line 1");
  refused(1, {"--session", "/no/such/folder/session"}, "/no/such/folder/session");
  refused(1, {"--session", folder_}, folder_);
  refused(1, {"/no/such/model.gguf"}, "/no/such/model.gguf");
  refused(1, {"--device", "gpu:7"}, "gpu:7");
  refused(1, {"--stop", ""}, "stop text is empty");
  refused(2, {"--seed", "-1"}, "--seed");
  std::ofstream(form) << "{{ raise_exception('no system here') if messages[0].role == 'system' }}";
  refused(1, {"--chat-template", form, "--system", "S"}, "no system here");
  const fs::path bare = model_without_template();
  refused(1, {bare}, "has no chat template: give one with --chat-template FILE");
  refused(1, {bare}, "heddle run");
  std::ofstream(form) << "{{ messages[0].content }}";
  EXPECT_EQ(chat("A fox?\n", {bare, "--chat-template", form}).exit_code, 0);
  fs::remove(bare);
}

TEST_F(ChatPipe, SaysWhenTheContextIsFull) {
  const Finished run = chat("A fox?\nA fox?\nA fox?\nA fox?\n/stats\n", {"-c", "64"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, AllOf(HasSubstr("the context of 64 tokens is full: "),
                             HasSubstr("read again"), Not(HasSubstr("of which 0 left"))));
}

TEST_F(ChatPipe, AnInterruptEndsItAndKeepsWhatWasSaid) {
  const std::string model = endless_model(), form = folder_ / "form.jinja";
  std::ofstream(form) << "{{ messages[-1].content }}";
  Process process({heddle_path(), "chat", model, "--chat-template", form, "--session", session_,
                   "--temp", "5", "-c", "200000"});
  process.write("A fox\n");
  const std::string begun = process.read_some();
  process.signal(SIGINT);
  const Finished run = process.finish("", std::chrono::seconds(100));
  fs::remove(model);
  EXPECT_EQ(run.exit_code, 130) << run.err;
  EXPECT_THAT(run.out, EndsWith("\n"));
  EXPECT_EQ(*cli::read_chat(session_).turns.back().reply + "\n", begun + run.out);
}

TEST_F(ChatPipe, AnInterruptEndsTheWaitForInput) {
  Process process(chat_arguments({}));
  process.write("A fox?\n");
  EXPECT_THAT(process.read_some(), StartsWith("Once"));
  process.signal(SIGINT);
  EXPECT_EQ(process.finish_with_open_input().exit_code, 130);
}

TEST_F(ChatPipe, ASessionGoesOn) {
  chat("A fox?\n", {"--session", session_, "--system", "You tell fables.", "--seed", "9"});
  const std::string once = contents(session_);
  EXPECT_EQ(cli::chat_json(cli::read_chat(session_)), once);
  const Finished run = chat("/stats\nA hen?\n", {"--session", session_});
  EXPECT_THAT(run.err, AllOf(HasSubstr("1 turn from " + session_), HasSubstr("turns: 1")));
  const SavedChat saved = cli::read_chat(session_);
  ASSERT_EQ(saved.turns.size(), 2u);
  EXPECT_EQ(saved.turns[1].user, "A hen?");
  EXPECT_EQ(saved.system, "You tell fables.");
  EXPECT_EQ(saved.settings.sampler.seed, 9u);
  EXPECT_EQ(saved.settings.replies, 2u);
  // Both runs together say what one would.
  const std::string other = folder_ / "other.json";
  chat("A fox?\nA hen?\n", {"--session", other, "--system", "You tell fables.", "--seed", "9"});
  EXPECT_EQ(contents(other), contents(session_));
  // What is given now counts more.
  const Finished told =
      chat("", {"--session", session_, "--system", "You sing.", "--seed", "10", "-n", "3"});
  EXPECT_THAT(told.err, HasSubstr("the system message is another one"));
  chat("And?\n", {"--session", session_, "--seed", "10", "--top-k", "7"});
  EXPECT_EQ(cli::read_chat(session_).settings.sampler.seed, 10u);
  EXPECT_EQ(cli::read_chat(session_).settings.sampler.top_k, 7);
}

TEST_F(ChatPipe, SettingsOfASessionCount) {
  const std::vector<std::string> session{"--session", session_};
  Process({heddle_path(), "chat", "--session", session_, "--temp", "0", "-n", "4"})
      .finish("A fox?\n");
  const Finished run = Process({heddle_path(), "chat", "--session", session_}).finish("A hen?\n");
  EXPECT_THAT(run.err, AllOf(HasSubstr("stopped after 4 tokens"), Not(HasSubstr("seed"))));
}

TEST_F(ChatPipe, AMessageWithoutAReply) {
  SavedChat saved;
  saved.model = "another";
  saved.turns = {{"A fox?", "Once."}, {"A hen?", std::nullopt}};
  cli::write_chat(session_, saved);
  const Finished none = chat("", {"--session", session_});
  EXPECT_THAT(none.err, AllOf(HasSubstr("has no reply yet"),
                              HasSubstr("the model was another, and is fable-1m now")));
  EXPECT_EQ(cli::read_chat(session_).turns, saved.turns);
  chat("/regen\n", {"--session", session_});
  EXPECT_THAT(*cli::read_chat(session_).turns[1].reply, StartsWith("Once upon"));
  cli::write_chat(session_, saved);
  chat("A hare?\n", {"--session", session_});
  ASSERT_EQ(cli::read_chat(session_).turns.size(), 2u);
  EXPECT_EQ(cli::read_chat(session_).turns[1].user, "A hare?");
}

TEST_F(ChatPipe, OtherFilesAreNoSessions) {
  SavedChat sound;
  sound.turns = {{"A fox?", "Once."}};
  const std::string whole = cli::chat_json(sound);
  for (const std::string& text :
       {std::string(), std::string("my notes"), std::string("{}"), std::string("[1]"),
        whole.substr(0, whole.size() / 2), whole.substr(0, whole.size() - 3),
        std::string("{\"format\":\"heddle chat\",\"version\":2}"), std::string(200'000, '[')}) {
    std::ofstream(session_, std::ios::binary) << text;
    const Finished run = chat("A hen?\n", {"--session", session_});
    EXPECT_EQ(run.exit_code, 1) << text.substr(0, 50);
    EXPECT_THAT(run.out, IsEmpty());
    EXPECT_THAT(run.err, AllOf(HasSubstr("heddle: " + session_), HasSubstr("left as it is")));
    EXPECT_EQ(contents(session_), text);
    EXPECT_EQ(files(), 1u);
  }
}

TEST_F(ChatPipe, ASessionThatOthersChangeIsLeftToThem) {
  Process process(chat_arguments({"--session", session_}));
  process.write("A fox?\n");
  while (!process.read_some().ends_with('\n')) {  // then its reply is in the file
  }
  std::ofstream(session_) << "mine now";
  const Finished run = process.finish("A hen?\n");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("another program has changed it"));
  EXPECT_EQ(contents(session_), "mine now");
}

TEST_F(ChatPipe, ASessionBehindALink) {
  const std::string link = folder_ / "link.json";
  fs::create_directories(folder_ / "real");
  std::ofstream(folder_ / "real/session.json") << cli::chat_json({});
  fs::create_symlink(folder_ / "real/session.json", link);
  EXPECT_EQ(chat("A fox?\n", {"--session", link}).exit_code, 0);
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(cli::read_chat(folder_ / "real/session.json").turns.size(), 1u);
}

// Whenever it is killed, the file has the last state that was complete: each message once it has
// been read, each reply once its line has come.
TEST_F(ChatPipe, KilledAHundredTimes) {
  // Long, so that writing it takes a while.
  SavedChat state;
  for (int i = 0; i < 1500; ++i)
    state.turns.push_back({"A message of some length, number " + std::to_string(i), "Once."});
  cli::write_chat(session_, state);
  std::mt19937 random(11);
  int unanswered = 0, in_the_midst = 0;
  for (int cycle = 0; cycle < 100; ++cycle) {
    constexpr int kMessages = 200;
    const auto message = [&](int i) {
      return "C" + std::to_string(cycle) + " M" + std::to_string(i);
    };
    std::string input;
    for (int i = 0; i < kMessages; ++i) input += message(i) + "\n";
    Process process(chat_arguments({"--session", session_, "-n", "3", "-t", "1"}));
    process.write(input);
    std::string out;
    if (random() % 8 != 0) out = process.read_some();
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 30'000));
    process.signal(SIGKILL);
    const Finished run = process.finish();
    ASSERT_EQ(run.exit_code, 128 + SIGKILL) << run.err;
    out += run.out;

    const SavedChat now = cli::read_chat(session_);
    const auto lines = static_cast<std::size_t>(std::count(out.begin(), out.end(), '\n'));
    std::vector<llm::ChatTurn> expected = state.turns;
    if (now.turns != expected) {
      if (!expected.back().reply) expected.pop_back();  // another message took its place
      const std::size_t before = expected.size();
      ASSERT_GT(now.turns.size(), before);
      const std::vector<std::string> replies = lines_of(out);
      for (std::size_t i = 0; before + i < now.turns.size(); ++i) {
        expected.push_back({message(static_cast<int>(i)), now.turns[before + i].reply});
        EXPECT_TRUE(i >= lines || expected.back().reply == replies[i]);
        const bool is_last = before + i + 1 == now.turns.size();
        EXPECT_TRUE(is_last || expected.back().reply);
      }
      const std::size_t answered = expected.size() - before - (expected.back().reply ? 0 : 1);
      EXPECT_GE(answered, lines);
      EXPECT_LE(answered, lines + 1);
    } else {
      EXPECT_EQ(lines, 0u);
    }
    ASSERT_EQ(now.turns, expected) << "cycle " << cycle;
    unanswered += now.turns.back().reply ? 0 : 1;
    in_the_midst = static_cast<int>(files()) - 1;
    state = now;
  }
  EXPECT_GT(unanswered, 0) << "no kill hit a reply";
  EXPECT_GT(in_the_midst, 0) << "no kill hit a writing";
  // What killed writers leave behind goes in time.
  for (const auto& entry : fs::directory_iterator(folder_))
    fs::last_write_time(entry, fs::file_time_type::clock::now() - std::chrono::hours(1));
  chat("", {"--session", session_});
  EXPECT_EQ(files(), 1u);
}

}  // namespace
}  // namespace heddle::test
