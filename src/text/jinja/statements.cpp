#include <algorithm>

#include "text/jinja/evaluator.h"
#include "text/jinja/loop.h"
#include "text/jinja/namespace.h"

namespace heddle::text::jinja {

namespace {

class MacroValue : public Object {
 public:
  MacroValue(Evaluator& evaluator, const Macro& macro, std::shared_ptr<Scope> scope)
      : evaluator_(evaluator), macro_(macro), scope_(std::move(scope)) {}

  std::string shown() const override { return fmt::format("<Macro '{}'>", macro_.name); }
  bool callable() const override { return true; }
  Value call(Runtime&, const Arguments& arguments) override {
    return evaluator_.call_macro(macro_, scope_, arguments);
  }
  std::optional<Value> attribute(Runtime& run, const Text& name) override {
    if (name.bytes() != "name") return std::nullopt;
    return run.string(macro_.name, Origin::from_template);
  }

 private:
  Evaluator& evaluator_;
  const Macro& macro_;
  std::shared_ptr<Scope> scope_;
};

/// Sets a variable for as long as it lives.
template <class T>
class Temporarily {
 public:
  Temporarily(T& variable, T value)
      : variable_(variable), before_(std::exchange(variable, std::move(value))) {}
  ~Temporarily() { variable_ = std::move(before_); }
  Temporarily(const Temporarily&) = delete;
  Temporarily& operator=(const Temporarily&) = delete;

 private:
  T& variable_;
  T before_;
};

/// Puts what a macro is given into its scope; what has no place is an error, or varargs and kwargs.
class MacroBinder {
 public:
  MacroBinder(Runtime& run, const Macro& macro, Scope& scope)
      : run_(run), macro_(macro), scope_(scope), given_(macro.parameters.size(), false) {}

  void bind(const Arguments& arguments) {
    std::vector<Value> rest;
    for (std::size_t i = 0; i < arguments.positional.size(); ++i) {
      if (i < given_.size())
        set(i, arguments.positional[i]);
      else
        rest.push_back(arguments.positional[i]);
    }
    if (!rest.empty() && !macro_.uses_rest)
      fail_render("macro '{}' takes not more than {} arguments", macro_.name, given_.size());
    Dict named;
    Value caller = Value::undefined("no caller defined");
    for (const auto& [name, value] : arguments.named) bind_named(name, value, named, caller);
    if (macro_.uses_rest)
      scope_.set("varargs", run_.sequence(std::move(rest), SequenceKind::tuple));
    if (macro_.uses_named_rest) scope_.set("kwargs", run_.dict(std::move(named)));
    if (macro_.uses_caller && !is_parameter("caller")) scope_.set("caller", caller);
  }

  bool given(std::size_t i) const { return given_[i]; }

 private:
  bool is_parameter(const std::string& name) const {
    return std::find(macro_.parameters.begin(), macro_.parameters.end(), name) !=
           macro_.parameters.end();
  }

  void set(std::size_t i, const Value& value) {
    scope_.set(macro_.parameters[i], value);
    given_[i] = true;
  }

  void bind_named(const std::string& name, const Value& value, Dict& named, Value& caller) {
    const auto found = std::find(macro_.parameters.begin(), macro_.parameters.end(), name);
    const auto i = static_cast<std::size_t>(found - macro_.parameters.begin());
    if (found != macro_.parameters.end()) {
      if (given_[i]) fail_render("macro '{}' got two values for '{}'", macro_.name, name);
      set(i, value);
    } else if (name == "caller" && macro_.uses_caller) {
      caller = value;
    } else if (macro_.uses_named_rest) {
      insert(run_, named, run_.string(name, Origin::from_template), value);
    } else {
      fail_render("macro '{}' takes no argument '{}'", macro_.name, name);
    }
  }

