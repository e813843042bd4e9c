#include "text/jinja/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "text/jinja/expression_parser.h"

namespace heddle::text::jinja {

namespace {

using Names = std::initializer_list<std::string_view>;

class Parser : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Body run() { return body({}); }

 private:
  bool at_name(Names names) const {
    return std::any_of(names.begin(), names.end(),
                       [&](std::string_view name) { return current().is_name(name); });
  }

  /// Statements up to a tag that begins with one of `ends`, which stays current.
  Body body(Names ends) {
    const Level level(*this);
    Body statements;
    while (true) {
      const TokenKind kind = current().kind;
      if (kind == TokenKind::end) {
        if (ends.size() != 0) fail_expected(fmt::format("'{}'", *(ends.end() - 1)));
        return statements;
      }
      if (kind == TokenKind::data) {
        statements.push_back(data());
      } else if (kind == TokenKind::variable_begin) {
        next();
        statements.push_back(output());
        expect(TokenKind::variable_end, "'}}'");
      } else {
        next();
        if (at_name(ends)) return statements;
        statements.push_back(statement());
        expect(TokenKind::block_end, "'%}'");
      }
    }
  }

  /// The rest of an opening tag, statements, and the name that ends them.
  Body block(std::string_view end) {
    expect(TokenKind::block_end, "'%}'");
    Body statements = body({end});
    next();
    return statements;
  }

  /// A block out of which the loops around it cannot be left.
  Body captured_block(std::string_view end) {
    const int loops = std::exchange(loops_, 0);
    Body statements = block(end);
    loops_ = loops;
    return statements;
  }

  std::unique_ptr<Stmt> make(StmtKind kind) const {
    auto stmt = std::make_unique<Stmt>();
    stmt->kind = kind;
    stmt->at = current().at;
    return stmt;
  }

  std::unique_ptr<Stmt> data() {
    auto stmt = make(StmtKind::text);
    stmt->text = Text(next().text, Origin::from_template);
    return stmt;
  }

  std::unique_ptr<Stmt> output() {
    auto stmt = make(StmtKind::output);
    stmt->expression = tuple_or_expression();
    return stmt;
  }

  std::unique_ptr<Stmt> statement() {
    if (current().kind != TokenKind::name) fail_expected("the name of a statement");
    const std::string name = current().text;
    if (name == "if") return branch();
    if (name == "for") return loop();
    if (name == "set") return set();
    if (name == "with") return with();
    if (name == "macro") return macro();
    if (name == "call") return call();
    if (name == "filter") return filter();
    if (name == "generation") return generation();
    if (name == "print") {
      next();
      return output();
    }
    if (name == "break" || name == "continue") return loop_control(name == "break");
    static constexpr std::array<std::string_view, 6> kRefused{"include", "import", "from",
                                                              "extends", "block",  "autoescape"};
    if (std::find(kRefused.begin(), kRefused.end(), name) != kRefused.end())
      fail(fmt::format("'{}' is not supported in chat templates", name));
    fail(fmt::format("unknown statement '{}'", name));
  }

  std::unique_ptr<Stmt> branch() {
    auto stmt = make(StmtKind::branch);
    do {
      next();
      Branch branch;
      branch.condition = tuple_or_expression(/*conditions=*/false);
      expect(TokenKind::block_end, "'%}'");
      branch.body = body({"elif", "else", "endif"});
      stmt->branches.push_back(std::move(branch));
    } while (current().is_name("elif"));
    if (skip_name("else")) {
      stmt->branches.push_back({nullptr, block("endif")});
    } else {
      next();
    }
    return stmt;
  }

  std::unique_ptr<Stmt> loop() {
    auto stmt = make(StmtKind::loop);
    next();
    Assignment assignment;
    assignment.target = assign_target(/*namespaces=*/false);
    expect_name("in");
    assignment.value = tuple_or_expression(/*conditions=*/false);
    stmt->assignments.push_back(std::move(assignment));
    if (skip_name("if")) stmt->expression = expression();
    stmt->recursive = skip_name("recursive");
    expect(TokenKind::block_end, "'%}'");
    ++loops_;
    stmt->body = body({"endfor", "else"});
    --loops_;
    if (skip_name("else"))
      stmt->otherwise = block("endfor");
    else
      next();
    return stmt;
  }

  std::unique_ptr<Stmt> loop_control(bool leave) {
    auto stmt = make(leave ? StmtKind::leave_loop : StmtKind::next_iteration);
    if (loops_ == 0) fail(fmt::format("'{}' outside of a loop", current().text));
    next();
    return stmt;
  }

  std::unique_ptr<Stmt> set() {
    auto stmt = make(StmtKind::set);
    next();
    Assignment assignment;
    assignment.target = assign_target(/*namespaces=*/true);
    if (skip("=")) {
      assignment.value = tuple_or_expression();
    } else {
      stmt->kind = StmtKind::set_block;
      stmt->expression = filters(nullptr, false);
      stmt->body = captured_block("endset");
    }
    stmt->assignments.push_back(std::move(assignment));
    return stmt;
  }

  std::unique_ptr<Stmt> with() {
    auto stmt = make(StmtKind::with);
    next();
    while (current().kind != TokenKind::block_end) {
      if (!stmt->assignments.empty()) expect(",");
      Assignment assignment;
      assignment.target = single_name();
      expect("=");
      assignment.value = expression();
      stmt->assignments.push_back(std::move(assignment));
    }
    stmt->body = block("endwith");
    return stmt;
  }

  Target single_name() {
    Target target;
    target.at = current().at;
    target.name = expect_any_name();
    return target;
  }

  void signature(Macro& macro) {
    expect("(");
    while (!skip(")")) {
      if (!macro.parameters.empty()) expect(",");
      macro.parameters.push_back(expect_any_name());
      if (skip("="))
        macro.defaults.push_back(expression());
      else if (!macro.defaults.empty())
        fail("a parameter without a default follows one that has one");
    }
  }

  void macro_body(Macro& macro, std::string_view end) {
    macros_.push_back(&macro);
    macro.body = captured_block(end);
    macros_.pop_back();
  }

  std::unique_ptr<Stmt> macro() {
    auto stmt = make(StmtKind::macro);
    next();
    stmt->macro = std::make_unique<Macro>();
    stmt->macro->name = expect_any_name();
    signature(*stmt->macro);
    macro_body(*stmt->macro, "endmacro");
    return stmt;
  }

  std::unique_ptr<Stmt> call() {
    auto stmt = make(StmtKind::call);
    next();
    stmt->macro = std::make_unique<Macro>();
    stmt->macro->name = "caller";
    if (current().is("(")) signature(*stmt->macro);
    stmt->expression = expression();
    if (stmt->expression->kind != ExprKind::call) fail("expected a call", stmt->at);
    macro_body(*stmt->macro, "endcall");
    return stmt;
  }

  std::unique_ptr<Stmt> filter() {
    auto stmt = make(StmtKind::filter);
    next();
    stmt->expression = filters(nullptr, true);
    stmt->body = captured_block("endfilter");
    return stmt;
  }

  /// What Hugging Face marks as the assistant's words; it renders as its body does.
  std::unique_ptr<Stmt> generation() {
    auto stmt = make(StmtKind::scope);
    next();
    stmt->body = captured_block("endgeneration");
    return stmt;
  }

  int loops_ = 0;  // around the current statement
};

}  // namespace

Body parse(std::vector<Token> tokens, const TemplateLimits& limits) {
  return Parser(std::move(tokens), limits).run();
}

}  // namespace heddle::text::jinja
