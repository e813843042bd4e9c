// Inputs of several lines.
#pragma once

#include <string>
#include <string_view>

namespace heddle::cli {

/// Gathers lines into an input: a line that ends in a backslash continues on the next, and """
/// begins a block, which ends with the line that ends in """.
class ChatInput {
 public:
  /// True once the input is complete. A line may hold newlines, as what comes from a history does.
  bool add(std::string_view line);
  /// Something has begun, and more is to come.
  bool is_open() const noexcept { return !raw_.empty(); }
  bool in_block() const noexcept { return in_block_; }

  struct Complete {
    std::string text;
    std::string raw;        // as it was typed
    bool is_block = false;  // then it is no command, whatever it begins with
  };
  /// What is complete; and another begins.
  Complete take();

 private:
  bool add_one(std::string_view line);
  bool add_to_block(std::string_view line);

  std::string text_, raw_;
  bool in_block_ = false, was_block_ = false, is_first_ = true;
};

}  // namespace heddle::cli
