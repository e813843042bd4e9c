// Carries a parsed template out.
#pragma once

#include <unordered_map>

#include "text/jinja/ast.h"
#include "text/jinja/native.h"

namespace heddle::text::jinja {

/// Names that a block has set, and the block around it.
class Scope : public Object {
 public:
  explicit Scope(std::shared_ptr<Scope> parent) : parent_(std::move(parent)) {}
  std::string shown() const override { return "<scope>"; }
  void clear() override { names_.clear(); }

  const Value* find(const std::string& name) const;
  void set(const std::string& name, Value value) { names_[name] = std::move(value); }
  const std::shared_ptr<Scope>& parent() const { return parent_; }
  /// True the first time.
  bool mark_kept() { return !std::exchange(kept_, true); }

 private:
  std::shared_ptr<Scope> parent_;
  std::unordered_map<std::string, Value> names_;
  bool kept_ = false;
};

class Evaluator {
 public:
  /// `trusted` and `context`: dicts.
  Evaluator(Runtime& run, Value trusted, Value context);

  Text render(const Body& body);
  /// Where the template was when it failed.
  std::size_t at() const { return at_; }
  /// A macro's body, with these arguments.
  Value call_macro(const Macro& macro, const std::shared_ptr<Scope>& scope,
                   const Arguments& arguments);

 private:
  enum class Flow { normal, leave, next };

  Flow execute(const Body& body);
  Flow execute(const Stmt& stmt);
  Flow branch(const Stmt& stmt);
  Flow loop(const Stmt& stmt, const Value& iterable, int depth);
  Value loop_again(const Stmt& stmt, const std::weak_ptr<Scope>& scope, const Value& iterable,
                   int depth);
  void set_block(const Stmt& stmt);
  Flow with(const Stmt& stmt);
  void call_block(const Stmt& stmt);
  void write(const Text& text);
  /// What `body` writes, in a scope of its own.
  Text captured(const Body& body, std::shared_ptr<Scope> scope);
  std::vector<Value> filtered(const Stmt& stmt, std::vector<Value> elements);
  void assign(const Target& target, const Value& value);
  Value macro_value(const Macro& macro);
  std::shared_ptr<Scope> inner_scope() const { return std::make_shared<Scope>(scope_); }

  Value evaluate(const Expr& expr);
  Value evaluate_by_kind(const Expr& expr);
  Value name(const Expr& expr);
  std::vector<Value> elements(const Expr& expr);
  Value dict(const Expr& expr);
  Value slice(const Expr& expr);
  Value call(const Expr& expr);
  Value filter(const Expr& expr);
  Value filtered_text(const Expr* filters, Text text);
  Value test(const Expr& expr);
  Value logical(const Expr& expr);
  Value concat(const Expr& expr);
  Value compare_chain(const Expr& expr);
  Value condition(const Expr& expr);
  Arguments arguments(const CallArguments& call);
  bool is_true(const Expr& expr) { return truth(run_, evaluate(expr)); }

  Runtime& run_;
  const Value trusted_, context_;
  std::shared_ptr<Scope> scope_;
  Text* out_ = nullptr;
  const Value* piped_ = nullptr;  // what a filter block's innermost filter is applied to
  std::size_t at_ = 0;
};

}  // namespace heddle::text::jinja
