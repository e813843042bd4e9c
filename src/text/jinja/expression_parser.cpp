#include "text/jinja/expression_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace heddle::text::jinja {

namespace {

std::string described(const Token& token) {
  switch (token.kind) {
    case TokenKind::data:
      return "text";
    case TokenKind::variable_begin:
      return "'{{'";
    case TokenKind::variable_end:
      return "'}}'";
    case TokenKind::block_begin:
      return "'{%'";
    case TokenKind::block_end:
      return "'%}'";
    case TokenKind::end:
      return "the end of the template";
    case TokenKind::string:
      return "a string";
    default:
      return "'" + token.text + "'";
  }
}

bool is_one_of(const Token& token, std::initializer_list<std::string_view> operators) {
  return std::any_of(operators.begin(), operators.end(),
                     [&](std::string_view op) { return token.is(op); });
}

}  // namespace

bool ExpressionParser::skip(std::string_view op) {
  if (!current().is(op)) return false;
  next();
  return true;
}

bool ExpressionParser::skip_name(std::string_view name) {
  if (!current().is_name(name)) return false;
  next();
  return true;
}

void ExpressionParser::expect(std::string_view op) {
  if (!skip(op)) fail_expected(fmt::format("'{}'", op));
}

void ExpressionParser::expect_name(std::string_view name) {
  if (!skip_name(name)) fail_expected(fmt::format("'{}'", name));
}

void ExpressionParser::expect(TokenKind kind, std::string_view wanted) {
  if (current().kind != kind) fail_expected(wanted);
  next();
}

std::string ExpressionParser::expect_any_name() {
  if (current().kind != TokenKind::name) fail_expected("a name");
  return next().text;
}

void ExpressionParser::fail(const std::string& message) const {
  fail(message, current().at);
}
void ExpressionParser::fail(const std::string& message, std::size_t at) const {
  throw SyntaxFailure(message, at);
}
void ExpressionParser::fail_expected(std::string_view wanted) const {
  fail(fmt::format("expected {}, found {}", wanted, described(current())));
}

ExpressionParser::Level::Level(ExpressionParser& parser) : parser_(parser) {
  if (parser.level_ >= parser.limits_.nesting)
    parser.fail(
        fmt::format("it nests deeper than {} levels (limit 'nesting')", parser.limits_.nesting));
  ++parser.level_;
}

void ExpressionParser::check_height(const Expr& expr) const {
  if (expr.height > limits_.nesting)
    fail(
        fmt::format("an expression nests deeper than {} levels (limit 'nesting')", limits_.nesting),
        expr.at);
}

ExprPtr ExpressionParser::make(ExprKind kind, std::size_t at) const {
  auto expr = std::make_unique<Expr>();
  expr->kind = kind;
  expr->at = at;
  return expr;
}

void ExpressionParser::adopt(Expr& parent, ExprPtr child) const {
  if (child) parent.height = std::max(parent.height, child->height + 1);
  parent.children.push_back(std::move(child));
  check_height(parent);
}

ExprPtr ExpressionParser::binary(ExprKind kind, ExprPtr a, ExprPtr b, const Token& op) const {
  ExprPtr expr = make(kind, op.at);
  expr->text = op.text;
  adopt(*expr, std::move(a));
  adopt(*expr, std::move(b));
  return expr;
}

ExprPtr ExpressionParser::expression() {
  const Level level(*this);
  ExprPtr value = disjunction();
  while (current().is_name("if")) {
    ExprPtr expr = make(ExprKind::condition, next().at);
    adopt(*expr, std::move(value));
    adopt(*expr, disjunction());
    adopt(*expr, skip_name("else") ? expression() : nullptr);
    value = std::move(expr);
  }
  return value;
}

ExprPtr ExpressionParser::disjunction() {
  ExprPtr left = conjunction();
  while (current().is_name("or")) {
    const Token& op = next();
    left = binary(ExprKind::logical_or, std::move(left), conjunction(), op);
  }
  return left;
}

ExprPtr ExpressionParser::conjunction() {
  ExprPtr left = negation();
  while (current().is_name("and")) {
    const Token& op = next();
    left = binary(ExprKind::logical_and, std::move(left), negation(), op);
  }
  return left;
}

ExprPtr ExpressionParser::negation() {
  if (!current().is_name("not")) return comparison();
  const Level level(*this);
  ExprPtr expr = make(ExprKind::logical_not, next().at);
  adopt(*expr, negation());
  return expr;
}

