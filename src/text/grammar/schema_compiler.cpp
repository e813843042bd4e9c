#include "text/grammar/schema_compiler.h"

#include "base/check.h"
#include "text/grammar/json_schema.h"

namespace heddle::text::grammar {
namespace {

constexpr std::size_t kMostRules = 30'000;
constexpr std::size_t kMostStates = 500'000;
constexpr std::size_t kMostOneOf = 256;

std::string key_of(const Sources& sources) {
  std::string key;
  for (const Source& s : sources) {
    key += fmt::format("{}{}{},", static_cast<const void*>(s.schema), s.any_of_chosen ? "a" : "",
                       s.one_of_chosen ? "o" : "");
  }
  return key;
}

/// What errors name a set of sources by.
std::string where(const Sources& sources) {
  return "JSON schema, " + (sources.empty() ? std::string("#") : sources.front().pointer);
}

}  // namespace

Rules SchemaCompiler::compile() {
  rule_for_child(reader_.root());
  while (!work_.empty()) {
    const Work work = std::move(work_.front());
    work_.pop_front();
    spent_.spend(work.sources.size() * (work.sources.size() + 20));
    Body body = compile_value(work.sources);
    count_states(body);
    rules_[work.rule].body = std::move(body);
  }
  return std::move(rules_);
}

RuleId SchemaCompiler::rule_for(Sources sources) {
  const auto [at, is_new] = known_.emplace(key_of(sources), static_cast<RuleId>(rules_.size()));
  if (!is_new) return at->second;
  const RuleId rule = add_rule(sources.empty() ? "#" : sources.front().pointer, Expr());
  work_.push_back({rule, std::move(sources)});
  return rule;
}

RuleId SchemaCompiler::rule_for_child(Sources sources) {
  reader_.follow(sources);
  return rule_for(std::move(sources));
}

RuleId SchemaCompiler::add_rule(std::string name, Body body) {
  require(rules_.size() < kMostRules, ErrorCode::unsupported,
          "JSON schema, {}: with all combinations of anyOf, oneOf and allOf written out, there are "
          "more than {} rules",
          name, kMostRules);
  count_states(body);
  rules_.push_back({std::move(name), std::move(body)});
  return static_cast<RuleId>(rules_.size() - 1);
}

void SchemaCompiler::count_states(const Body& body) {
  if (const auto* machine = std::get_if<Machine>(&body)) states_ += machine->states.size();
  require(states_ <= kMostStates, ErrorCode::unsupported,
          "JSON schema: its patterns, formats, numbers and enums take more than {} states",
          kMostStates);
}

Expr SchemaCompiler::as_expr(const std::string& name, Body body) {
  if (auto* expr = std::get_if<Expr>(&body)) return std::move(*expr);
  return make_rule(add_rule(name, std::move(body)));
}

SchemaCompiler::Body SchemaCompiler::compile_value(const Sources& sources) {
  for (const Source& source : sources) {
    if (*source.schema == false) return make_choice({});
  }
  if (std::optional<Expr> choice = compile_choice(sources)) return std::move(*choice);
  const Types types = types_of(sources);
  check_keywords(sources, types);
  if (const auto values = enumerated(sources, types, spent_)) return compile_enum(sources, *values);
  if (types == kAllTypes && !says_anything(sources)) return open_.value();
  std::vector<Expr> choice;
  for (const Types type : {kObject, kArray, kString, kBoolean, kNull}) {
    if ((types & type) != 0) choice.push_back(as_expr(where(sources), compile_type(sources, type)));
  }
  if ((types & kInteger) != 0) {
    choice.push_back(as_expr(where(sources), compile_number(sources, (types & kFraction) == 0)));
  }
  return make_choice(std::move(choice));
}

std::optional<Expr> SchemaCompiler::compile_choice(const Sources& sources) {
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].has("anyOf") && !sources[i].any_of_chosen)
      return compile_branches(sources, i, "anyOf");
    if (sources[i].has("oneOf") && !sources[i].one_of_chosen)
      return compile_branches(sources, i, "oneOf");
  }
  return std::nullopt;
}

