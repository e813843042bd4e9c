#include "text/jinja/check_names.h"

#include <fmt/format.h>

#include "text/jinja/lexer.h"
#include "text/jinja/native.h"

namespace heddle::text::jinja {

namespace {

void check(const Body& body, bool conditional);
void check(const Expr* expr, bool conditional);

void check(const CallArguments& call, bool conditional) {
  for (const ExprPtr& argument : call.positional) check(argument.get(), conditional);
  for (const auto& named : call.named) check(named.second.get(), conditional);
  check(call.rest.get(), conditional);
  check(call.named_rest.get(), conditional);
}

void check(const Expr* expr, bool conditional) {
  if (expr == nullptr) return;
  const bool inside = conditional || expr->kind == ExprKind::condition;
  for (const ExprPtr& child : expr->children) check(child.get(), inside);
  check(expr->call, inside);
  if (conditional) return;
  if (expr->kind == ExprKind::filter && find_filter(expr->text) == nullptr)
    throw SyntaxFailure(fmt::format("no filter named '{}'", expr->text), expr->at);
  if (expr->kind == ExprKind::test && find_test(expr->text) == nullptr)
    throw SyntaxFailure(fmt::format("no test named '{}'", expr->text), expr->at);
}

void check(const Stmt& stmt, bool conditional) {
  for (const Branch& branch : stmt.branches) {
    check(branch.condition.get(), true);
    check(branch.body, true);
  }
  for (const Assignment& assignment : stmt.assignments) check(assignment.value.get(), conditional);
  const bool outside = stmt.kind == StmtKind::output || stmt.kind == StmtKind::call;
  check(stmt.expression.get(), outside && conditional);
  check(stmt.body, false);
  check(stmt.otherwise, false);
  if (stmt.macro == nullptr) return;
  for (const ExprPtr& value : stmt.macro->defaults) check(value.get(), false);
  check(stmt.macro->body, false);
}

void check(const Body& body, bool conditional) {
  for (const auto& stmt : body) check(*stmt, conditional);
}

}  // namespace

void check_names(const Body& body) {
  check(body, false);
}

}  // namespace heddle::text::jinja