ExprPtr ExpressionParser::comparison() {
  const std::size_t at = current().at;
  ExprPtr first = sum();
  ExprPtr expr;
  while (true) {
    std::string op;
    if (is_one_of(current(), {"==", "!=", "<", "<=", ">", ">="})) {
      op = next().text;
    } else if (skip_name("in")) {
      op = "in";
    } else if (current().is_name("not") && tokens_[at_ + 1].is_name("in")) {
      next();
      next();
      op = "not in";
    } else {
      return expr ? std::move(expr) : std::move(first);
    }
    if (!expr) {
      expr = make(ExprKind::compare, at);
      adopt(*expr, std::move(first));
    }
    expr->operators.push_back(op);
    adopt(*expr, sum());
  }
}

template <class Operand>
ExprPtr ExpressionParser::left_chain(Operand operand,
                                     std::initializer_list<std::string_view> operators) {
  ExprPtr left = (this->*operand)();
  while (is_one_of(current(), operators)) {
    const Token& op = next();
    left = binary(ExprKind::binary, std::move(left), (this->*operand)(), op);
  }
  return left;
}

ExprPtr ExpressionParser::sum() {
  return left_chain(&ExpressionParser::concatenation, {"+", "-"});
}

ExprPtr ExpressionParser::concatenation() {
  ExprPtr first = product();
  if (!current().is("~")) return first;
  ExprPtr expr = make(ExprKind::concat, first->at);
  adopt(*expr, std::move(first));
  while (skip("~")) adopt(*expr, product());
  return expr;
}

ExprPtr ExpressionParser::product() {
  return left_chain(&ExpressionParser::power, {"*", "/", "//", "%"});
}

ExprPtr ExpressionParser::power() {
  ExprPtr left = unary();
  while (current().is("**")) {
    const Token& op = next();
    left = binary(ExprKind::binary, std::move(left), unary(), op);
  }
  return left;
}

ExprPtr ExpressionParser::unary(bool with_filters) {
  ExprPtr expr;
  if (is_one_of(current(), {"-", "+"})) {
    const Level level(*this);
    const Token& op = next();
    expr = make(op.text == "-" ? ExprKind::negate : ExprKind::plus, op.at);
    adopt(*expr, unary(false));
  } else {
    expr = primary();
  }
  expr = postfix(std::move(expr));
  return with_filters ? filters_and_tests(std::move(expr)) : std::move(expr);
}

ExprPtr ExpressionParser::primary() {
  const Token& token = current();
  if (token.kind == TokenKind::name) return name_or_constant();
  if (token.kind == TokenKind::string) return string();
  if (token.kind == TokenKind::integer || token.kind == TokenKind::floating) return number();
  if (token.is("[")) return list();
  if (token.is("{")) return dict();
  if (!skip("(")) fail_expected("an expression");
  ExprPtr inside = tuple_or_expression(true, true);
  expect(")");
  return inside;
}

ExprPtr ExpressionParser::name_or_constant() {
  const Token& token = next();
  const auto is_any = [&](std::string_view a, std::string_view b) {
    return token.text == a || token.text == b;
  };
  ExprPtr expr = make(ExprKind::constant, token.at);
  if (is_any("true", "True")) {
    expr->value = Value::boolean(true);
  } else if (is_any("false", "False")) {
    expr->value = Value::boolean(false);
  } else if (!is_any("none", "None")) {
    expr->kind = ExprKind::name;
    expr->text = token.text;
    note_use(token.text);
  }
  return expr;
}

void ExpressionParser::note_use(const std::string& name) {
  for (Macro* macro : macros_) {
    macro->uses_caller |= name == "caller";
    macro->uses_rest |= name == "varargs";
    macro->uses_named_rest |= name == "kwargs";
  }
}

ExprPtr ExpressionParser::number() {
  const Token& token = next();
  ExprPtr expr = make(ExprKind::constant, token.at);
  const char* begin = token.text.data();
  const char* end = begin + token.text.size();
  if (token.kind == TokenKind::floating) {
    double value = 0;
    std::from_chars(begin, end, value);
    expr->value = Value::real(value);
    return expr;
  }
  const bool prefixed = token.text.size() > 1 && token.text[1] >= 'a';
  const int base = !prefixed ? 10 : (token.text[1] == 'x' ? 16 : (token.text[1] == 'o' ? 8 : 2));
  std::int64_t value = 0;
  const auto result = std::from_chars(begin + (prefixed ? 2 : 0), end, value, base);
  if (result.ec != std::errc()) fail("an integer does not fit 64 bits", token.at);
  const bool zero_first = !prefixed && token.text.size() > 1 && token.text[0] == '0';
  if (zero_first && value != 0) fail("an integer begins with 0", token.at);
  expr->value = Value::integer(value);
  return expr;
}

