// A parsed template.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace heddle::text::jinja {

struct Expr;
struct Stmt;
using ExprPtr = std::unique_ptr<Expr>;
using Body = std::vector<std::unique_ptr<Stmt>>;

enum class ExprKind : std::uint8_t {
  constant,   // value
  name,       // text
  list,       // children
  tuple,      // children
  dict,       // children: key, value, key, value, ...
  attribute,  // children[0], text
  item,       // children[0], children[1]
  slice,      // children: what, begin, end, step; those left out are null
  call,       // children[0], call
  filter,     // children[0] (null in a filter block), text, call
  test,       // children[0], text, call
  negate,
  plus,
  logical_not,  // children[0]
  logical_and,
  logical_or,  // children: two
  binary,      // children: two; text is the operator
  concat,      // children
  compare,     // children: n + 1; operators: n
  condition,   // children: value, condition, otherwise (null if left out)
};

struct CallArguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr rest, named_rest;  // *rest, **named_rest
};

struct Expr {
  ExprKind kind;
  std::size_t at;
  std::string text;
  Value value;
  std::vector<ExprPtr> children;
  std::vector<std::string> operators;
  CallArguments call;
  int height = 1;  // of the tree below
};

/// What an assignment sets: a name, an attribute of a namespace, or several at once.
struct Target {
  std::size_t at = 0;
  std::string name, attribute;  // attribute: empty for a name
  std::vector<Target> several;  // if not empty, the target is a tuple
};

struct Macro {
  std::string name;
  std::vector<std::string> parameters;
  std::vector<ExprPtr> defaults;  // of the last parameters
  Body body;
  bool uses_caller = false, uses_rest = false, uses_named_rest = false;
};

struct Branch {
  ExprPtr condition;  // null: else
  Body body;
};

struct Assignment {
  Target target;
  ExprPtr value;
};

enum class StmtKind : std::uint8_t {
  text,       // text
  output,     // expression
  branch,     // branches
  loop,       // assignments[0] (target, iterable), expression: the filter, body, otherwise
  set,        // assignments[0]
  set_block,  // assignments[0].target, expression: filters or null, body
  with,       // assignments, body
  macro,      // macro
  call,       // expression: a call, macro: its caller
  filter,     // expression: filters, body
  scope,      // body, as in a generation block
  leave_loop,
  next_iteration,
};

struct Stmt {
  StmtKind kind;
  std::size_t at;
  Text text;
  ExprPtr expression;
  std::vector<Branch> branches;
  std::vector<Assignment> assignments;
  Body body, otherwise;
  std::unique_ptr<Macro> macro;
  bool recursive = false;  // a loop whose `loop` can be called
};

}  // namespace heddle::text::jinja
