#include "cli/chat_input.h"

#include <utility>

namespace heddle::cli {

namespace {

constexpr std::string_view kQuotes = "\"\"\"";

}  // namespace

bool ChatInput::add(std::string_view line) {
  bool complete = false;
  while (true) {
    const std::size_t newline = line.find('\n');
    complete = add_one(line.substr(0, newline));
    if (newline == std::string_view::npos) return complete;
    if (complete) text_ += '\n';
    line.remove_prefix(newline + 1);
  }
}

bool ChatInput::add_one(std::string_view line) {
  if (!std::exchange(is_first_, false)) raw_ += '\n';
  raw_ += line;
  if (in_block_) return add_to_block(line);
  if (raw_.size() == line.size() && line.starts_with(kQuotes)) {
    in_block_ = was_block_ = true;
    line.remove_prefix(kQuotes.size());
    return line.empty() ? false : add_to_block(line);
  }
  const bool continues = line.ends_with('\\');
  if (continues) line.remove_suffix(1);
  text_ += line;
  if (continues) text_ += '\n';
  return !continues;
}

bool ChatInput::add_to_block(std::string_view line) {
  in_block_ = !line.ends_with(kQuotes);
  if (!in_block_) line.remove_suffix(kQuotes.size());
  text_ += line;
  if (in_block_)
    text_ += '\n';
  else if (line.empty() && text_.ends_with('\n'))
    text_.pop_back();  // the quotes stand alone
  return !in_block_;
}

ChatInput::Complete ChatInput::take() {
  Complete complete{std::move(text_), std::move(raw_), was_block_};
  *this = {};
  return complete;
}

}  // namespace heddle::cli