ExprPtr ExpressionParser::string() {
  ExprPtr expr = make(ExprKind::constant, current().at);
  std::string bytes;
  while (current().kind == TokenKind::string) bytes += next().text;
  expr->value =
      Value(Value::Variant(std::make_shared<const Text>(std::move(bytes), Origin::from_template)));
  return expr;
}

ExprPtr ExpressionParser::list() {
  ExprPtr expr = make(ExprKind::list, next().at);
  while (!skip("]")) {
    if (!expr->children.empty()) expect(",");
    if (skip("]")) break;
    adopt(*expr, expression());
  }
  return expr;
}

ExprPtr ExpressionParser::dict() {
  ExprPtr expr = make(ExprKind::dict, next().at);
  while (!skip("}")) {
    if (!expr->children.empty()) expect(",");
    if (skip("}")) break;
    adopt(*expr, expression());
    expect(":");
    adopt(*expr, expression());
  }
  return expr;
}

ExprPtr ExpressionParser::tuple_or_expression(bool conditions, bool may_be_empty) {
  const Level level(*this);
  ExprPtr tuple = make(ExprKind::tuple, current().at);
  bool several = false;
  const auto at_end = [&] {
    const TokenKind kind = current().kind;
    return kind == TokenKind::variable_end || kind == TokenKind::block_end || current().is(")");
  };
  while (true) {
    if (!tuple->children.empty()) expect(",");
    if (at_end()) break;
    adopt(*tuple, conditions ? expression() : disjunction());
    if (!current().is(",")) break;
    several = true;
  }
  if (several) return tuple;
  if (!tuple->children.empty()) return std::move(tuple->children.front());
  if (!may_be_empty) fail_expected("an expression");
  return tuple;
}

ExprPtr ExpressionParser::postfix(ExprPtr expr) {
  while (true) {
    if (current().is("."))
      expr = attribute(std::move(expr));
    else if (current().is("["))
      expr = subscript(std::move(expr));
    else if (current().is("(")) {
      ExprPtr call = make(ExprKind::call, current().at);
      adopt(*call, std::move(expr));
      call_arguments(*call);
      expr = std::move(call);
    } else {
      return expr;
    }
  }
}

ExprPtr ExpressionParser::attribute(ExprPtr expr) {
  const std::size_t at = next().at;
  if (current().kind == TokenKind::integer) {
    ExprPtr item = make(ExprKind::item, at);
    adopt(*item, std::move(expr));
    adopt(*item, number());
    return item;
  }
  ExprPtr result = make(ExprKind::attribute, at);
  adopt(*result, std::move(expr));
  result->text = expect_any_name();
  return result;
}

ExprPtr ExpressionParser::subscript(ExprPtr expr) {
  const Level level(*this);
  const std::size_t at = next().at;
  ExprPtr index = current().is("]") ? make(ExprKind::tuple, at) : slice_or_index();
  if (current().is(",")) {
    if (index->kind == ExprKind::slice) fail("a slice cannot be part of a tuple");
    ExprPtr tuple = make(ExprKind::tuple, at);
    adopt(*tuple, std::move(index));
    while (skip(",")) adopt(*tuple, expression());
    index = std::move(tuple);
  }
  expect("]");
  if (index->kind == ExprKind::slice && index->children.size() == 3) {
    index->height = std::max(index->height, expr->height + 1);
    index->children.insert(index->children.begin(), std::move(expr));
    check_height(*index);
    return index;
  }
  ExprPtr item = make(ExprKind::item, at);
  adopt(*item, std::move(expr));
  adopt(*item, std::move(index));
  return item;
}

/// A slice has three children here: what is sliced comes first later.
ExprPtr ExpressionParser::slice_or_index() {
  const std::size_t at = current().at;
  ExprPtr first = current().is(":") ? nullptr : expression();
  if (!skip(":")) return first;
  ExprPtr slice = make(ExprKind::slice, at);
  adopt(*slice, std::move(first));
  const auto bound = [&] { return is_one_of(current(), {":", "]", ","}) ? nullptr : expression(); };
  adopt(*slice, bound());
  adopt(*slice, skip(":") ? bound() : nullptr);
  return slice;
}

