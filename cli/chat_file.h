// Conversations in files: a JSON object, with messages as OpenAI's API has them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/chat.h"

namespace heddle::cli {

/// How replies are made.
struct ChatSettings {
  std::int64_t max_tokens = -1;
  std::vector<std::string> stop;
  llm::SamplerOptions sampler;  // its seed is that of the first reply
  std::uint64_t replies = 0;    // so far; each has a seed of its own
};

struct SavedChat {
  std::string model;  // its name, for whoever reads the file
  std::string system;
  std::vector<llm::ChatTurn> turns;
  ChatSettings settings;
};

/// Settings of a run: those that were given to it, by the names they have in the file (temp,
/// top_k, ...), count more than a file's.
struct GivenSettings {
  ChatSettings values;
  std::set<std::string> given;
};

std::string chat_json(const SavedChat& chat);
/// Throws io saying what is wrong with the text, whose file is `name`.
SavedChat parse_chat(std::string_view text, const std::string& name, const GivenSettings& run = {});

/// Throws io naming the file if it is not there, or no conversation.
SavedChat read_chat(const std::filesystem::path& path);
/// Writes it whole or not at all. Throws io for what is there and no conversation, and leaves that.
void write_chat(const std::filesystem::path& path, const SavedChat& chat);

/// The file of `--session`: this program's own as long as nobody else writes it.
class SessionFile {
 public:
  /// What is there, or nothing where there is no file yet. Throws io if it is no conversation, or
  /// nothing can be written there.
  static std::pair<SessionFile, std::optional<SavedChat>> open(const std::filesystem::path& path,
                                                               const GivenSettings& run);

  /// Puts it in the place of what was there. Throws io, and leaves the file, when that is no longer
  /// what was read or written here.
  void write(const SavedChat& chat);

 private:
  explicit SessionFile(std::filesystem::path path) : path_(std::move(path)) {}

  /// Tells two writings of a file apart.
  struct Identity {
    dev_t device = 0;
    ino_t inode = 0;
    off_t size = 0;
    std::int64_t nanoseconds = 0;  // when it was last written, to some milliseconds
    bool operator==(const Identity&) const = default;
  };
  std::optional<Identity> identity() const;

  std::filesystem::path path_;
  std::optional<Identity> known_;
};

}  // namespace heddle::cli
