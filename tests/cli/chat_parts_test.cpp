// What heddle chat is made of, without the program around it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/chat_file.h"
#include "cli/chat_input.h"
#include "cli/line_history.h"
#include "cli/terminal.h"
#include "heddle/error.h"

namespace heddle::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

ChatInput::Complete typed(const std::vector<std::string>& lines) {
  ChatInput input;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(input.add(lines[i]), i + 1 == lines.size()) << lines[i];
    EXPECT_TRUE(input.is_open() || lines[i].empty());
  }
  ChatInput::Complete complete = input.take();
  EXPECT_FALSE(input.is_open());
  return complete;
}

TEST(ChatInput, LinesBecomeInputs) {
  EXPECT_EQ(typed({"A fox"}).text, "A fox");
  EXPECT_EQ(typed({""}).text, "");
  EXPECT_EQ(typed({"A\\", "fox"}).text, "A\nfox");
  EXPECT_EQ(typed({"\\", "\\", ""}).text, "\n\n");
  EXPECT_EQ(typed({"A\\", "\"\"\""}).text, "A\n\"\"\"");
  EXPECT_EQ(typed({"say \"\"\""}).text, "say \"\"\"");
}

TEST(ChatInput, Blocks) {
  const std::string quotes = "\"\"\"";
  EXPECT_EQ(typed({quotes, "A", "", "fox", quotes}).text, "A\n\nfox");
  EXPECT_EQ(typed({quotes + "A", "fox" + quotes}).text, "A\nfox");
  EXPECT_EQ(typed({quotes + "A fox" + quotes}).text, "A fox");
  EXPECT_EQ(typed({quotes + quotes}).text, "");
  EXPECT_EQ(typed({quotes, quotes}).text, "");
  EXPECT_EQ(typed({quotes, "A\\", quotes}).text, "A\\");
  EXPECT_TRUE(typed({quotes, "/clear", quotes}).is_block);
  EXPECT_FALSE(typed({"/clear"}).is_block);
}

TEST(ChatInput, WhatWasTypedReadsTheSameAtOnce) {
  for (const std::vector<std::string>& lines :
       {std::vector<std::string>{"A fox"}, {"A\\", "fox"}, {"\"\"\"", "", "A\\", "\"\"\""}}) {
    const ChatInput::Complete first = typed(lines);
    ChatInput again;
    EXPECT_TRUE(again.add(first.raw));
    const ChatInput::Complete second = again.take();
    EXPECT_EQ(second.text, first.text);
    EXPECT_EQ(second.raw, first.raw);
    EXPECT_EQ(second.is_block, first.is_block);
  }
  EXPECT_EQ(typed({"A\nfox"}).text, "A\nfox");  // as an edited line of a history
}

TEST(Terminal, ControlCharactersAreWrittenOut) {
  EXPECT_EQ(visible("A fox\tand\na hen"), "A fox\tand\na hen");
  EXPECT_EQ(visible("\033]0;mine\a\033[2J"), "^[]0;mine^G^[[2J");
  EXPECT_EQ(visible(std::string("\0\r\b\x7F", 4)), "^@^M^H^?");
  EXPECT_EQ(visible("\xC2\x9B"
                    "2J\xC2\xA0"),
            "<U+009B>2J\xC2\xA0");
  EXPECT_EQ(visible("狐\xF0\x9F\xA6\x8A"), "狐\xF0\x9F\xA6\x8A");
  EXPECT_EQ(visible("\x9B"
                    "2J\xC3"),
            "\xEF\xBF\xBD"
            "2J\xEF\xBF\xBD");
  for (int c = 0; c < 256; ++c) {
    const std::string shown = visible(std::string(1, static_cast<char>(c)));
    for (const char byte : shown)
      EXPECT_TRUE(byte == '\n' || byte == '\t' || static_cast<unsigned char>(byte) >= 0x20) << c;
  }
}

class History : public testing::Test {
 protected:
  void SetUp() override {
    path_ = fs::path(testing::TempDir()) / ("heddle-history-" + std::to_string(getpid())) / "a/b";
  }
  void TearDown() override { fs::remove_all(path_.parent_path().parent_path()); }
  std::vector<std::string> kept() const { return LineHistory(path_).inputs(); }

  fs::path path_;
};

