// Stop texts in a stream of text, wherever its pieces are cut.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heddle::llm {

class StopTexts {
 public:
  /// Throws invalid_argument if one is empty.
  explicit StopTexts(std::vector<std::string> texts);

  /// The text that may be given out now that `piece` has come: up to a stop text, or all but an end
  /// that one might begin with. Nothing more comes once one was found.
  std::string add(std::string_view piece);
  /// What is held back at the end.
  std::string finish();
  bool found() const noexcept { return found_; }

 private:
  std::size_t find() const;
  std::size_t held_length() const;

  std::vector<std::string> texts_;
  std::string held_;
  bool found_ = false;
};

}  // namespace heddle::llm