Expr SchemaCompiler::compile_branches(const Sources& sources, std::size_t at, const char* keyword) {
  const Json& branches = *find_array(sources[at], keyword);
  const bool exclusive = std::string_view(keyword) == "oneOf";
  spent_.spend(branches.size() * sources.size() * 10);
  std::vector<Sources> all;
  for (std::size_t i = 0; i < branches.size(); ++i) {
    Sources joined = sources;
    (exclusive ? joined[at].one_of_chosen : joined[at].any_of_chosen) = true;
    Source branch = reader_.item(sources[at], keyword, i);
    branch.via = at;
    reader_.add(joined, std::move(branch));
    all.push_back(std::move(joined));
  }
  if (exclusive) {
    require(all.size() <= kMostOneOf, ErrorCode::unsupported,
            "JSON schema, {}/oneOf: more than {} branches are not supported", sources[at].pointer,
            kMostOneOf);
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (std::size_t j = 0; j < all.size(); ++j) {
        require(i == j || never_valid_under(reader_, all[i], all[j], spent_),
                ErrorCode::unsupported,
                "JSON schema, {}/oneOf: a value made for branch {} might be valid under branch {} "
                "too; let a required property with a const tell them apart, or write anyOf",
                sources[at].pointer, i, j);
      }
    }
  }
  std::vector<Expr> choice;
  for (Sources& joined : all) choice.push_back(make_rule(rule_for(std::move(joined))));
  return make_choice(std::move(choice));
}

SchemaCompiler::Body SchemaCompiler::compile_enum(const Sources& sources,
                                                  const std::vector<Json>& values) {
  std::vector<std::string> texts;
  std::vector<Expr> structured;
  for (const Json& value : values) {
    if (value.is_structured()) {
      structured.push_back(json_value(value));
    } else {
      texts.push_back(value.is_string() ? json_string(value.get_ref<const std::string&>())
                                        : value.dump());
    }
  }
  if (structured.empty()) return one_of(texts);
  if (!texts.empty()) structured.push_back(make_rule(add_rule(where(sources), one_of(texts))));
  return make_choice(std::move(structured));
}

SchemaCompiler::Body SchemaCompiler::compile_type(const Sources& sources, Types type) {
  switch (type) {
    case kObject:
      return compile_object(sources);
    case kArray:
      return compile_array(sources);
    case kString:
      return compile_string(sources);
    case kBoolean:
      return make_choice({make_text("true"), make_text("false")});
    default:
      return make_text("null");
  }
}

SchemaCompiler::Body SchemaCompiler::compile_string(const Sources& sources) {
  const StringRules rules = string_rules(sources, spent_);
  if (rules.min > rules.max) return make_choice({});
  const bool has_length = rules.min > 0 || rules.max != Expr::kUnbounded;
  if (rules.languages.empty())
    return has_length ? open_.string(rules.min, rules.max) : open_.string();
  const std::string what = where(sources) + ": the string's patterns, format and length together";
  CharDfa language = *rules.languages.front();
  for (std::size_t i = 1; i < rules.languages.size(); ++i)
    language = intersection(language, *rules.languages[i], what);
  if (has_length) language = intersection(language, of_length(rules.min, rules.max, what), what);
  return json_strings(language);
}

SchemaCompiler::Body SchemaCompiler::compile_number(const Sources& sources, bool integer) {
  const NumberRange range = number_range(sources, integer);
  if (!range.min && !range.max && range.multiple_of == 1) return any_number(range.integer);
  return number_machine(range, where(sources));
}

Rules schema_rules(std::string_view schema) {
  return SchemaCompiler(schema).compile();
}

Rules json_object_rules() {
  Rules rules(1);
  rules[0].name = "json";
  OpenJson open(rules);
  Expr object = open.object();
  rules[0].body = std::move(object);
  return rules;
}

}  // namespace heddle::text::grammar