  Runtime& run_;
  const Macro& macro_;
  Scope& scope_;
  std::vector<bool> given_;
};

}  // namespace

Text Evaluator::render(const Body& body) {
  Text out;
  out_ = &out;
  execute(body);
  return out;
}

Evaluator::Flow Evaluator::execute(const Body& body) {
  for (const auto& stmt : body) {
    const Flow flow = execute(*stmt);
    if (flow != Flow::normal) return flow;
  }
  return Flow::normal;
}

Evaluator::Flow Evaluator::execute(const Stmt& stmt) {
  const Runtime::Level level(run_);
  at_ = stmt.at;
  run_.step();
  switch (stmt.kind) {
    case StmtKind::text:
      write(stmt.text);
      break;
    case StmtKind::output:
      write(shown(run_, evaluate(*stmt.expression)));
      break;
    case StmtKind::branch:
      return branch(stmt);
    case StmtKind::loop:
      return loop(stmt, evaluate(*stmt.assignments[0].value), 1);
    case StmtKind::set:
      assign(stmt.assignments[0].target, evaluate(*stmt.assignments[0].value));
      break;
    case StmtKind::set_block:
      set_block(stmt);
      break;
    case StmtKind::with:
      return with(stmt);
    case StmtKind::macro:
      scope_->set(stmt.macro->name, macro_value(*stmt.macro));
      break;
    case StmtKind::call:
      call_block(stmt);
      break;
    case StmtKind::filter:
      write(shown(run_, filtered_text(stmt.expression.get(), captured(stmt.body, inner_scope()))));
      break;
    case StmtKind::scope:
      write(captured(stmt.body, inner_scope()));
      break;
    case StmtKind::leave_loop:
      return Flow::leave;
    case StmtKind::next_iteration:
      return Flow::next;
  }
  return Flow::normal;
}

void Evaluator::write(const Text& text) {
  run_.make(text.size());
  run_.check_size(out_->size() + text.size());
  out_->append(text);
}

Text Evaluator::captured(const Body& body, std::shared_ptr<Scope> scope) {
  Text out;
  const Temporarily to(out_, &out);
  const Temporarily in(scope_, std::move(scope));
  execute(body);
  return out;
}

Evaluator::Flow Evaluator::branch(const Stmt& stmt) {
  for (const Branch& branch : stmt.branches) {
    if (!branch.condition || is_true(*branch.condition)) return execute(branch.body);
  }
  return Flow::normal;
}

std::vector<Value> Evaluator::filtered(const Stmt& stmt, std::vector<Value> elements) {
  if (!stmt.expression) return elements;
  std::vector<Value> kept;
  for (Value& element : elements) {
    const Temporarily in(scope_, inner_scope());
    assign(stmt.assignments[0].target, element);
    if (is_true(*stmt.expression)) kept.push_back(std::move(element));
  }
  return kept;
}

Evaluator::Flow Evaluator::loop(const Stmt& stmt, const Value& iterable, int depth) {
  const auto state = std::make_shared<Loop>(filtered(stmt, iterate(run_, iterable)), depth);
  if (stmt.recursive) {
    // Weak, as what the scope holds may hold this loop.
    state->set_again([this, &stmt, scope = std::weak_ptr(scope_), depth](const Value& elements) {
      return loop_again(stmt, scope, elements, depth + 1);
    });
  }
  for (std::size_t i = 0; i < state->size(); ++i) {
    run_.step();
    const Temporarily in(scope_, inner_scope());
    state->move_to(i);
    scope_->set("loop", Value::object(state));
    assign(stmt.assignments[0].target, state->element());
    if (execute(stmt.body) == Flow::leave) break;
  }
  if (state->size() > 0) return Flow::normal;
  const Temporarily in(scope_, inner_scope());
  return execute(stmt.otherwise);
}

Value Evaluator::loop_again(const Stmt& stmt, const std::weak_ptr<Scope>& scope,
                            const Value& iterable, int depth) {
  auto around = scope.lock();
  if (around == nullptr) fail_render("the loop has ended");
  Text out;
  const Temporarily to(out_, &out);
  const Temporarily in(scope_, std::move(around));
  loop(stmt, iterable, depth);
  return run_.string(std::move(out));
}

void Evaluator::set_block(const Stmt& stmt) {
  const Value value = filtered_text(stmt.expression.get(), captured(stmt.body, inner_scope()));
  assign(stmt.assignments[0].target, value);
}

Evaluator::Flow Evaluator::with(const Stmt& stmt) {
  auto inner = inner_scope();
  for (const Assignment& assignment : stmt.assignments)
    inner->set(assignment.target.name, evaluate(*assignment.value));
  const Temporarily in(scope_, std::move(inner));
  return execute(stmt.body);
}

void Evaluator::assign(const Target& target, const Value& value) {
  at_ = target.at;
  if (!target.several.empty()) {
    require_defined(value);
    const std::vector<Value> parts = iterate(run_, value);
    if (parts.size() != target.several.size())
      fail_render("cannot unpack {} values into {} names", parts.size(), target.several.size());
    for (std::size_t i = 0; i < parts.size(); ++i) assign(target.several[i], parts[i]);
    return;
  }
  if (target.attribute.empty()) return scope_->set(target.name, value);
  const Value* held = scope_->find(target.name);
  auto* names = held == nullptr ? nullptr : dynamic_cast<Namespace*>(held->object());
  if (names == nullptr)
    fail_render("'{}' is not a namespace: its attributes cannot be set", target.name);
  names->set(target.attribute, value);
}

Value Evaluator::macro_value(const Macro& macro) {
  // A scope that holds a macro is held by it.
  for (auto scope = scope_; scope != nullptr && scope->mark_kept(); scope = scope->parent())
    run_.keep(scope);
  return Value::object(std::make_shared<MacroValue>(*this, macro, scope_));
}

void Evaluator::call_block(const Stmt& stmt) {
  const Expr& expr = *stmt.expression;
  const Value callee = evaluate(*expr.children[0]);
  Arguments given = arguments(expr.call);
  given.named.emplace_back("caller", macro_value(*stmt.macro));
  at_ = expr.at;
  write(shown(run_, call_value(run_, callee, given)));
}

Value Evaluator::call_macro(const Macro& macro, const std::shared_ptr<Scope>& scope,
                            const Arguments& arguments) {
  auto own = std::make_shared<Scope>(scope);
  MacroBinder binder(run_, macro, *own);
  binder.bind(arguments);
  const std::size_t first_default = macro.parameters.size() - macro.defaults.size();
  for (std::size_t i = 0; i < macro.parameters.size(); ++i) {
    if (binder.given(i)) continue;
    const Temporarily in(scope_, own);
    own->set(macro.parameters[i], i < first_default
                                      ? Value::undefined(fmt::format(
                                            "parameter '{}' was not provided", macro.parameters[i]))
                                      : evaluate(*macro.defaults[i - first_default]));
  }
  return run_.string(captured(macro.body, std::move(own)));
}

}  // namespace heddle::text::jinja
