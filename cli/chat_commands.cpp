// What begins with a slash.
#include <algorithm>
#include <array>

#include "base/check.h"
#include "cli/chat_program.h"
#include "cli/generation.h"
#include "cli/output.h"

namespace heddle::cli {

struct ChatCommand {
  std::string_view name, argument;  // an argument in brackets may be left out
  std::string_view description;
  void (ChatProgram::*run)(const std::string& argument);

  static const std::array<ChatCommand, 8> kAll;
};

const std::array<ChatCommand, 8> ChatCommand::kAll{{
    {"/clear", "", "begin anew; the system message stays", &ChatProgram::clear},
    {"/regen", "", "another reply to the last message", &ChatProgram::regenerate},
    {"/system", "[TEXT]", "show the system message, or set it; \"\" removes it",
     &ChatProgram::system},
    {"/save", "FILE", "write the conversation to a file", &ChatProgram::save},
    {"/load", "FILE", "go on with a conversation from a file", &ChatProgram::load},
    {"/stats", "", "tokens, speed and memory", &ChatProgram::stats},
    {"/help", "", "this list", &ChatProgram::help},
    {"/exit", "", "leave, as Ctrl-D does", &ChatProgram::leave},
}};

namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\n") + 1 - begin);
}

std::string figures_text(std::string_view name, const ChatFigures& figures) {
  return fmt::format(
      "{}: prompt {} tokens, {:.1f} tokens/s ({} more were there already); generated {} tokens, "
      "{:.1f} tokens/s",
      name, figures.prompt_tokens, tokens_per_second(figures.prompt_tokens, figures.prompt_seconds),
      figures.reused_tokens, figures.generated_tokens,
      tokens_per_second(figures.generated_tokens, figures.generate_seconds));
}

}  // namespace

void ChatProgram::command(std::string_view line) {
  const std::size_t end = std::min(line.find_first_of(" \t\n"), line.size());
  const std::string_view name = line.substr(0, end);
  const std::string argument(trimmed(line.substr(end)));
  const auto found = std::ranges::find(ChatCommand::kAll, name, &ChatCommand::name);
  if (found == ChatCommand::kAll.end()) {
    std::string names;
    for (const ChatCommand& c : ChatCommand::kAll) names += fmt::format(" {}", c.name);
    fail(ErrorCode::invalid_argument,
         "there is no command '{}'; there are{} (a message that begins so goes between \"\"\")",
         name, names);
  }
  const bool needs = !found->argument.empty() && !found->argument.starts_with('[');
  require(!needs || !argument.empty(), ErrorCode::invalid_argument, "{} wants a {}", name,
          found->argument);
  require(!found->argument.empty() || argument.empty(), ErrorCode::invalid_argument,
          "{} takes nothing after it", name);
  (this->*found->run)(argument);
}

void ChatProgram::clear(const std::string&) {
  chat_->clear();
  save_session();
  say("the conversation begins anew");
}

void ChatProgram::regenerate(const std::string&) {
  answer();
}

void ChatProgram::system(const std::string& argument) {
  if (argument.empty()) {
    say(chat_->system().empty() ? "there is no system message" : chat_->system());
    return;
  }
  chat_->set_system(argument == "\"\"" ? "" : argument);
  save_session();
  say(chat_->system().empty() ? "there is no system message any more"
                              : "the system message is set; the next reply reads all again");
}

void ChatProgram::save(const std::string& argument) {
  write_chat(argument, saved());
  say(fmt::format("written to {}", argument));
}

void ChatProgram::load(const std::string& argument) {
  SavedChat loaded = read_chat(argument);
  const std::size_t turns = loaded.turns.size();
  chat_->set(std::move(loaded.system), std::move(loaded.turns));
  save_session();
  say(fmt::format("{} turn{} from {}", turns, turns == 1 ? "" : "s", argument));
}

void ChatProgram::stats(const std::string&) {
  const llm::Context::MemoryUse memory = context_->memory();
  say(fmt::format("turns: {}, of which {} left the context", chat_->turns().size(),
                  chat_->forgotten()));
  say(fmt::format("context: {} of {} tokens", chat_->length(), context_->options().n_ctx));
  say(figures_text("last reply", last_));
  say(figures_text("all replies", all_));
  say(fmt::format("memory: KV {}, weights {}, arenas {}", bytes_text(memory.kv),
                  bytes_text(memory.weights), bytes_text(memory.arenas)));
}

void ChatProgram::help(const std::string&) {
  for (const ChatCommand& c : ChatCommand::kAll)
    say(fmt::format("  {:<15}{}", fmt::format("{} {}", c.name, c.argument), c.description));
  say("a line that ends in \\ goes on in the next; \"\"\" begins a block of lines and ends it\n"
      "Ctrl-C stops a reply, or drops the line that is being typed");
}

void ChatProgram::leave(const std::string&) {
  has_left_ = true;
}

}  // namespace heddle::cli
