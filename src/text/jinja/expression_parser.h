// Expressions. Statements are parsed on top (parser.cpp).
#pragma once

#include <initializer_list>

#include "heddle/chat_template.h"
#include "text/jinja/ast.h"
#include "text/jinja/lexer.h"

namespace heddle::text::jinja {

class ExpressionParser {
 public:
  ExpressionParser(std::vector<Token> tokens, const TemplateLimits& limits)
      : tokens_(std::move(tokens)), limits_(limits) {}

 protected:
  const Token& current() const { return tokens_[at_]; }
  const Token& next() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool skip(std::string_view op);
  bool skip_name(std::string_view name);
  void expect(std::string_view op);
  void expect_name(std::string_view name);
  void expect(TokenKind kind, std::string_view wanted);
  std::string expect_any_name();
  [[noreturn]] void fail(const std::string& message) const;
  [[noreturn]] void fail(const std::string& message, std::size_t at) const;
  [[noreturn]] void fail_expected(std::string_view wanted) const;

  ExprPtr expression();
  /// One expression, or several with commas as a tuple. `conditions`: with "a if b else c".
  ExprPtr tuple_or_expression(bool conditions = true, bool may_be_empty = false);
  /// "| filter" and so on, on `input`, which is null for a filter block.
  ExprPtr filters(ExprPtr input, bool first_is_bare);
  Target assign_target(bool namespaces);
  void check_height(const Expr& expr) const;

  /// One more level of nesting, until it goes out of scope.
  class Level {
   public:
    explicit Level(ExpressionParser& parser);
    ~Level() { --parser_.level_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    ExpressionParser& parser_;
  };

  std::vector<Macro*> macros_;  // those around, for the names that they use

 private:
  ExprPtr make(ExprKind kind, std::size_t at) const;
  void adopt(Expr& parent, ExprPtr child) const;
  ExprPtr binary(ExprKind kind, ExprPtr a, ExprPtr b, const Token& op) const;
  template <class Operand>
  ExprPtr left_chain(Operand operand, std::initializer_list<std::string_view> operators);

  ExprPtr disjunction();
  ExprPtr conjunction();
  ExprPtr negation();
  ExprPtr comparison();
  ExprPtr sum();
  ExprPtr concatenation();
  ExprPtr product();
  ExprPtr power();
  ExprPtr unary(bool with_filters = true);
  ExprPtr primary();
  ExprPtr name_or_constant();
  ExprPtr number();
  ExprPtr string();
  ExprPtr list();
  ExprPtr dict();
  ExprPtr postfix(ExprPtr expr);
  ExprPtr attribute(ExprPtr expr);
  ExprPtr subscript(ExprPtr expr);
  ExprPtr slice_or_index();
  ExprPtr filters_and_tests(ExprPtr expr);
  ExprPtr filter(ExprPtr input, std::size_t at);
  ExprPtr test(ExprPtr expr);
  void call_arguments(Expr& expr);
  void call_argument(Expr& expr);
  std::string dotted_name();
  void note_use(const std::string& name);
  Target single_target(bool namespaces);

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int level_ = 0;
  const TemplateLimits& limits_;
};

}  // namespace heddle::text::jinja
