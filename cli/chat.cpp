// heddle chat: a conversation with a model.
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "base/check.h"
#include "cli/chat_program.h"
#include "cli/generation.h"
#include "cli/line_history.h"
#include "cli/model.h"
#include "cli/output.h"

namespace heddle::cli {

namespace {

llm::ChatFormat format_of(const std::shared_ptr<const llm::Model>& model, const std::string& path) {
  if (path.empty()) {
    const bool has_own =
        model->file().metadata().find_string("tokenizer.chat_template").has_value();
    require(has_own, ErrorCode::unsupported,
            "{} has no chat template: give one with --chat-template FILE, or have it continue a "
            "text with heddle run",
            model->file().name());
    return llm::ChatFormat(model);
  }
  const std::string source = read_file(path);
  try {
    return llm::ChatFormat(model, source);
  } catch (const Error& error) {
    fail(error.code(), "{}: {}", path, error.what());
  }
}

void warm(llm::Context& context) {
  const llm::SequenceId sequence = context.create();
  constexpr TokenId kAny = 0;
  warm_up(context, sequence, {&kAny, 1});
  context.release(sequence);
}

std::string name_of(const llm::Model& model) {
  return model.config().name.empty() ? model.file().name() : model.config().name;
}

std::string turns_text(std::size_t count) {
  return fmt::format("{} turn{}", count, count == 1 ? "" : "s");
}

}  // namespace

void ChatFigures::add(const llm::ChatReply& reply) {
  reused_tokens += reply.reused_tokens;
  prompt_tokens += reply.prompt_tokens;
  generated_tokens += reply.generated_tokens;
  prompt_seconds += reply.prompt_seconds;
  generate_seconds += reply.generate_seconds;
}

ChatProgram::ChatProgram(const ChatArguments& arguments)
    : out_(STDOUT_FILENO),
      err_(STDERR_FILENO),
      is_interactive_(isatty(STDIN_FILENO) == 1),
      settings_(arguments.settings.values) {
  progress_.show("opening the model");
  model_ = open_model(arguments.model.path);
  show_packing(*model_, progress_);
  llm::ChatFormat format = format_of(model_, arguments.template_path);
  context_ = std::make_unique<llm::Context>(model_, context_options(arguments.model));
  warm(*context_);
  chat_ = std::make_unique<llm::Chat>(*context_, std::move(format));
  progress_.clear();
  if (!arguments.settings.given.contains("seed")) settings_.sampler.seed = random_seed();
  if (!arguments.session.empty()) open_session(arguments);
  if (arguments.system && *arguments.system != chat_->system()) {
    chat_->set_system(*arguments.system);
    if (session_ && !chat_->turns().empty()) say("the system message is another one from now on");
  }
  interrupt_.emplace();
  open_reader(arguments.keeps_history);
}

void ChatProgram::open_session(const ChatArguments& arguments) {
  GivenSettings run = arguments.settings;
  run.values.sampler.seed = settings_.sampler.seed;
  auto [file, saved] = SessionFile::open(arguments.session, run);
  session_.emplace(std::move(file));
  if (!saved) return;
  chat_->set(saved->system, std::move(saved->turns));
  settings_ = std::move(saved->settings);
  say(fmt::format("{} from {}", turns_text(chat_->turns().size()), arguments.session));
  if (saved->model != name_of(*model_))
    say(fmt::format("the model was {}, and is {} now", saved->model, name_of(*model_)));
  if (!chat_->turns().empty() && !chat_->turns().back().reply)
    say("the last message has no reply yet: /regen asks for one, another message takes its place");
}

void ChatProgram::open_reader(bool keeps_history) {
  if (is_interactive_ && out_.is_terminal() && can_move_cursor())
    reader_ = editing_reader(*interrupt_, keeps_history ? chat_history_path().string() : "");
  if (!reader_) reader_ = plain_reader(*interrupt_, is_interactive_ && out_.is_terminal());
}

void ChatProgram::say(std::string_view text) const {
  fmt::print(stderr, "{}\n", err_.text(text, Style::notice));
}

void ChatProgram::complain(std::string_view text) const {
  fmt::print(stderr, "{}\n", err_.text(fmt::format("heddle: {}", text), Style::error));
}

void ChatProgram::greet() const {
  if (settings_.sampler.temperature > 0) say(fmt::format("seed {}", settings_.sampler.seed));
  if (!is_interactive_) return;
  say(fmt::format(
      "{}, {} parameters, a context of {} tokens; /help lists the commands, Ctrl-D "
      "leaves",
      name_of(*model_), count_text(model_->parameter_count()), context_->options().n_ctx));
  if (model_->file().name() == llm::Model::bundled()->file().name())
    say("this is the built-in model, which only ever tells fables: heddle chat MODEL.gguf talks "
        "with another");
}

int ChatProgram::run() {
  greet();
  while (!has_left_) {
    const std::optional<ChatInput::Complete> input = next_input();
    if (!input) break;
    if (!is_interactive_) {
      obey(*input);
      continue;
    }
    try {
      obey(*input);
    } catch (const std::exception& error) {
      progress_.clear();
      complain(error.what());
    }
  }
  return exit_code_;
}

std::optional<ChatInput::Complete> ChatProgram::next_input() {
  while (true) {
    const std::string_view mark = input_.in_block() ? "\"\"\" " : input_.is_open() ? "\\ " : "> ";
    const std::string_view on = out_.code(Style::prompt), off = out_.code(Style::plain);
    std::string prompt(mark);
    if (!on.empty()) prompt = fmt::format("{0}{1}{0}{2}{0}{3}{0}", kInvisible, on, mark, off);
    const LineReader::Line line = reader_->read(prompt);
    if (line.end == LineEnd::newline) {
      empty_interrupts_ = 0;
      if (!input_.add(line.text)) continue;
      ChatInput::Complete input = input_.take();
      reader_->remember(input.raw);
      if (!input.text.empty()) return input;
    } else if (!is_interactive_) {
      require(line.end != LineEnd::end || !input_.is_open(), ErrorCode::io,
              "standard input ends in the midst of {}",
              input_.in_block() ? "a block: \"\"\" is missing" : "a line continued by a backslash");
      if (line.end == LineEnd::interrupted) exit_code_ = kInterrupted;
      return std::nullopt;
    } else if (line.end == LineEnd::interrupted) {
      interrupted_at_prompt(line.text);
    } else {
      print_now("\n");
      if (!input_.is_open()) return std::nullopt;
      say("what was begun is dropped");
      input_.take();
    }
  }
}

void ChatProgram::interrupted_at_prompt(const std::string& dropped) {
  interrupt_->clear();
  print_now("\n");
  empty_interrupts_ = dropped.empty() && !input_.is_open() ? empty_interrupts_ + 1 : 0;
  input_.take();
  if (empty_interrupts_ >= 2) say("Ctrl-D or /exit leaves");
}

void ChatProgram::obey(const ChatInput::Complete& input) {
  if (!input.is_block && input.text.starts_with('/'))
    command(input.text);
  else
    ask(input.text);
}

void ChatProgram::ask(const std::string& text) {
  chat_->ask(text);
  save_session();
  answer();
}

void ChatProgram::save_session() {
  if (!session_) return;
  try {
    session_->write(saved());
  } catch (const Error& error) {
    if (!is_interactive_) throw;
    complain(error.what());
  }
}

SavedChat ChatProgram::saved() const {
  return {.model = name_of(*model_),
          .system = chat_->system(),
          .turns = chat_->turns(),
          .settings = settings_};
}

void ChatProgram::tell_forgotten(const llm::Forgotten& forgotten) const {
  say(
      fmt::format("the context of {} tokens is full: {} left it, and {} tokens of the last {} "
                  "{} read again",
                  context_->options().n_ctx,
                  forgotten.turns == 1 ? "the oldest turn has"
                                       : fmt::format("the {} oldest turns have", forgotten.turns),
                  forgotten.tokens_read, turns_text(forgotten.turns_left),
                  forgotten.tokens_read == 1 ? "is" : "are"));
}

llm::ChatOptions ChatProgram::options_for(const bool& has_spoken,
                                          std::optional<llm::Forgotten>& forgotten) {
  llm::ChatOptions options;
  options.generate.max_tokens = settings_.max_tokens;
  options.generate.stop = settings_.stop;
  options.generate.sampler = settings_.sampler;
  options.generate.sampler.seed += settings_.replies++;
  options.generate.progress = [this, &has_spoken](std::int64_t done, std::int64_t all) {
    // On a line of its own, which a reply in its midst has not.
    if (!has_spoken) progress_.show(fmt::format("reading: {} of {} tokens", done, all));
    return !interrupt_->raised();
  };
  options.on_forget = [this, &has_spoken, &forgotten](const llm::Forgotten& now) {
    // Not in the midst of a reply's line.
    if (has_spoken)
      forgotten = {forgotten.value_or(llm::Forgotten{}).turns + now.turns, now.turns_left,
                   forgotten.value_or(llm::Forgotten{}).tokens_read + now.tokens_read};
    else
      tell_forgotten(now);
  };
  return options;
}

void ChatProgram::answer() {
  bool has_spoken = false;
  char last = '\n';
  std::optional<llm::Forgotten> forgotten;
  // Ends the line, after a failure too: what is said next stands on its own.
  const auto end_line = [&] {
    progress_.clear();
    if (has_spoken && (last != '\n' || !out_.is_terminal())) print_now("\n");
  };
  llm::ChatReply reply;
  try {
    reply = chat_->reply(options_for(has_spoken, forgotten), [&](std::string_view text) {
      progress_.clear();
      if (!text.empty()) {
        print_now(out_.text(text));
        last = text.back();
        has_spoken = true;
      }
      return !interrupt_->raised();
    });
  } catch (...) {
    end_line();
    save_session();
    throw;
  }
  last_ = {};
  last_.add(reply);
  all_.add(reply);
  // What stands as a whole line on the screen is in the session's file.
  save_session();
  has_spoken = has_spoken || !out_.is_terminal();  // an empty reply is an empty line of a pipe
  end_line();
  if (forgotten) tell_forgotten(*forgotten);
  tell_end(reply);
}

void ChatProgram::tell_end(const llm::ChatReply& reply) {
  switch (reply.reason) {
    case llm::StopReason::cancelled:
      interrupt_->clear();
      if (!is_interactive_) {
        has_left_ = true;
        exit_code_ = kInterrupted;
      }
      say(reply.text.empty() ? "stopped before a word was said; /regen asks again"
                             : "stopped; what was said stays in the conversation");
      break;
    case llm::StopReason::context_full:
      say(fmt::format("the reply fills the context of {} tokens (-c)", context_->options().n_ctx));
      break;
    case llm::StopReason::max_tokens:
      say(fmt::format("stopped after {} tokens (-n)", reply.generated_tokens));
      break;
    case llm::StopReason::end_token:
    case llm::StopReason::stop_text:
      if (reply.text.empty()) say("the reply is empty");
      break;
  }
}

int chat(const ChatArguments& arguments) {
  ChatProgram program(arguments);
  Watching watching(context_options(arguments.model), arguments.observe);
  int code = kOk;
  watching.during([&] { code = program.run(); });
  watching.finish();
  return code;
}

}  // namespace heddle::cli