TEST_F(History, OutlivesItsOwner) {
  LineHistory history(path_);
  EXPECT_TRUE(history.add("one"));
  EXPECT_FALSE(history.add("one"));
  EXPECT_FALSE(history.add(""));
  EXPECT_TRUE(history.add("two\nlines\\n"));
  EXPECT_FALSE(history.add(std::string(kMostHistoryBytes + 1, 'x')));
  EXPECT_THAT(kept(), ElementsAre("one", "two\nlines\\n"));
  struct stat status {};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(History, TwoMayWriteAtOnce) {
  LineHistory one(path_), two(path_);
  one.add("A");
  two.add("B");
  one.add("C");
  EXPECT_THAT(kept(), ElementsAre("A", "B", "C"));
}

TEST_F(History, IsBounded) {
  LineHistory history(path_);
  for (std::size_t i = 0; i < 3 * kMostHistory; ++i) history.add("entry " + std::to_string(i));
  const std::uintmax_t size = fs::file_size(path_);
  const std::vector<std::string> newest = kept();
  ASSERT_EQ(newest.size(), kMostHistory);
  EXPECT_EQ(newest.back(), "entry " + std::to_string(3 * kMostHistory - 1));
  EXPECT_LT(fs::file_size(path_), size / 2);
  EXPECT_EQ(kept(), newest);
}

TEST_F(History, TakesNothingHarmful) {
  fs::create_directories(path_.parent_path());
  std::ofstream(path_, std::ios::binary) << "good\n\nbad \033[2J\nbad \\x\nbad \\\n"
                                         << std::string(1 << 20, 'x') << "\nlast";
  EXPECT_THAT(kept(), ElementsAre("good", "last"));
}

TEST_F(History, IsNothingWhereItCannotBe) {
  LineHistory nowhere("");
  EXPECT_TRUE(nowhere.add("one"));
  LineHistory forbidden("/proc/no/such");
  EXPECT_TRUE(forbidden.add("one"));
  EXPECT_THAT(forbidden.inputs(), ElementsAre("one"));
}

SavedChat some_chat() {
  SavedChat chat;
  chat.model = "fable";
  chat.system = "S \"quoted\" \n";
  chat.turns = {{"U1", "R1 狐"}, {"U2", std::nullopt}};
  chat.settings.max_tokens = 5;
  chat.settings.stop = {"a", "b"};
  chat.settings.sampler = {.temperature = 0.7f,
                           .top_k = 3,
                           .top_p = 0.3f,
                           .min_p = 0.1f,
                           .repeat_penalty = 1.1f,
                           .repeat_last_n = 9,
                           .seed = ~std::uint64_t{0}};
  chat.settings.replies = 4;
  return chat;
}

TEST(ChatFile, KeepsAll) {
  const std::string text = chat_json(some_chat());
  EXPECT_THAT(text, HasSubstr("\"temp\": 0.7,"));
  const SavedChat again = parse_chat(text, "f");
  EXPECT_EQ(chat_json(again), text);
  EXPECT_EQ(again.turns, some_chat().turns);
  EXPECT_EQ(again.settings.sampler.temperature, 0.7f);
  EXPECT_EQ(again.settings.sampler.seed, ~std::uint64_t{0});
  EXPECT_THAT(again.settings.stop, ElementsAre("a", "b"));
}

TEST(ChatFile, WhatIsGivenCountsMore) {
  GivenSettings run;
  run.values.sampler.temperature = 0.2f;
  run.values.sampler.top_k = 1;
  run.values.stop = {"c"};
  run.given = {"temp", "stop"};
  const ChatSettings settings = parse_chat(chat_json(some_chat()), "f", run).settings;
  EXPECT_EQ(settings.sampler.temperature, 0.2f);
  EXPECT_EQ(settings.sampler.top_k, 3);
  EXPECT_THAT(settings.stop, ElementsAre("c"));
}

TEST(ChatFile, RefusesWhatMakesNoSense) {
  const auto refused = [](const std::function<void(json&)>& change, const std::string& why) {
    json all = json::parse(chat_json(some_chat()));
    change(all);
    try {
      parse_chat(all.dump(), "file.json");
      FAIL() << "no error: " << why;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::io);
      EXPECT_THAT(error.what(), AllOf(HasSubstr("file.json: "), HasSubstr(why)));
    }
  };
  refused([](json& j) { j = json::array(); }, "no conversation of heddle chat");
  refused([](json& j) { j["format"] = 3; }, "no conversation of heddle chat");
  refused([](json& j) { j["version"] = 2; }, "version 2");
  refused([](json& j) { j.erase("messages"); }, "'messages' is missing");
  refused([](json& j) { j["messages"] = 1; }, "'messages' is not a list");
  refused([](json& j) { j["messages"][0] = 1; }, "'role' is missing");
  refused([](json& j) { j["messages"][0]["content"] = json(); }, "'content' is not a text");
  refused([](json& j) { j["messages"][1]["role"] = "tool"; }, "message 2 is of role 'tool'");
  refused([](json& j) { j["messages"][1]["role"] = "system"; }, "expected 'user'");
  refused([](json& j) { j["messages"][2]["role"] = "user"; }, "expected 'assistant'");
  refused([](json& j) { j["messages"].erase(1); }, "message 2 is of role 'assistant'");
  refused([](json& j) { j["settings"] = 1; }, "'settings' is not an object");
  refused([](json& j) { j["settings"]["temp"] = "hot"; }, "'temp' is not a number");
  refused([](json& j) { j["settings"]["temp"] = -1; }, "temp");
  refused([](json& j) { j["settings"]["top_p"] = 7; }, "top_p");
  refused([](json& j) { j["settings"]["top_k"] = 1.5; }, "'top_k' is not a whole number");
  refused([](json& j) { j["settings"]["top_k"] = ~std::uint64_t{0}; }, "'top_k' is out of range");
  refused([](json& j) { j["settings"]["n_predict"] = -2; }, "'n_predict' is out of range");
  refused([](json& j) { j["settings"]["seed"] = -2; }, "'seed' is not a whole number");
  refused([](json& j) { j["settings"]["stop"] = "a"; }, "'stop' is not a list");
  refused([](json& j) { j["settings"]["stop"][0] = 1; }, "'stop' is not a text");
}

TEST(ChatFile, EveryCutOfAFileIsRefused) {
  const std::string text = chat_json(some_chat());
  for (std::size_t length = 0; length + 2 < text.size(); ++length)
    EXPECT_THROW(parse_chat(text.substr(0, length), "f"), Error) << length;
}

}  // namespace
}  // namespace heddle::cli
