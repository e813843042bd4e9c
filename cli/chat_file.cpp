#include "cli/chat_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>

#include "base/check.h"
#include "cli/output.h"
#include "io/atomic_file.h"

namespace heddle::cli {

namespace {

using nlohmann::json;
using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "heddle chat";
constexpr int kVersion = 1;
constexpr mode_t kOwnerOnly = 0600;
constexpr std::uintmax_t kMostBytes = std::uintmax_t{1} << 30;
constexpr std::chrono::minutes kAbandoned{10};  // a writing takes seconds

/// Each setting with its name in the file, which is that of the option with underscores.
template <class Settings, class Visit>
void each_setting(Settings& s, const Visit& visit) {
  visit("n_predict", s.max_tokens);
  visit("stop", s.stop);
  visit("temp", s.sampler.temperature);
  visit("top_k", s.sampler.top_k);
  visit("top_p", s.sampler.top_p);
  visit("min_p", s.sampler.min_p);
  visit("repeat_penalty", s.sampler.repeat_penalty);
  visit("repeat_last_n", s.sampler.repeat_last_n);
  visit("seed", s.sampler.seed);
}

template <class T>
Json json_of(const T& value) {
  return value;
}
/// With as many digits as tell a float from its neighbours.
Json json_of(float value) {
  return Json::parse(fmt::format("{}", value));
}

/// Reads a file's values; its errors name the file and the field.
class Reader {
 public:
  explicit Reader(const std::string& name) : name_(name) {}

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorCode::io, "{}: {}", name_, fmt::format(format, std::forward<Args>(args)...));
  }

  const json& at(const json& object, const char* key) const {
    const auto found = object.find(key);
    if (found == object.end()) refuse("no conversation of heddle chat: '{}' is missing", key);
    return *found;
  }

  void read(const json& value, const char* key, std::string& into) const {
    if (!value.is_string()) refuse("'{}' is not a text", key);
    into = value.get<std::string>();
  }
  void read(const json& value, const char* key, float& into) const {
    if (!value.is_number()) refuse("'{}' is not a number", key);
    into = value.get<float>();
  }
  void read(const json& value, const char* key, std::uint64_t& into) const {
    if (!value.is_number_unsigned()) refuse("'{}' is not a whole number, 0 or more", key);
    into = value.get<std::uint64_t>();
  }
  void read(const json& value, const char* key, std::int64_t& into) const {
    if (!value.is_number_integer()) refuse("'{}' is not a whole number", key);
    const bool fits = !value.is_number_unsigned() || value.get<std::uint64_t>() >> 63 == 0;
    if (!fits || value.get<std::int64_t>() < -1) refuse("'{}' is out of range", key);
    into = value.get<std::int64_t>();
  }
  void read(const json& value, const char* key, std::vector<std::string>& into) const {
    if (!value.is_array()) refuse("'{}' is not a list", key);
    for (const json& element : value) read(element, key, into.emplace_back());
  }

 private:
  const std::string& name_;
};

void read_messages(const Reader& reader, const json& messages, SavedChat& chat) {
  if (!messages.is_array()) reader.refuse("'messages' is not a list");
  std::size_t number = 0;
  for (const json& message : messages) {
    ++number;
    std::string role, content;
    reader.read(reader.at(message, "role"), "role", role);
    reader.read(reader.at(message, "content"), "content", content);
    const bool wants_reply = !chat.turns.empty() && !chat.turns.back().reply;
    if (role == "system" && number == 1)
      chat.system = std::move(content);
    else if (role == "user" && !wants_reply)
      chat.turns.push_back({std::move(content), std::nullopt});
    else if (role == "assistant" && wants_reply)
      chat.turns.back().reply = std::move(content);
    else
      reader.refuse("message {} is of role '{}'; expected '{}'", number, role,
                    wants_reply ? "assistant" : "user");
  }
}

void read_settings(const Reader& reader, const json& from, const GivenSettings& run,
                   ChatSettings& settings) {
  if (!from.is_object()) reader.refuse("'settings' is not an object");
  settings = run.values;
  each_setting(settings, [&](const char* key, auto& value) {
    const auto found = from.find(key);
    if (found == from.end() || run.given.contains(key)) return;
    value = {};
    reader.read(*found, key, value);
  });
  if (const auto replies = from.find("replies"); replies != from.end())
    reader.read(*replies, "replies", settings.replies);
  try {
    const llm::Sampler check(settings.sampler);
  } catch (const Error& error) {
    reader.refuse("{}", error.what());
  }
}

}  // namespace

