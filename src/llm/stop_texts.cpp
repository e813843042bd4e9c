#include "llm/stop_texts.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace heddle::llm {

StopTexts::StopTexts(std::vector<std::string> texts) : texts_(std::move(texts)) {
  for (const std::string& text : texts_) {
    require(!text.empty(), ErrorCode::invalid_argument, "a stop text is empty");
  }
}

/// Where the first stop text begins, or npos.
std::size_t StopTexts::find() const {
  std::size_t first = std::string::npos;
  for (const std::string& text : texts_) first = std::min(first, held_.find(text));
  return first;
}

/// The longest end of the text that a stop text begins with.
std::size_t StopTexts::held_length() const {
  std::size_t longest = 0;
  for (const std::string& text : texts_) {
    for (std::size_t n = std::min(text.size() - 1, held_.size()); n > longest; --n) {
      if (std::string_view(held_).ends_with(std::string_view(text).substr(0, n))) longest = n;
    }
  }
  return longest;
}

std::string StopTexts::add(std::string_view piece) {
  if (found_) return {};
  held_ += piece;
  const std::size_t at = find();
  found_ = at != std::string::npos;
  const std::size_t ready = found_ ? at : held_.size() - held_length();
  std::string text = held_.substr(0, ready);
  held_.erase(0, found_ ? std::string::npos : ready);
  return text;
}

std::string StopTexts::finish() {
  return std::exchange(held_, {});
}

}  // namespace heddle::llm