ExprPtr ExpressionParser::filters_and_tests(ExprPtr expr) {
  while (true) {
    if (current().is("|")) {
      const std::size_t at = next().at;
      expr = filter(std::move(expr), at);
    } else if (current().is_name("is")) {
      expr = test(std::move(expr));
    } else if (current().is("(")) {
      expr = postfix(std::move(expr));
    } else {
      return expr;
    }
  }
}

ExprPtr ExpressionParser::filters(ExprPtr input, bool first_is_bare) {
  if (first_is_bare) input = filter(std::move(input), current().at);
  while (current().is("|")) {
    const std::size_t at = next().at;
    input = filter(std::move(input), at);
  }
  return input;
}

ExprPtr ExpressionParser::filter(ExprPtr input, std::size_t at) {
  ExprPtr expr = make(ExprKind::filter, at);
  adopt(*expr, std::move(input));
  expr->text = dotted_name();
  if (current().is("(")) call_arguments(*expr);
  return expr;
}

std::string ExpressionParser::dotted_name() {
  std::string name = expect_any_name();
  while (skip(".")) name += "." + expect_any_name();
  return name;
}

ExprPtr ExpressionParser::test(ExprPtr expr) {
  ExprPtr result = make(ExprKind::test, next().at);
  const bool negated = skip_name("not");
  adopt(*result, std::move(expr));
  result->text = dotted_name();
  const Token& token = current();
  const bool literal = token.kind == TokenKind::string || token.kind == TokenKind::integer ||
                       token.kind == TokenKind::floating || token.is("[") || token.is("{");
  const bool name = token.kind == TokenKind::name && !token.is_name("else") &&
                    !token.is_name("or") && !token.is_name("and");
  if (token.is("(")) {
    call_arguments(*result);
  } else if (literal || name) {
    if (token.is_name("is")) fail("tests cannot be chained with 'is'");
    result->call.positional.push_back(postfix(primary()));
    result->height = std::max(result->height, result->call.positional.back()->height + 1);
    check_height(*result);
  }
  if (!negated) return result;
  ExprPtr inverse = make(ExprKind::logical_not, result->at);
  adopt(*inverse, std::move(result));
  return inverse;
}

void ExpressionParser::call_arguments(Expr& expr) {
  const Level level(*this);
  expect("(");
  bool first = true;
  while (!skip(")")) {
    if (!first) expect(",");
    if (skip(")")) break;
    first = false;
    call_argument(expr);
  }
  check_height(expr);
}

void ExpressionParser::call_argument(Expr& expr) {
  CallArguments& call = expr.call;
  const std::size_t at = current().at;
  const auto place = [&](ExprPtr& slot, bool allowed) {
    if (!allowed) fail("these arguments cannot follow each other", at);
    slot = expression();
    expr.height = std::max(expr.height, slot->height + 1);
  };
  if (skip("*")) return place(call.rest, !call.rest && !call.named_rest);
  if (skip("**")) return place(call.named_rest, !call.named_rest);
  if (current().kind == TokenKind::name && tokens_[at_ + 1].is("=")) {
    const std::string name = next().text;
    next();
    ExprPtr value;
    place(value, !call.named_rest);
    call.named.emplace_back(name, std::move(value));
    return;
  }
  ExprPtr value;
  place(value, !call.rest && !call.named_rest && call.named.empty());
  call.positional.push_back(std::move(value));
}

Target ExpressionParser::assign_target(bool namespaces) {
  const Level level(*this);
  Target first = single_target(namespaces);
  if (!current().is(",")) return first;
  Target tuple;
  tuple.at = first.at;
  tuple.several.push_back(std::move(first));
  while (skip(",")) {
    if (current().is(")") || current().kind == TokenKind::block_end) break;
    tuple.several.push_back(single_target(namespaces));
  }
  return tuple;
}

Target ExpressionParser::single_target(bool namespaces) {
  if (skip("(")) {
    Target inside = assign_target(namespaces);
    expect(")");
    return inside;
  }
  static constexpr std::array<std::string_view, 6> kConstants{"true",  "True", "false",
                                                              "False", "none", "None"};
  Target target;
  target.at = current().at;
  target.name = expect_any_name();
  if (std::find(kConstants.begin(), kConstants.end(), target.name) != kConstants.end())
    fail(fmt::format("'{}' cannot be assigned to", target.name), target.at);
  if (namespaces && skip(".")) target.attribute = expect_any_name();
  return target;
}

}  // namespace heddle::text::jinja
