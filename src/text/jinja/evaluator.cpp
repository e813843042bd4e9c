// Expressions.
#include "text/jinja/evaluator.h"

#include "text/jinja/arithmetic.h"

namespace heddle::text::jinja {

const Value* Scope::find(const std::string& name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->parent_.get()) {
    const auto found = scope->names_.find(name);
    if (found != scope->names_.end()) return &found->second;
  }
  return nullptr;
}

Evaluator::Evaluator(Runtime& run, Value trusted, Value context)
    : run_(run),
      trusted_(std::move(trusted)),
      context_(std::move(context)),
      scope_(std::make_shared<Scope>(nullptr)) {}

Value Evaluator::evaluate(const Expr& expr) {
  const Runtime::Level level(run_);
  at_ = expr.at;
  run_.step();
  return evaluate_by_kind(expr);
}

Value Evaluator::evaluate_by_kind(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::constant:
      return expr.value;
    case ExprKind::name:
      return name(expr);
    case ExprKind::list:
      return run_.sequence(elements(expr));
    case ExprKind::tuple:
      return run_.sequence(elements(expr), SequenceKind::tuple);
    case ExprKind::dict:
      return dict(expr);
    case ExprKind::slice:
      return slice(expr);
    case ExprKind::call:
      return call(expr);
    case ExprKind::filter:
      return filter(expr);
    case ExprKind::test:
      return test(expr);
    case ExprKind::concat:
      return concat(expr);
    case ExprKind::compare:
      return compare_chain(expr);
    case ExprKind::condition:
      return condition(expr);
    case ExprKind::logical_not:
      return Value::boolean(!is_true(*expr.children[0]));
    case ExprKind::logical_and:
    case ExprKind::logical_or:
      return logical(expr);
    default:
      break;
  }
  const Value first = evaluate(*expr.children[0]);
  if (expr.kind == ExprKind::attribute) {
    at_ = expr.at;
    return attribute_of(run_, first, Text(expr.text, Origin::from_template));
  }
  if (expr.kind == ExprKind::negate) return negated(first);
  if (expr.kind == ExprKind::plus) return plus(first);
  const Value second = evaluate(*expr.children[1]);
  at_ = expr.at;
  if (expr.kind == ExprKind::item) return item_of(run_, first, second);
  return arithmetic(run_, expr.text, first, second);
}

Value Evaluator::name(const Expr& expr) {
  if (const Value* found = scope_->find(expr.text)) return *found;
  for (const Value* names : {&trusted_, &context_}) {
    if (const Value* found = find(run_, *names->dict(), expr.text)) return *found;
  }
  const auto function = functions().find(expr.text);
  if (function != functions().end()) return native_value(function->second, Value());
  return Value::undefined(fmt::format("'{}' is undefined", expr.text));
}

std::vector<Value> Evaluator::elements(const Expr& expr) {
  std::vector<Value> values;
  for (const ExprPtr& child : expr.children) values.push_back(evaluate(*child));
  return values;
}

Value Evaluator::dict(const Expr& expr) {
  Dict dict;
  for (std::size_t i = 0; i < expr.children.size(); i += 2) {
    const Value key = evaluate(*expr.children[i]);
    insert(run_, dict, key, evaluate(*expr.children[i + 1]));
  }
  return run_.dict(std::move(dict));
}

Value Evaluator::slice(const Expr& expr) {
  const auto part = [&](std::size_t i) {
    return expr.children[i] ? evaluate(*expr.children[i]) : Value();
  };
  const Value what = part(0), begin = part(1), end = part(2), step = part(3);
  at_ = expr.at;
  return sliced(run_, what, begin, end, step);
}

Arguments Evaluator::arguments(const CallArguments& call) {
  Arguments values;
  for (const ExprPtr& argument : call.positional) values.positional.push_back(evaluate(*argument));
  if (call.rest) {
    for (Value& value : iterate(run_, evaluate(*call.rest)))
      values.positional.push_back(std::move(value));
  }
  for (const auto& [name, argument] : call.named)
    values.named.emplace_back(name, evaluate(*argument));
  if (!call.named_rest) return values;
  const Value rest = evaluate(*call.named_rest);
  if (rest.dict() == nullptr) fail_render("** needs a dict, got '{}'", type_name(rest));
  for (const auto& [key, value] : rest.dict()->entries) {
    if (key.text() == nullptr) fail_render("names of arguments must be strings");
    values.named.emplace_back(key.text()->bytes(), value);
  }
  return values;
}

Value Evaluator::call(const Expr& expr) {
  const Value callee = evaluate(*expr.children[0]);
  require_defined(callee);
  const Arguments given = arguments(expr.call);
  at_ = expr.at;
  return call_value(run_, callee, given);
}

Value Evaluator::filter(const Expr& expr) {
  const Value input = expr.children[0] ? evaluate(*expr.children[0]) : *piped_;
  const Arguments given = arguments(expr.call);
  at_ = expr.at;
  return apply_filter(run_, expr.text, input, given);
}

Value Evaluator::filtered_text(const Expr* filters, Text text) {
  const Value input = run_.string(std::move(text));
  if (filters == nullptr) return input;
  const Value* outer = std::exchange(piped_, &input);
  Value result = evaluate(*filters);
  piped_ = outer;
  return result;
}

Value Evaluator::test(const Expr& expr) {
  const Value input = evaluate(*expr.children[0]);
  const Arguments given = arguments(expr.call);
  at_ = expr.at;
  return Value::boolean(apply_test(run_, expr.text, input, given));
}

Value Evaluator::logical(const Expr& expr) {
  Value first = evaluate(*expr.children[0]);
  const bool decided = truth(run_, first) == (expr.kind == ExprKind::logical_or);
  return decided ? first : evaluate(*expr.children[1]);
}

Value Evaluator::concat(const Expr& expr) {
  Text all;
  for (const ExprPtr& child : expr.children) {
    const Value value = evaluate(*child);
    all.append(shown(run_, value));
    run_.check_size(all.size());
  }
  return run_.string(std::move(all));
}

Value Evaluator::compare_chain(const Expr& expr) {
  Value left = evaluate(*expr.children[0]);
  for (std::size_t i = 0; i < expr.operators.size(); ++i) {
    Value right = evaluate(*expr.children[i + 1]);
    at_ = expr.at;
    if (!related(run_, expr.operators[i], left, right)) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value Evaluator::condition(const Expr& expr) {
  if (is_true(*expr.children[1])) return evaluate(*expr.children[0]);
  if (expr.children[2]) return evaluate(*expr.children[2]);
  return Value::undefined("the condition is false and there is no else");
}

}  // namespace heddle::text::jinja
