#include "text/grammar/schema_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/check.h"
#include "text/grammar/expr.h"

namespace heddle::text::grammar {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;
constexpr int kMostNesting = 128;
constexpr std::size_t kMostSources = 1000;

std::string escaped(std::string_view key) {
  std::string token;
  for (const char c : key) {
    if (c == '~') {
      token += "~0";
    } else if (c == '/') {
      token += "~1";
    } else {
      token += c;
    }
  }
  return token;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/// URI fragments write some characters as %41.
std::string without_percents(std::string_view fragment) {
  std::string text;
  for (std::size_t i = 0; i < fragment.size(); ++i) {
    const bool coded = fragment[i] == '%' && i + 2 < fragment.size() &&
                       hex_digit(fragment[i + 1]) >= 0 && hex_digit(fragment[i + 2]) >= 0;
    text += coded ? static_cast<char>(hex_digit(fragment[i + 1]) * 16 + hex_digit(fragment[i + 2]))
                  : fragment[i];
    i += coded ? 2 : 0;
  }
  return text;
}

std::string unescaped(std::string_view token) {
  std::string key;
  for (std::size_t i = 0; i < token.size(); ++i) {
    const bool coded =
        token[i] == '~' && i + 1 < token.size() && (token[i + 1] == '0' || token[i + 1] == '1');
    key += coded ? (token[++i] == '0' ? '~' : '/') : token[i];
  }
  return key;
}

/// Nothing if there is no such element.
const Json* element(const Json& of, const std::string& key) {
  if (of.is_object()) {
    const auto at = of.find(key);
    return at == of.end() ? nullptr : &*at;
  }
  if (!of.is_array()) return nullptr;
  std::size_t index = 0;
  const auto parsed = std::from_chars(key.data(), key.data() + key.size(), index);
  const bool sound = parsed.ec == std::errc() && parsed.ptr == key.data() + key.size();
  return sound && index < of.size() ? &of[index] : nullptr;
}

}  // namespace

SchemaReader::SchemaReader(std::string_view text) {
  require(text.size() <= kMostBytes, ErrorCode::invalid_argument,
          "JSON schema: {} bytes are too long; the limit is {}", text.size(), kMostBytes);
  const auto check_depth = [](int depth, Json::parse_event_t, Json&) {
    require(depth <= kMostNesting, ErrorCode::invalid_argument,
            "JSON schema: it nests more than {} deep", kMostNesting);
    return true;
  };
  try {
    document_ = Json::parse(text, check_depth);
  } catch (const Json::exception& error) {
    fail(ErrorCode::invalid_argument, "JSON schema: it is no valid JSON: {}", error.what());
  }
}

Sources SchemaReader::root() const {
  return {{&document_, "#"}};
}

Source SchemaReader::child(const Source& parent, const char* keyword, std::string_view key) const {
  const Json& value = parent.schema->at(keyword);
  if (key.data() == nullptr) return {&value, parent.pointer_to(keyword)};
  return {&value.at(std::string(key)), parent.pointer_to(keyword) + "/" + escaped(key)};
}

Source SchemaReader::item(const Source& parent, const char* keyword, std::size_t index) const {
  return {&parent.schema->at(keyword)[index],
          fmt::format("{}/{}", parent.pointer_to(keyword), index)};
}

Source SchemaReader::target(const Source& source) const {
  const Json& ref = source.schema->at("$ref");
  require(ref.is_string() && ref.get_ref<const std::string&>().starts_with('#'),
          ErrorCode::unsupported,
          "JSON schema, {}/$ref: {} is not supported; only references within the schema are, such "
          "as \"#/$defs/name\"",
          source.pointer, ref.dump());
  const std::string pointer = without_percents(ref.get_ref<const std::string&>().substr(1));
  const Json* at = &document_;
  for (std::size_t begin = 0; begin < pointer.size() && at != nullptr;) {
    const std::size_t end = std::min(pointer.find('/', begin + 1), pointer.size());
    at = pointer[begin] == '/'
             ? element(*at, unescaped(std::string_view(pointer).substr(begin + 1, end - begin - 1)))
             : nullptr;
    begin = end;
  }
  require(at != nullptr, ErrorCode::invalid_argument,
          "JSON schema, {}/$ref: there is nothing at {}", source.pointer, ref.dump());
  return {at, "#" + pointer};
}

void SchemaReader::follow(Sources& sources) const {
  const Sources given = std::move(sources);
  sources.clear();
  for (const Source& source : given) add(sources, source);
}

void SchemaReader::add(Sources& sources, Source source) const {
  const std::size_t first = sources.size();
  const auto add_one = [&](Source one) {
    for (std::size_t i = one.via; i != Source::kNone; i = sources[i].via) {
      require(sources[i].schema != one.schema, ErrorCode::invalid_argument,
              "JSON schema, {}: it refers to itself with nothing in between", one.pointer);
    }
    require(one.schema->is_object() || one.schema->is_boolean(), ErrorCode::invalid_argument,
            "JSON schema, {}: a schema is an object, true or false; this is {}", one.pointer,
            one.schema->type_name());
    const auto is_it = [&](const Source& s) { return s.schema == one.schema; };
    if (std::any_of(sources.begin(), sources.end(), is_it)) return;
    require(sources.size() < kMostSources, ErrorCode::unsupported,
            "JSON schema, {}: more than {} schemas hold for one value", one.pointer, kMostSources);
    sources.push_back(std::move(one));
  };
  add_one(std::move(source));
  for (std::size_t i = first; i < sources.size(); ++i) {
    if (sources[i].has("$ref")) {
      Source one = target(sources[i]);
      one.via = i;
      add_one(std::move(one));
    }
    const Json* all_of = find_array(sources[i], "allOf");
    for (std::size_t branch = 0; all_of != nullptr && branch < all_of->size(); ++branch) {
      Source one = item(sources[i], "allOf", branch);
      one.via = i;
      add_one(std::move(one));
    }
  }
}

const Json* find_object(const Source& source, const char* keyword) {
  const Json* value = source.find(keyword);
  require(value == nullptr || value->is_object(), ErrorCode::invalid_argument,
          "JSON schema, {}/{}: expected an object", source.pointer, keyword);
  return value;
}

const Json* find_array(const Source& source, const char* keyword) {
  const Json* value = source.find(keyword);
  require(value == nullptr || value->is_array(), ErrorCode::invalid_argument,
          "JSON schema, {}/{}: expected an array", source.pointer, keyword);
  return value;
}

std::uint32_t count_or(const Source& source, const char* keyword, std::uint32_t fallback) {
  const Json* value = source.find(keyword);
  if (value == nullptr) return fallback;
  const bool is_count = value->is_number() && value->get<double>() >= 0 &&
                        value->get<double>() == std::floor(value->get<double>());
  require(is_count, ErrorCode::invalid_argument,
          "JSON schema, {}/{}: expected a whole number, 0 or more; this is {}", source.pointer,
          keyword, value->dump());
  require(value->get<double>() <= Expr::kMostRepetitions, ErrorCode::unsupported,
          "JSON schema, {}/{}: {} is too large; the limit is {}", source.pointer, keyword,
          value->dump(), Expr::kMostRepetitions);
  return static_cast<std::uint32_t>(value->get<double>());
}

}  // namespace heddle::text::grammar
