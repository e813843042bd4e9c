// JSON as requests and replies have it: members keep their order, which schemas and templates show.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace heddle::server {

using Json = nlohmann::ordered_json;

/// Throws ApiError 400 saying where the text is no JSON, or nests deeper or has larger objects than
/// any sound request.
Json parse_json(std::string_view text);
/// On one line. Bytes that are no UTF-8 become U+FFFD.
std::string json_text(const Json& json);

/// The members of an object of a request. Whoever reads a request asks for each it knows; `finish`
/// refuses the others. `null` is as good as absent. Errors name the member, `path` before it.
class Fields {
 public:
  /// Refuses what is no object.
  explicit Fields(const Json& object, std::string path = "");

  const Json* find(std::string_view name);
  const Json& get(std::string_view name);
  std::optional<std::string> text(std::string_view name);
  std::string get_text(std::string_view name);
  std::optional<bool> flag(std::string_view name);
  std::optional<double> number(std::string_view name, double least, double most);
  std::optional<std::int64_t> whole(std::string_view name, std::int64_t least, std::int64_t most);

  /// Known, and of no effect on the reply.
  void ignore(std::initializer_list<std::string_view> names);
  /// Known, and refused with the reason, unless it says what is so anyway.
  void refuse(std::string_view name, const std::string& why, const Json& unless = nullptr);
  void finish() const;

  std::string path(std::string_view name) const;

 private:
  const Json& object_;
  std::string path_;
  std::set<std::string, std::less<>> known_;
};

/// A whole number within bounds from any JSON value; refuses others.
std::int64_t whole_number(const Json& value, const std::string& path, std::int64_t least,
                          std::int64_t most);

}  // namespace heddle::server
