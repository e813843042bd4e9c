#include "text/grammar/schema_types.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "text/grammar/formats.h"

namespace heddle::text::grammar {
namespace {

struct TypeName {
  std::string_view name;
  Types types;
};
constexpr TypeName kTypeNames[] = {{"null", kNull},    {"boolean", kBoolean}, {"object", kObject},
                                   {"array", kArray},  {"string", kString},   {"integer", kInteger},
                                   {"number", kNumber}};

struct KeywordTypes {
  const char* keyword;
  Types types;  // that it says something about
};
constexpr KeywordTypes kKeywordTypes[] = {
    {"properties", kObject},       {"required", kObject},         {"additionalProperties", kObject},
    {"minProperties", kObject},    {"maxProperties", kObject},    {"items", kArray},
    {"prefixItems", kArray},       {"minItems", kArray},          {"maxItems", kArray},
    {"minLength", kString},        {"maxLength", kString},        {"pattern", kString},
    {"format", kString},           {"minimum", kNumber},          {"maximum", kNumber},
    {"exclusiveMinimum", kNumber}, {"exclusiveMaximum", kNumber}, {"multipleOf", kNumber}};

/// Keywords of the specification that constrain values and are not enforced here.
constexpr KeywordTypes kUnsupported[] = {{"not", kAllTypes},
                                         {"if", kAllTypes},
                                         {"$dynamicRef", kAllTypes},
                                         {"$recursiveRef", kAllTypes},
                                         {"patternProperties", kObject},
                                         {"propertyNames", kObject},
                                         {"dependencies", kObject},
                                         {"dependentRequired", kObject},
                                         {"dependentSchemas", kObject},
                                         {"unevaluatedProperties", kObject},
                                         {"contains", kArray},
                                         {"uniqueItems", kArray},
                                         {"unevaluatedItems", kArray}};

Types named(const Source& source, const Json& name) {
  for (const TypeName& type : kTypeNames) {
    if (name.is_string() && name.get_ref<const std::string&>() == type.name) return type.types;
  }
  fail(ErrorCode::invalid_argument, "JSON schema, {}/type: {} is no type", source.pointer,
       name.dump());
}

Types declared(const Source& source) {
  const Json* type = source.find("type");
  if (type == nullptr) return kAllTypes;
  Types types = 0;
  if (type->is_array()) {
    for (const Json& one : *type) types |= named(source, one);
  } else {
    types = named(source, *type);
  }
  const Json* nullable = source.find("nullable");  // OpenAPI 3.0
  return nullable != nullptr && *nullable == true ? types | kNull : types;
}

/// The types that some keyword is about.
Types keyword_types(const Sources& sources) {
  Types types = 0;
  for (const Source& source : sources) {
    for (const KeywordTypes& entry : kKeywordTypes) {
      if (source.has(entry.keyword)) types |= entry.types;
    }
  }
  return types;
}

/// A keyword that is there but asks for nothing.
bool is_idle(const Source& source, const std::string& keyword) {
  const Json& value = source.schema->at(keyword);
  if (keyword == "uniqueItems") return value == false;
  if (keyword == "if") return !source.has("then") && !source.has("else");
  return value == true || (value.is_object() && value.empty() && keyword != "not");
}

Decimal decimal_of(const Source& source, const char* keyword, const Json& value) {
  require(value.is_number(), ErrorCode::invalid_argument,
          "JSON schema, {}/{}: expected a number; this is {}", source.pointer, keyword,
          value.dump());
  const std::optional<Decimal> decimal = parse_decimal(value.dump());
  require(decimal.has_value(), ErrorCode::unsupported, "JSON schema, {}/{}: {} has too many digits",
          source.pointer, keyword, value.dump());
  return *decimal;
}

void add_bound(const Source& source, std::optional<Bound>& bound, bool upper) {
  const char* inclusive = upper ? "maximum" : "minimum";
  const char* exclusive = upper ? "exclusiveMaximum" : "exclusiveMinimum";
  const Json* other = source.find(exclusive);
  const bool flag = other != nullptr && other->is_boolean();  // until draft 4
  if (const Json* value = source.find(inclusive)) {
    const Decimal decimal = decimal_of(source, inclusive, *value);
    bound = tighter(bound, {decimal, flag && *other == true}, upper);
  }
  if (other != nullptr && !flag)
    bound = tighter(bound, {decimal_of(source, exclusive, *other), true}, upper);
}

std::uint32_t common_multiple(const Source& source, std::uint32_t so_far) {
  const Json* value = source.find("multipleOf");
  if (value == nullptr) return so_far;
  constexpr std::uint32_t kMost = 1000;
  const Decimal decimal = decimal_of(source, "multipleOf", *value);
  require(!decimal.negative && !decimal.is_zero(), ErrorCode::invalid_argument,
          "JSON schema, {}/multipleOf: {} is not above 0", source.pointer, value->dump());
  const bool is_small = decimal.fraction.empty() && decimal.whole.size() <= 4;
  const std::uint32_t multiple =
      is_small ? std::lcm(so_far, static_cast<std::uint32_t>(std::stoul(decimal.whole))) : 0;
  require(multiple > 0 && multiple <= kMost, ErrorCode::unsupported,
          "JSON schema, {}/multipleOf: {} is not supported; whole numbers up to {} are",
          source.pointer, value->dump(), kMost);
  return multiple;
}

void add_format(const Source& source, StringRules& rules, SchemaWork& work) {
  const Json* format = source.find("format");
  if (format == nullptr) return;
  require(format->is_string(), ErrorCode::invalid_argument,
          "JSON schema, {}/format: expected a string", source.pointer);
  const auto pattern = format_pattern(format->get_ref<const std::string&>());
  require(pattern.has_value(), ErrorCode::unsupported,
          "JSON schema, {}/format: {} is not supported; {} are", source.pointer, format->dump(),
          known_formats());
  rules.languages.push_back(&work.pattern(*pattern, "JSON schema, " + source.pointer_to("format")));
}

bool string_keeps_to(const StringRules& rules, const std::string& text) {
  const std::size_t length = char_count(text);
  return length >= rules.min && length <= rules.max &&
         std::all_of(rules.languages.begin(), rules.languages.end(),
                     [&](const CharDfa* language) { return language->accepts(text); });
}

/// For values of `enum`: objects and arrays are only let through where nothing else is asked.
void refuse_structure(const Sources& sources, Types type) {
  for (const Source& source : sources) {
    for (const KeywordTypes& entry : kKeywordTypes) {
      require(entry.types != type || !source.has(entry.keyword), ErrorCode::unsupported,
              "JSON schema, {}/{}: not supported together with an enum or const of objects or "
              "arrays",
              source.pointer, entry.keyword);
    }
  }
}

}  // namespace

Types declared_types(const Sources& sources) {
  Types types = kAllTypes;
  for (const Source& source : sources) types &= declared(source);
  return types;
}

Types types_of(const Sources& sources) {
  const bool is_declared = std::any_of(sources.begin(), sources.end(), [](const Source& s) {
    return s.has("type") || s.has("enum") || s.has("const");
  });
  const Types about = keyword_types(sources);
  return is_declared || about == 0 ? declared_types(sources) : about;
}

bool says_anything(const Sources& sources) {
  return keyword_types(sources) != 0;
}

Types type_of(const Json& value) {
  if (value.is_null()) return kNull;
  if (value.is_boolean()) return kBoolean;
  if (value.is_object()) return kObject;
  if (value.is_array()) return kArray;
  if (value.is_string()) return kString;
  const std::optional<Decimal> decimal = parse_decimal(value.dump());
  return !decimal || decimal->fraction.empty() ? kInteger : kFraction;
}

void check_keywords(const Sources& sources, Types types) {
  for (const Source& source : sources) {
    for (const KeywordTypes& entry : kUnsupported) {
      const bool matters = (entry.types & types) != 0 && source.has(entry.keyword);
      require(!matters || is_idle(source, entry.keyword), ErrorCode::unsupported,
              "JSON schema, {}/{}: this keyword is not supported", source.pointer, entry.keyword);
    }
  }
}

StringRules string_rules(const Sources& sources, SchemaWork& work) {
  StringRules rules;
  for (const Source& source : sources) {
    rules.min = std::max(rules.min, count_or(source, "minLength", 0));
    rules.max = std::min(rules.max, count_or(source, "maxLength", rules.max));
    if (const Json* pattern = source.find("pattern")) {
      require(pattern->is_string(), ErrorCode::invalid_argument,
              "JSON schema, {}/pattern: expected a string", source.pointer);
      rules.languages.push_back(&work.pattern(pattern->get_ref<const std::string&>(),
                                              "JSON schema, " + source.pointer_to("pattern")));
    }
    add_format(source, rules, work);
  }
  return rules;
}

NumberRange number_range(const Sources& sources, bool integer) {
  NumberRange range;
  range.integer = integer;
  for (const Source& source : sources) {
    add_bound(source, range.min, false);
    add_bound(source, range.max, true);
    range.multiple_of = common_multiple(source, range.multiple_of);
    range.integer = range.integer || source.find("multipleOf") != nullptr;  // of whole numbers
    const Json* format = source.find("format");
    if (format == nullptr || *format != "int32") continue;  // OpenAPI; others hold 15 digits
    range.min = tighter(range.min, {{true, "2147483648", ""}, false}, false);
    range.max = tighter(range.max, {{false, "2147483647", ""}, false}, true);
  }
  return range;
}

std::optional<std::vector<Json>> enumerated(const Sources& sources, Types types, SchemaWork& work) {
  std::optional<std::vector<Json>> values;
  const auto keep = [&](const Json* allowed, const Json* end) {
    const auto count = static_cast<std::size_t>(end - allowed);
    work.spend(values ? values->size() * count : count);
    if (!values) {
      values.emplace(allowed, end);
    } else {
      std::erase_if(*values, [&](const Json& v) { return std::find(allowed, end, v) == end; });
    }
  };
  for (const Source& source : sources) {
    if (const Json* one = source.find("const")) keep(one, one + 1);
    if (const Json* all = find_array(source, "enum")) {
      const std::vector<Json>& list = *all->get_ptr<const Json::array_t*>();
      keep(list.data(), list.data() + list.size());
    }
  }
  if (!values) return std::nullopt;
  std::erase_if(*values, [&](const Json& v) { return (type_of(v) & types) == 0; });
  Types found = 0;
  for (const Json& value : *values) found |= type_of(value);
  for (const Types type : {kObject, kArray}) {
    if ((found & type) != 0) refuse_structure(sources, type);
  }
  const StringRules strings = (found & kString) != 0 ? string_rules(sources, work) : StringRules();
  const NumberRange numbers = (found & kNumber) != 0 ? number_range(sources, false) : NumberRange();
  std::erase_if(*values, [&](const Json& v) {
    if (v.is_string()) return !string_keeps_to(strings, v.get_ref<const std::string&>());
    const std::optional<Decimal> d = v.is_number() ? parse_decimal(v.dump()) : std::nullopt;
    return d && !numbers.contains(*d);
  });
  return values;
}

}  // namespace heddle::text::grammar
