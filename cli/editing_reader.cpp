// Lines edited with libedit.
#include "cli/line_reader.h"

#ifndef HEDDLE_HAS_LIBEDIT

namespace heddle::cli {

std::unique_ptr<LineReader> editing_reader(InterruptFlag&, const std::string&) {
  return nullptr;
}

}  // namespace heddle::cli

#else

#include <histedit.h>
#include <langinfo.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstring>
#include <cwchar>
#include <exception>
#include <utility>

#include "base/check.h"
#include "cli/line_history.h"
#include "cli/output.h"

namespace heddle::cli {

namespace {

/// libedit takes characters apart as the locale says. Terminals speak UTF-8, even where nobody has
/// told the locale.
void use_utf8() {
  const char* named = std::setlocale(LC_CTYPE, "");
  if (!named || std::strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
    std::setlocale(LC_CTYPE, "C.UTF-8");
}

/// While one lives, a window of another size or a program that goes on ends a wait.
class WakingSignals {
 public:
  WakingSignals() {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    sigemptyset(&action.sa_mask);
    for (std::size_t i = 0; i < kSignals.size(); ++i)
      sigaction(kSignals[i], &action, &previous_[i]);
  }
  ~WakingSignals() {
    for (std::size_t i = 0; i < kSignals.size(); ++i)
      sigaction(kSignals[i], &previous_[i], nullptr);
  }

 private:
  static constexpr std::array kSignals{SIGWINCH, SIGCONT};
  std::array<struct sigaction, kSignals.size()> previous_;
};

class EditingReader : public LineReader {
 public:
  EditingReader(InterruptFlag& interrupt, const std::string& history)
      : interrupt_(interrupt), kept_(history) {
    use_utf8();
    edit_ = el_init("heddle", stdin, stdout, stderr);
    history_ = history_init();
    if (!edit_ || !history_) {
      close();
      fail(ErrorCode::out_of_memory, "the line editor does not start");
    }
    HistEvent event;
    ::history(history_, &event, H_SETSIZE, static_cast<int>(kMostHistory));
    for (const std::string& input : kept_.inputs())
      ::history(history_, &event, H_ENTER, input.c_str());
    el_set(edit_, EL_CLIENTDATA, this);
    el_set(edit_, EL_HIST, ::history, history_);
    el_set(edit_, EL_EDITOR, "emacs");
    el_set(edit_, EL_SIGNAL, 1);  // the terminal is put right when one stops or ends us
    el_set(edit_, EL_PROMPT_ESC, prompt_of, kInvisible);
    el_set(edit_, EL_GETCFN, next_character);
    el_set(edit_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    el_source(edit_, nullptr);  // ~/.editrc
  }
  ~EditingReader() override { close(); }

  Line read(std::string_view prompt) override {
    const WakingSignals waking;
    prompt_ = prompt;
    dropped_.clear();
    int count = 0;
    const char* line = el_gets(edit_, &count);
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    if (line && count > 0)
      return {LineEnd::newline, without_newline({line, static_cast<std::size_t>(count)})};
    const bool interrupted = interrupt_.raised();
    if (interrupted) print_now("^C");  // as terminals do where nobody edits
    interrupt_.clear();
    return {interrupted ? LineEnd::interrupted : LineEnd::end, std::move(dropped_)};
  }

  void remember(const std::string& input) override {
    HistEvent event;
    if (kept_.add(input)) ::history(history_, &event, H_ENTER, input.c_str());
  }

 private:
  static EditingReader& of(EditLine* edit) {
    void* reader = nullptr;
    el_get(edit, EL_CLIENTDATA, &reader);
    return *static_cast<EditingReader*>(reader);
  }
  static char* prompt_of(EditLine* edit) { return of(edit).prompt_.data(); }

  /// For libedit, whose own would miss an interrupt that comes before it waits: 1, 0 at the end of
  /// the input, -1 to give up the line.
  static int next_character(EditLine* edit, wchar_t* character) {
    EditingReader& reader = of(edit);
    try {
      return reader.next(*character);
    } catch (...) {
      reader.error_ = std::current_exception();  // not through C
      return -1;
    }
  }

  int next(wchar_t& character) {
    std::mbstate_t state{};
    while (true) {
      const Waited waited = interrupt_.wait_for(STDIN_FILENO);
      if (waited == Waited::interrupted) {
        const LineInfo* line = el_line(edit_);
        dropped_.assign(line->buffer, line->lastchar);
        return -1;
      }
      if (waited == Waited::signalled) {
        show_again();
        continue;
      }
      char byte;
      const ssize_t count = ::read(STDIN_FILENO, &byte, 1);
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (count <= 0) return 0;  // a terminal that has gone fails
      const std::size_t used = std::mbrtowc(&character, &byte, 1, &state);
      if (used == kIncomplete) continue;
      if (used != kInvalid) return 1;
      state = {};
    }
  }

  void show_again() {
    el_resize(edit_);
    el_set(edit_, EL_PREP_TERM, 0);
    el_set(edit_, EL_PREP_TERM, 1);
    el_set(edit_, EL_REFRESH);
  }

  static std::string without_newline(std::string_view line) {
    if (line.ends_with('\n')) line.remove_suffix(1);
    return std::string(line);
  }

  void close() {
    if (edit_) el_end(edit_);
    if (history_) history_end(history_);
  }

  // What mbrtowc says of bytes that are not a character yet, or never.
  static constexpr auto kIncomplete = static_cast<std::size_t>(-2),
                        kInvalid = static_cast<std::size_t>(-1);

  InterruptFlag& interrupt_;
  LineHistory kept_;
  EditLine* edit_ = nullptr;
  History* history_ = nullptr;
  std::string prompt_, dropped_;
  std::exception_ptr error_;
};

}  // namespace

std::unique_ptr<LineReader> editing_reader(InterruptFlag& interrupt, const std::string& history) {
  return std::make_unique<EditingReader>(interrupt, history);
}

}  // namespace heddle::cli

#endif
