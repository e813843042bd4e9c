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

#include <cerrno>
#include <clocale>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "cli/line_history.h"

namespace heddle::cli {

namespace {

/// libedit takes characters apart as the locale says. Terminals speak UTF-8, even where nobody has
/// told the locale.
void use_utf8() {
  const char* named = std::setlocale(LC_CTYPE, "");
  if (!named || std::strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
    std::setlocale(LC_CTYPE, "C.UTF-8");
}

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
    el_set(edit_, EL_PROMPT_ESC, prompt_of, '\1');
    // While a line is edited, Ctrl-C is a key like others.
    el_set(edit_, EL_SETTY, "-d", "intr=", nullptr);
    el_set(edit_, EL_ADDFN, "heddle-interrupt", "Drop the line", on_interrupt_key);
    el_set(edit_, EL_BIND, "^C", "heddle-interrupt", nullptr);
    el_set(edit_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    el_source(edit_, nullptr);  // ~/.editrc
  }
  ~EditingReader() override { close(); }

  Line read(std::string_view prompt) override {
    prompt_ = prompt;
    key_pressed_ = false;
    dropped_.clear();
    int count = 0;
    errno = 0;
    const char* line = el_gets(edit_, &count);
    if (line && count > 0) return {LineEnd::newline, without_newline({line, size_of(count)})};
    const bool by_signal = interrupt_.raised();
    interrupt_.clear();
    if (key_pressed_ || by_signal) return {LineEnd::interrupted, std::move(dropped_)};
    require(count == 0 || errno == 0 || errno == EIO, ErrorCode::io, "standard input: {}",
            std::strerror(errno));
    return {LineEnd::end, {}};
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
  static unsigned char on_interrupt_key(EditLine* edit, int) {
    EditingReader& reader = of(edit);
    const LineInfo* line = el_line(edit);
    reader.key_pressed_ = true;
    reader.dropped_.assign(line->buffer, line->lastchar);
    return CC_EOF;
  }

  static std::size_t size_of(int count) { return static_cast<std::size_t>(count); }
  static std::string without_newline(std::string_view line) {
    if (line.ends_with('\n')) line.remove_suffix(1);
    return std::string(line);
  }

  void close() {
    if (edit_) el_end(edit_);
    if (history_) history_end(history_);
  }

  InterruptFlag& interrupt_;
  LineHistory kept_;
  EditLine* edit_ = nullptr;
  History* history_ = nullptr;
  std::string prompt_, dropped_;
  bool key_pressed_ = false;
};

}  // namespace

std::unique_ptr<LineReader> editing_reader(InterruptFlag& interrupt, const std::string& history) {
  return std::make_unique<EditingReader>(interrupt, history);
}

}  // namespace heddle::cli

#endif
