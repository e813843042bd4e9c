// heddle chat at a terminal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/process.h"
#include "cli/terminal_process.h"
#include "llm/endless_model.h"
#include "support/file_contents.h"

namespace heddle::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ChatTerminal : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("heddle-chat-" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  TerminalProcess::Environment environment(TerminalProcess::Environment more = {}) const {
    TerminalProcess::Environment all{{"XDG_STATE_HOME", folder_},
                                     {"HOME", folder_},
                                     {"TERM", "xterm"},
                                     {"NO_COLOR", ""},
                                     {"LC_ALL", "C"}};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::unique_ptr<TerminalProcess> chat(const std::vector<std::string>& more = {},
                                        const TerminalProcess::Environment& variables = {}) const {
    std::vector<std::string> arguments{heddle_path(), "chat", "--temp", "0", "-n", "8"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return std::make_unique<TerminalProcess>(arguments, environment(variables));
  }
  /// With a model that says no end, of any bytes.
  std::unique_ptr<TerminalProcess> endless_chat(const std::vector<std::string>& more) {
    const std::string model = endless_model();
    const std::string form = folder_ / "form.jinja";
    std::ofstream(form) << "{{ messages[-1].content }}";
    fs::rename(model, folder_ / "endless.gguf");
    std::vector<std::string> arguments{heddle_path(), "chat", folder_ / "endless.gguf",
                                       "--chat-template", form};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return std::make_unique<TerminalProcess>(arguments, environment({{"NO_COLOR", "1"}}));
  }
  static std::string wait_for_prompt(TerminalProcess& chat) {
    std::string text = chat.wait_for("> ");
    chat.wait_for_editing();
    return text;
  }
  static void leave(TerminalProcess& chat, const std::string& keys = "/exit\r") {
    chat.type(keys);
    int exit_code = -1;
    const std::string rest = chat.finish(exit_code);
    EXPECT_EQ(exit_code, 0) << rest;
    EXPECT_TRUE(chat.is_as_shells_leave_it());
  }

  fs::path folder_;
};

TEST_F(ChatTerminal, GreetsAndAnswersInColour) {
  const auto c = chat();
  const std::string greeting = wait_for_prompt(*c);
  EXPECT_THAT(greeting,
              AllOf(HasSubstr("fable-1m"), HasSubstr("512 tokens"), HasSubstr("/help"),
                    HasSubstr("built-in model"), HasSubstr("\033[2m"), HasSubstr("\033[1;32m")));
  c->type("A fox?\r");
  const std::string reply = c->wait_for("stopped after 8 tokens");
  EXPECT_THAT(without_escapes(reply), HasSubstr("tokensOnce upon a time,"));
  wait_for_prompt(*c);
  leave(*c);
}

TEST_F(ChatTerminal, ColourIsNotForEveryone) {
  for (const TerminalProcess::Environment& variables :
       {TerminalProcess::Environment{{"NO_COLOR", "1"}}, {{"TERM", "dumb"}}, {{"TERM", ""}}}) {
    const auto c = chat({}, variables);
    c->type("A fox?\r");
    const std::string all = c->wait_for("stopped after 8 tokens");
    EXPECT_THAT(all, AllOf(HasSubstr("Once upon a time"), Not(HasSubstr("\033[2m")),
                           Not(HasSubstr("\033[1;32m"))))
        << variables.front().first;
    c->wait_for("> ");
    leave(*c);
  }
}

TEST_F(ChatTerminal, LinesAreEdited) {
  const auto c = chat();
  wait_for_prompt(*c);
  c->type("no such thing" + ctrl('A') + ctrl('K') + "/system Wüstenfüchse 狐x\b" + kEnter);
  c->wait_for("the system message is set");
  c->type(std::string("/system") + kEnter);
  EXPECT_THAT(c->wait_for("狐\033"), HasSubstr("Wüstenfüchse 狐"));
  wait_for_prompt(*c);  // Ctrl-D before it is the terminal's, and lost
  leave(*c, ctrl('D'));
}

TEST_F(ChatTerminal, CtrlCAtThePromptDropsTheLine) {
  const auto c = chat();
  wait_for_prompt(*c);
  c->type("A fox" + ctrl('C'));
  c->wait_for("^C");
  c->type("/stats\r");
  EXPECT_THAT(c->wait_for("memory: "), HasSubstr("turns: 0"));
  for (const std::string line : {"", "a", ""}) {
    wait_for_prompt(*c);
    c->type(line);
    c->wait_for(line);  // the terminal throws away what has not been read yet
    c->type(ctrl('C'));
    EXPECT_THAT(c->wait_for("^C"), Not(HasSubstr("leaves")));
  }
  wait_for_prompt(*c);
  c->type(ctrl('C'));
  c->wait_for("Ctrl-D or /exit leaves");
  leave(*c);
}

TEST_F(ChatTerminal, InterruptsFromElsewhereDropTheLineToo) {
  const auto c = chat();
  wait_for_prompt(*c);
  c->type("A fox");
  c->wait_for("A fox");
  c->signal(SIGINT);
  c->wait_for("^C");
  c->type("/stats\r");
  EXPECT_THAT(c->wait_for("memory: "), HasSubstr("turns: 0"));
  leave(*c);
}

TEST_F(ChatTerminal, CtrlCStopsTheReplyAndNotTheProgram) {
  const auto c = endless_chat({"--temp", "0", "-c", "100000"});
  for (int turn = 1; turn <= 3; ++turn) {
    wait_for_prompt(*c);
    c->type("A fox and a hen\r");
    for (int i = 0; i < 2; ++i) c->wait_for("reading: ");
    c->wait_for("\033[K");
    c->wait_for(" ");  // the reply's
    c->type(ctrl('C') + (turn == 2 ? ctrl('C') + ctrl('C') : ""));
    c->wait_for("stopped; what was said stays in the conversation");
    c->type("/stats\r");
    EXPECT_THAT(c->wait_for("memory: "), HasSubstr("turns: " + std::to_string(turn)));
  }
  leave(*c);
}

TEST_F(ChatTerminal, SeveralLines) {
  const auto c = chat({"--session", folder_ / "session.json"});
  wait_for_prompt(*c);
  c->type("one\\\r");
  c->wait_for("\\ ");
  c->type("two\r");
  c->wait_for("stopped after");
  wait_for_prompt(*c);
  c->type("\"\"\"\r");
  c->wait_for("\"\"\" ");
  c->type("/three\rfour\r\"\"\"\r");
  c->wait_for("stopped after");
  // What is begun can be dropped, in two ways.
  for (const std::string& key : {ctrl('C'), ctrl('D')}) {
    wait_for_prompt(*c);
    c->type("\"\"\"five\rsix\r" + key);
  }
  c->wait_for("what was begun is dropped");
  wait_for_prompt(*c);
  c->type("seven\r");
  c->wait_for("stopped after");
  leave(*c);
  EXPECT_THAT(contents(folder_ / "session.json"),
              AllOf(HasSubstr("\"one\\ntwo\""), HasSubstr("\"/three\\nfour\""),
                    HasSubstr("\"seven\""), Not(HasSubstr("five"))));
}

TEST_F(ChatTerminal, HistoryOutlivesTheProgram) {
  const fs::path file = folder_ / "heddle/chat_history";
  {
    const auto c = chat();
    wait_for_prompt(*c);
    c->type("/stats\r");
    c->wait_for("memory: ");
    c->type("\"\"\"\rA fox\rand a hen\"\"\"\r");
    c->wait_for("stopped after");
    leave(*c);
  }
  EXPECT_EQ(contents(file), "/stats\n\"\"\"\\nA fox\\nand a hen\"\"\"\n/exit\n");
  struct stat status {};
  ASSERT_EQ(stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  {
    const auto c = chat({"--session", folder_ / "session.json"});
    wait_for_prompt(*c);
    c->type(std::string(kUp) + kUp + kEnter);
    c->wait_for("stopped after");
    wait_for_prompt(*c);
    leave(*c, ctrl('D'));
    EXPECT_THAT(contents(folder_ / "session.json"), HasSubstr("\"A fox\\nand a hen\""));
  }
  fs::remove(file);
  const auto c = chat({"--no-history"});
  wait_for_prompt(*c);
  c->type("/stats\r");
  c->wait_for("memory: ");
  leave(*c);
  EXPECT_FALSE(fs::exists(file));
}

// What the model says could be anything: the same text is harmless here, and whole in a pipe.
TEST_F(ChatTerminal, RepliesCannotControlTheTerminal) {
  const std::vector<std::string> wild{"--temp", "50",      "--top-k", "0",      "--top-p",
                                      "1",      "--min-p", "0",       "--seed", "1",
                                      "-n",     "600",     "-c",      "1024"};
  const auto c = endless_chat(wild);
  wait_for_prompt(*c);
  c->type("A\r");
  const std::string shown = c->wait_for("stopped after 600 tokens");
  leave(*c);
  const auto controls = [](const std::string& text) {
    return std::ranges::count_if(text, [](char byte) {
      return (byte >= 0 && byte < 0x20 && byte != '\n' && byte != '\t' && byte != '\r') ||
             byte == 0x7F;
    });
  };
  const std::string reply = shown.substr(shown.rfind("\r\033[K") + 4);  // after the progress
  EXPECT_EQ(controls(reply), 0) << reply;
  EXPECT_THAT(reply, HasSubstr("^"));
  std::vector<std::string> arguments{"chat", folder_ / "endless.gguf", "--chat-template",
                                     folder_ / "form.jinja"};
  arguments.insert(arguments.end(), wild.begin(), wild.end());
  const Finished piped = heddle_program(arguments, "A\n");
  EXPECT_EQ(piped.exit_code, 0) << piped.err;
  EXPECT_GT(controls(piped.out), 3);
}

TEST_F(ChatTerminal, ErrorsDoNotEndIt) {
  const auto c = chat({"-c", "64"});
  wait_for_prompt(*c);
  c->type("/nonsense\r");
  EXPECT_THAT(c->wait_for("/exit"), HasSubstr("there is no command '/nonsense'"));
  c->type("/load /no/such/file\r");
  c->wait_for("/no/such/file: No such file");
  c->type("/regen\r");
  c->wait_for("there is no message to reply to");
  std::string words;
  for (int i = 0; i < 80; ++i) words += "fox ";
  c->type(words + kEnter);
  c->wait_for("the message is too long");
  c->type("/stats\r");
  EXPECT_THAT(c->wait_for("memory: "), HasSubstr("turns: 0"));
  c->type("A fox?\r");
  c->wait_for("stopped after 8 tokens");
  leave(*c);
}

TEST_F(ChatTerminal, TheWindowMayChange) {
  const auto c = chat({"--session", folder_ / "session.json"});
  wait_for_prompt(*c);
  std::string line;
  for (const unsigned short columns : {10, 200, 40, 80}) {
    line += "fox" + std::to_string(columns) + " ";
    c->type("fox" + std::to_string(columns) + " ");
    c->wait_for(std::to_string(columns));
    c->resize(columns);
  }
  c->signal(SIGCONT);
  c->type("\r");
  c->wait_for("stopped after");
  leave(*c);
  EXPECT_THAT(contents(folder_ / "session.json"), HasSubstr("\"" + line + "\""));
}

TEST_F(ChatTerminal, ASignalLeavesTheTerminalAsItWas) {
  const auto c = chat();
  wait_for_prompt(*c);
  c->signal(SIGTERM);
  int exit_code = -1;
  c->finish(exit_code);
  EXPECT_EQ(exit_code, 128 + SIGTERM);
  EXPECT_TRUE(c->is_as_shells_leave_it());
}

}  // namespace
}  // namespace heddle::test
