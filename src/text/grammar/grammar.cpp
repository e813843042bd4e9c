#include "heddle/grammar.h"

#include "text/grammar/gbnf.h"
#include "text/grammar/grammar_impl.h"
#include "text/grammar/json_schema.h"

namespace heddle {

Grammar::Grammar(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Grammar::~Grammar() = default;

std::shared_ptr<const Grammar> Grammar::from_gbnf(std::string_view text) {
  const auto rules = text::grammar::parse_gbnf(text);
  return std::shared_ptr<const Grammar>(new Grammar(std::make_unique<Impl>(rules)));
}

std::shared_ptr<const Grammar> Grammar::from_json_schema(std::string_view schema) {
  const auto rules = text::grammar::schema_rules(schema);
  return std::shared_ptr<const Grammar>(new Grammar(std::make_unique<Impl>(rules)));
}

std::shared_ptr<const Grammar> Grammar::json_object() {
  static const std::shared_ptr<const Grammar> grammar(
      new Grammar(std::make_unique<Impl>(text::grammar::json_object_rules())));
  return grammar;
}

}  // namespace heddle
