#include "server/json.h"

#include <cmath>
#include <vector>

#include "server/api_error.h"

namespace heddle::server {

namespace {

constexpr int kMostDepth = 64;
/// Ordered objects are searched from the front.
constexpr std::size_t kMostMembers = 1024;

/// Counts what a hostile text could make slow or deep.
class Bounds {
 public:
  bool operator()(int depth, nlohmann::json::parse_event_t event, Json&) {
    using Event = nlohmann::json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) {
      if (depth >= kMostDepth)
        throw ApiError(400, fmt::format("the body nests deeper than {}", kMostDepth));
      members_.push_back(0);
    } else if (event == Event::object_end || event == Event::array_end) {
      members_.pop_back();
    } else if (event == Event::key && ++members_.back() > kMostMembers) {
      throw ApiError(400, fmt::format("an object has more than {} members", kMostMembers));
    }
    return true;
  }

 private:
  std::vector<std::size_t> members_;
};

/// What nlohmann's message says, without its number.
std::string plain(const std::string& what) {
  const std::size_t end = what.find("] ");
  return end == std::string::npos ? what : what.substr(end + 2);
}

const char* kind_of(const Json& value) {
  return value.is_number() ? "a number" : value.is_boolean() ? "a boolean" : value.type_name();
}

}  // namespace

Json parse_json(std::string_view text) {
  try {
    Bounds bounds;
    return Json::parse(text, [&](int depth, auto event, Json& value) {
      return bounds(depth, static_cast<nlohmann::json::parse_event_t>(event), value);
    });
  } catch (const nlohmann::json::exception& error) {
    throw ApiError(400, "the body is no JSON: " + plain(error.what()));
  }
}

std::string json_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Fields::Fields(const Json& object, std::string path) : object_(object), path_(std::move(path)) {
  if (!object.is_object())
    refuse_field(path_, "{} is {}; expected an object", path_.empty() ? "the body" : path_,
                 kind_of(object));
}

std::string Fields::path(std::string_view name) const {
  return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
}

const Json* Fields::find(std::string_view name) {
  known_.emplace(name);
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

const Json& Fields::get(std::string_view name) {
  const Json* value = find(name);
  if (!value) refuse_field(path(name), "{} is missing", path(name));
  return *value;
}

std::optional<std::string> Fields::text(std::string_view name) {
  const Json* value = find(name);
  if (!value) return std::nullopt;
  if (!value->is_string())
    refuse_field(path(name), "{} is {}; expected a string", path(name), kind_of(*value));
  return value->get<std::string>();
}

std::string Fields::get_text(std::string_view name) {
  get(name);
  return *text(name);
}

std::optional<bool> Fields::flag(std::string_view name) {
  const Json* value = find(name);
  if (!value) return std::nullopt;
  if (!value->is_boolean())
    refuse_field(path(name), "{} is {}; expected true or false", path(name), kind_of(*value));
  return value->get<bool>();
}

std::optional<double> Fields::number(std::string_view name, double least, double most) {
  const Json* value = find(name);
  if (!value) return std::nullopt;
  if (!value->is_number())
    refuse_field(path(name), "{} is {}; expected a number", path(name), kind_of(*value));
  const auto number = value->get<double>();
  if (!(number >= least && number <= most))
    refuse_field(path(name), "{} is {}; expected {} to {}", path(name), number, least, most);
  return number;
}

std::int64_t whole_number(const Json& value, const std::string& path, std::int64_t least,
                          std::int64_t most) {
  if (!value.is_number())
    refuse_field(path, "{} is {}; expected a whole number", path, kind_of(value));
  const bool too_large = value.is_number_unsigned() && value.get<std::uint64_t>() >> 63 != 0;
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (value.is_number_float()) {
    const auto number = value.get<double>();
    if (std::trunc(number) != number || std::abs(number) > kExact)
      refuse_field(path, "{} is {}; expected a whole number", path, number);
  }
  const std::int64_t whole = too_large ? 0 : value.get<std::int64_t>();
  if (too_large || whole < least || whole > most)
    refuse_field(path, "{} is {}; expected {} to {}", path, value.dump(), least, most);
  return whole;
}

std::optional<std::int64_t> Fields::whole(std::string_view name, std::int64_t least,
                                          std::int64_t most) {
  const Json* value = find(name);
  if (!value) return std::nullopt;
  return whole_number(*value, path(name), least, most);
}

void Fields::ignore(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) known_.emplace(name);
}

void Fields::refuse(std::string_view name, const std::string& why, const Json& unless) {
  const Json* value = find(name);
  if (value && *value != unless)
    refuse_field(path(name), "{} is not supported: {}", path(name), why);
}

void Fields::finish() const {
  for (const auto& [name, value] : object_.items()) {
    if (!known_.contains(name) && !value.is_null())
      refuse_field(path(name), "there is no field '{}' here", path(name));
  }
}

}  // namespace heddle::server