std::string chat_json(const SavedChat& chat) {
  Json messages = Json::array();
  const auto add = [&messages](const char* role, const std::string& content) {
    messages.push_back({{"role", role}, {"content", content}});
  };
  if (!chat.system.empty()) add("system", chat.system);
  for (const llm::ChatTurn& turn : chat.turns) {
    add("user", turn.user);
    if (turn.reply) add("assistant", *turn.reply);
  }
  Json settings = Json::object();
  each_setting(chat.settings,
               [&](const char* key, const auto& value) { settings[key] = json_of(value); });
  settings["replies"] = chat.settings.replies;
  const Json all{{"format", kFormat},
                 {"version", kVersion},
                 {"model", chat.model},
                 {"settings", std::move(settings)},
                 {"messages", std::move(messages)}};
  return all.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

SavedChat parse_chat(std::string_view text, const std::string& name, const GivenSettings& run) {
  const Reader reader(name);
  json all;
  try {
    all = json::parse(text);
  } catch (const json::exception& error) {
    reader.refuse("no conversation of heddle chat, or a broken one: {}", error.what());
  }
  if (!all.is_object() || all.value("format", json()) != kFormat)
    reader.refuse("JSON, but no conversation of heddle chat");
  std::int64_t version = 0;
  reader.read(reader.at(all, "version"), "version", version);
  if (version != kVersion)
    reader.refuse("a conversation in version {} of the format; this heddle reads {}", version,
                  kVersion);
  SavedChat chat;
  reader.read(reader.at(all, "model"), "model", chat.model);
  read_settings(reader, reader.at(all, "settings"), run, chat.settings);
  read_messages(reader, reader.at(all, "messages"), chat);
  return chat;
}

namespace {

void write_whole(const std::filesystem::path& path, const SavedChat& chat) {
  const std::string text = chat_json(chat);
  AtomicFile file(path, kOwnerOnly);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

/// Renaming replaces a link, not what it points to.
std::filesystem::path without_links(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::path real = std::filesystem::canonical(path, error);
  return error ? path : real;
}

SavedChat read_with(const std::filesystem::path& path, const GivenSettings& run) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);  // of files only
  require(!error, ErrorCode::io, "{}: {}", path.string(), error.message());
  require(size <= kMostBytes, ErrorCode::io, "{}: {} bytes are more than a conversation has",
          path.string(), size);
  return parse_chat(read_file(path), path.string(), run);
}

}  // namespace

SavedChat read_chat(const std::filesystem::path& path) {
  return read_with(path, {});
}

void write_chat(const std::filesystem::path& path, const SavedChat& chat) {
  const std::filesystem::path real = without_links(path);
  if (std::filesystem::exists(real)) {
    try {
      read_chat(real);
    } catch (const Error& error) {
      fail(ErrorCode::io, "{}; it is left as it is: choose another name", error.what());
    }
  }
  write_whole(real, chat);
}

std::pair<SessionFile, std::optional<SavedChat>> SessionFile::open(
    const std::filesystem::path& path, const GivenSettings& run) {
  SessionFile file(without_links(path));
  remove_abandoned(file.path_, kAbandoned);
  file.known_ = file.identity();
  std::optional<SavedChat> chat;
  if (file.known_) {
    try {
      chat = read_with(file.path_, run);
    } catch (const Error& error) {
      fail(ErrorCode::io, "{}; it is left as it is: move it away, or give --session another name",
           error.what());
    }
  }
  AtomicFile(file.path_, kOwnerOnly);  // that it can be written is better known before than after
  return {std::move(file), std::move(chat)};
}

void SessionFile::write(const SavedChat& chat) {
  require(identity() == known_, ErrorCode::io,
          "{}: another program has changed it; it is left as it is (/save FILE keeps this "
          "conversation)",
          path_.string());
  write_whole(path_, chat);
  known_ = identity();
}

std::optional<SessionFile::Identity> SessionFile::identity() const {
  struct stat status {};
  if (::stat(path_.c_str(), &status) != 0) {
    require(errno == ENOENT, ErrorCode::io, "{}: {}", path_.string(), std::strerror(errno));
    return std::nullopt;
  }
  const std::int64_t seconds = status.st_mtim.tv_sec;
  return Identity{status.st_dev, status.st_ino, status.st_size,
                  seconds * 1'000'000'000 + status.st_mtim.tv_nsec};
}

}  // namespace heddle::cli
