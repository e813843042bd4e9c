// heddle chat, as it runs: inputs come, commands and messages are carried out.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cli/chat_file.h"
#include "cli/chat_input.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/line_reader.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "heddle/chat.h"

namespace heddle::cli {

/// Tokens computed, and the time that took.
struct ChatFigures {
  std::int64_t reused_tokens = 0, prompt_tokens = 0, generated_tokens = 0;
  double prompt_seconds = 0, generate_seconds = 0;

  void add(const llm::ChatReply& reply);
};

class ChatProgram {
 public:
  explicit ChatProgram(const ChatArguments& arguments);
  ChatProgram(const ChatProgram&) = delete;
  ChatProgram& operator=(const ChatProgram&) = delete;

  int run();

 private:
  friend struct ChatCommand;

  // What is said beside the replies, on standard error.
  void say(std::string_view text) const;
  void complain(std::string_view text) const;

  void open_session(const ChatArguments& arguments);
  void open_reader(bool keeps_history);
  void greet() const;

  /// Nothing when it is time to go, with `exit_code_` set.
  std::optional<ChatInput::Complete> next_input();
  void interrupted_at_prompt(const std::string& dropped);
  void obey(const ChatInput::Complete& input);
  void command(std::string_view line);

  void ask(const std::string& text);
  void answer();
  void tell_forgotten(const llm::Forgotten& forgotten) const;
  void tell_end(const llm::ChatReply& reply);
  void save_session();
  llm::ChatOptions options_for(const bool& has_spoken, std::optional<llm::Forgotten>& forgotten);

  // The commands; see chat_commands.cpp.
  void clear(const std::string& argument);
  void regenerate(const std::string& argument);
  void system(const std::string& argument);
  void save(const std::string& argument);
  void load(const std::string& argument);
  void stats(const std::string& argument);
  void help(const std::string& argument);
  void leave(const std::string& argument);

  SavedChat saved() const;

  const Terminal out_, err_;
  const bool is_interactive_;
  Progress progress_;
  std::shared_ptr<const llm::Model> model_;
  std::unique_ptr<llm::Context> context_;
  std::unique_ptr<llm::Chat> chat_;
  ChatSettings settings_;
  std::optional<SessionFile> session_;
  std::optional<InterruptFlag> interrupt_;  // once there is something to interrupt
  std::unique_ptr<LineReader> reader_;
  ChatInput input_;
  int empty_interrupts_ = 0;  // in a row
  ChatFigures last_, all_;
  bool has_left_ = false;
  int exit_code_ = kOk;
};

}  // namespace heddle::cli
