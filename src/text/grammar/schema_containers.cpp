// Objects and arrays.
#include <algorithm>
#include <set>

#include "base/check.h"
#include "text/grammar/schema_compiler.h"

namespace heddle::text::grammar {
namespace {

constexpr std::size_t kMostProperties = 5000;
constexpr std::size_t kMostObjectRules = 20'000;
const Json kAnything = true;

/// How many properties there may be.
struct Counts {
  std::uint32_t min = 0, max = Expr::kUnbounded;
};

Counts property_counts(const Sources& sources) {
  Counts counts;
  for (const Source& source : sources) {
    counts.min = std::max(counts.min, count_or(source, "minProperties", 0));
    counts.max = std::min(counts.max, count_or(source, "maxProperties", counts.max));
  }
  return counts;
}

Counts item_counts(const Sources& sources) {
  Counts counts;
  for (const Source& source : sources) {
    counts.min = std::max(counts.min, count_or(source, "minItems", 0));
    counts.max = std::min(counts.max, count_or(source, "maxItems", counts.max));
  }
  return counts;
}

/// prefixItems, or what it was called before 2020: an array in items.
const char* prefix_keyword(const Source& source) {
  const Json* items = source.find("items");
  return items != nullptr && items->is_array() ? "items" : "prefixItems";
}
const char* rest_keyword(const Source& source) {
  return std::string_view(prefix_keyword(source)) == "items" ? "additionalItems" : "items";
}
std::size_t prefix_size(const Source& source) {
  const Json* prefix = find_array(source, prefix_keyword(source));
  return prefix == nullptr ? 0 : prefix->size();
}

Expr after_comma(Expr pair, std::uint32_t before) {
  return before == 0 ? std::move(pair) : make_sequence({json_comma(), std::move(pair)});
}

/// What may come after the properties that have names, by the number of properties before.
std::vector<Expr> after_named(const std::optional<Expr>& additional, Counts counts,
                              std::uint32_t counted) {
  std::vector<Expr> rest;
  for (std::uint32_t before = 0; before <= counted; ++before) {
    std::vector<Expr> ways;
    if (before >= counts.min && before <= counts.max) ways.push_back(make_text(""));
    // Names may come twice, which counts once: only the first is sure to count.
    if (additional && before + 1 >= counts.min && before < counts.max) {
      const std::uint32_t most =
          counts.max == Expr::kUnbounded ? Expr::kUnbounded : counts.max - before - 1;
      ways.push_back(make_sequence(
          {after_comma(*additional, before), make_repeat(after_comma(*additional, 1), 0, most)}));
    }
    rest.push_back(make_choice(std::move(ways)));
  }
  return rest;
}

}  // namespace

SchemaCompiler::Property SchemaCompiler::property(const Sources& sources,
                                                  const std::string& name) const {
  Property property{name, {}};
  for (const Source& source : sources) {
    const Json* properties = find_object(source, "properties");
    if (properties != nullptr && properties->contains(name)) {
      property.sources.push_back(reader_.child(source, "properties", name));
    } else if (source.has("additionalProperties")) {
      property.sources.push_back(reader_.child(source, "additionalProperties"));
    }
  }
  for (const Source& source : property.sources)
    property.forbidden |= source.schema->is_boolean() && *source.schema == false;
  if (property.sources.empty()) property.sources.push_back({&kAnything, "#"});
  return property;
}

/// In the order in which the schemas give them, and then those that are only required.
std::vector<SchemaCompiler::Property> SchemaCompiler::properties_of(const Sources& sources) const {
  std::vector<Property> properties;
  std::map<std::string, std::size_t> at;
  const auto add = [&](const std::string& name) -> Property& {
    const auto [known, is_new] = at.emplace(name, properties.size());
    if (is_new) properties.push_back(property(sources, name));
    require(properties.size() <= kMostProperties, ErrorCode::unsupported,
            "JSON schema, {}: more than {} properties", sources.front().pointer, kMostProperties);
    return properties[known->second];
  };
  for (const Source& source : sources) {
    const Json* named = find_object(source, "properties");
    if (named == nullptr) continue;
    for (const auto& [name, value] : named->items()) add(name);
  }
  for (const Source& source : sources) {
    const Json* required = find_array(source, "required");
    if (required == nullptr) continue;
    for (const Json& name : *required) {
      require(name.is_string(), ErrorCode::invalid_argument,
              "JSON schema, {}/required: expected strings; this is {}", source.pointer,
              name.dump());
      add(name.get_ref<const std::string&>()).required = true;
    }
  }
  return properties;
}

/// A property that has no schema of its own; nothing where there must be none.
std::optional<Expr> SchemaCompiler::additional_pair(const Sources& sources,
                                                    const std::vector<Property>& properties) {
  Sources values;
  bool names_some = false;
  for (const Source& source : sources) {
    names_some |= source.has("properties");
    if (!source.has("additionalProperties")) continue;
    values.push_back(reader_.child(source, "additionalProperties"));
    if (*values.back().schema == false) return std::nullopt;
  }
  if (values.empty() && names_some) return std::nullopt;
  std::vector<std::string> names;
  for (const Property& p : properties) names.push_back(p.name);
  Expr key = names.empty()
                 ? open_.string()
                 : make_rule(add_rule("a property's name", json_strings(other_than(names))));
  const bool is_open =
      values.empty() ||
      std::all_of(values.begin(), values.end(), [](const Source& s) { return *s.schema == true; });
  Expr value = is_open ? open_.value() : make_rule(rule_for_child(std::move(values)));
  return make_sequence({std::move(key), json_colon(), std::move(value)});
}

/// One rule for what may come from each property on, for each number of properties before it that
/// makes a difference. They call each other last, so nothing is left to be done after them.
Expr SchemaCompiler::compile_object(const Sources& sources) {
  std::vector<Property> properties = properties_of(sources);
  const std::optional<Expr> additional = additional_pair(sources, properties);
  Counts counts = property_counts(sources);
  const auto is_required = [](const Property& p) { return p.required; };
  const auto required =
      static_cast<std::uint32_t>(std::count_if(properties.begin(), properties.end(), is_required));
  for (const Property& p : properties) {
    if (p.required && p.forbidden) return make_choice({});
  }
  std::erase_if(properties, [](const Property& p) { return p.forbidden; });
  if (counts.min <= required) counts.min = 0;
  if (!additional && counts.max >= properties.size()) counts.max = Expr::kUnbounded;
  // More than this many before makes no difference.
  const std::uint32_t counted =
      std::max({std::uint32_t{1}, counts.min, counts.max == Expr::kUnbounded ? 0 : counts.max});
  require(counted < kMostObjectRules && counted * properties.size() <= kMostObjectRules,
          ErrorCode::unsupported,
          "JSON schema, {}: so many properties cannot be counted for minProperties and "
          "maxProperties",
          sources.front().pointer);

  std::vector<Expr> rest = after_named(additional, counts, counted);
  for (auto p = properties.rbegin(); p != properties.rend(); ++p) {
    const Expr pair = make_sequence(
        {make_text(json_string(p->name)), json_colon(), make_rule(rule_for_child(p->sources))});
    for (Expr& way : rest) way = make_rule(add_rule(p->name, std::move(way)));
    std::vector<Expr> from_here;
    for (std::uint32_t before = 0; before <= counted; ++before) {
      std::vector<Expr> ways;
      if (before < counts.max) {
        ways.push_back(
            make_sequence({after_comma(pair, before), rest[std::min(before + 1, counted)]}));
      }
      if (!p->required) ways.push_back(rest[before]);
      from_here.push_back(make_choice(std::move(ways)));
    }
    rest = std::move(from_here);
  }
  return make_sequence({make_text("{"), std::move(rest.front()), make_text("}")});
}

Sources SchemaCompiler::element_sources(const Sources& sources, std::size_t index,
                                        bool& forbidden) const {
  Sources element;
  bool is_named = false, is_tuple = false;
  for (const Source& source : sources) {
    is_tuple |= prefix_size(source) > 0;
    if (index < prefix_size(source)) {
      element.push_back(reader_.item(source, prefix_keyword(source), index));
      is_named = true;
    } else if (source.has(rest_keyword(source))) {
      element.push_back(reader_.child(source, rest_keyword(source)));
      is_named = true;
    }
  }
  for (const Source& source : element)
    forbidden |= source.schema->is_boolean() && *source.schema == false;
  forbidden |= is_tuple && !is_named;
  if (element.empty()) element.push_back({&kAnything, "#"});
  return element;
}

Expr SchemaCompiler::compile_array(const Sources& sources) {
  Counts counts = item_counts(sources);
  std::size_t prefix = 0;
  for (const Source& source : sources) prefix = std::max(prefix, prefix_size(source));
  require(prefix <= kMostProperties, ErrorCode::unsupported,
          "JSON schema, {}: more than {} prefixItems", sources.front().pointer, kMostProperties);
  std::vector<Expr> elements;
  for (std::size_t i = 0; i <= prefix && i < counts.max; ++i) {
    bool forbidden = false;
    Sources element = element_sources(sources, i, forbidden);
    if (forbidden) counts.max = std::min(counts.max, static_cast<std::uint32_t>(i));
    const bool is_open = element.size() == 1 && *element.front().schema == true;
    if (!forbidden)
      elements.push_back(is_open ? open_.value() : make_rule(rule_for_child(std::move(element))));
  }
  if (counts.min > counts.max) return make_choice({});
  if (prefix == 0)
    return json_list("[", elements.empty() ? make_text("") : elements.front(), counts.min,
                     counts.max, "]");

  // From the last element of the prefix to the first: what may come after it.
  Expr rest = make_text("");
  const auto end = static_cast<std::uint32_t>(std::min<std::size_t>(prefix, counts.max));
  if (counts.max > prefix) {
    const std::uint32_t min = counts.min > end ? counts.min - end : 0;
    const std::uint32_t max = counts.max == Expr::kUnbounded ? counts.max : counts.max - end;
    rest = make_repeat(make_sequence({json_comma(), elements.back()}), min, max);
  }
  for (std::uint32_t i = end; i-- > 0;) {
    rest = make_rule(add_rule("an array's rest", std::move(rest)));
    rest = make_sequence({i == 0 ? make_text("") : json_comma(), elements[i], std::move(rest)});
    if (i >= counts.min) rest = make_optional(std::move(rest));
  }
  return make_sequence({make_text("["), std::move(rest), make_text("]")});
}

}  // namespace heddle::text::grammar
