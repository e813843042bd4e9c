#include "text/grammar/expr.h"

#include "text/utf8.h"

namespace heddle::text::grammar {

Expr make_text(std::string_view utf8) {
  Expr expr;
  for (std::size_t i = 0; i < utf8.size();) {
    const Utf8Unit unit = utf8_unit(utf8, i);
    expr.text += unit.status == Utf8Status::valid ? unit.code_point : U'\uFFFD';
    i += unit.length;
  }
  return expr;
}

Expr make_chars(CharSet chars) {
  Expr expr;
  expr.kind = Expr::Kind::chars;
  expr.chars = std::move(chars);
  return expr;
}

Expr make_rule(RuleId rule) {
  Expr expr;
  expr.kind = Expr::Kind::rule;
  expr.rule = rule;
  return expr;
}

Expr make_sequence(std::vector<Expr> parts) {
  if (parts.size() == 1) return std::move(parts.front());
  Expr expr;
  expr.kind = Expr::Kind::sequence;
  expr.parts = std::move(parts);
  return expr;
}

Expr make_choice(std::vector<Expr> parts) {
  if (parts.size() == 1) return std::move(parts.front());
  Expr expr;
  expr.kind = Expr::Kind::choice;
  expr.parts = std::move(parts);
  return expr;
}

Expr make_repeat(Expr part, std::uint32_t min, std::uint32_t max) {
  Expr expr;
  expr.kind = Expr::Kind::repeat;
  expr.min = min;
  expr.max = max;
  expr.parts.push_back(std::move(part));
  return expr;
}

Expr make_optional(Expr part) {
  return make_repeat(std::move(part), 0, 1);
}

}  // namespace heddle::text::grammar
