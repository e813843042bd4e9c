// The work of turning a schema into rules: one for each set of schemas that hold for one value.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "text/grammar/json_text.h"
#include "text/grammar/number_range.h"
#include "text/grammar/schema_reader.h"
#include "text/grammar/schema_types.h"

namespace heddle::text::grammar {

class SchemaCompiler {
 public:
  explicit SchemaCompiler(std::string_view schema) : reader_(schema), open_(rules_) {}
  Rules compile();

 private:
  using Body = std::variant<Expr, Machine>;
  struct Work {
    RuleId rule;
    Sources sources;
  };

  /// The rule for values that are valid under all of `sources`, which have been followed.
  RuleId rule_for(Sources sources);
  RuleId rule_for_child(Sources sources);
  RuleId add_rule(std::string name, Body body);
  void count_states(const Body& body);
  Expr as_expr(const std::string& name, Body body);

  Body compile_value(const Sources& sources);
  std::optional<Expr> compile_choice(const Sources& sources);
  Expr compile_branches(const Sources& sources, std::size_t at, const char* keyword);
  Body compile_enum(const Sources& sources, const std::vector<Json>& values);
  Body compile_type(const Sources& sources, Types type);

  Body compile_string(const Sources& sources);
  Body compile_number(const Sources& sources, bool integer);

  struct Property {
    std::string name;
    Sources sources;
    bool required = false, forbidden = false;
  };
  Expr compile_object(const Sources& sources);
  std::vector<Property> properties_of(const Sources& sources) const;
  Property property(const Sources& sources, const std::string& name) const;
  std::optional<Expr> additional_pair(const Sources& sources,
                                      const std::vector<Property>& properties);

  Expr compile_array(const Sources& sources);
  Sources element_sources(const Sources& sources, std::size_t index, bool& forbidden) const;

  SchemaReader reader_;
  SchemaWork spent_;
  std::size_t states_ = 0;  // of all machines
  Rules rules_;
  OpenJson open_;
  std::map<std::string, RuleId> known_;  // by the addresses of the sources
  std::deque<Work> work_;
};

}  // namespace heddle::text::grammar
