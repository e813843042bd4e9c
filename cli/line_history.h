// What has been typed, kept between runs in the user's state directory.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace heddle::cli {

/// $XDG_STATE_HOME/heddle/chat_history, or that in ~/.local/state; empty if neither is known.
std::filesystem::path chat_history_path();

/// Inputs by age, one a line of the file, in which a newline is \n and a backslash \\. The file is
/// for its owner's eyes only and is cut down to the newest kMostHistory when it is opened. Nothing
/// here throws: a history that cannot be read or written is one that nobody has.
class LineHistory {
 public:
  /// An empty path: kept nowhere.
  explicit LineHistory(std::filesystem::path path);

  const std::vector<std::string>& inputs() const noexcept { return inputs_; }
  /// Adds it, in the file as well, unless it is the last one again, or larger than
  /// kMostHistoryBytes. False if it was not added.
  bool add(const std::string& input);

 private:
  void load();
  void append(const std::string& line) const;

  std::filesystem::path path_;
  std::vector<std::string> inputs_;
};

inline constexpr std::size_t kMostHistory = 1000;
inline constexpr std::size_t kMostHistoryBytes = 32 << 10;  // of one input

}  // namespace heddle::cli
