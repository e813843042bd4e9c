#include "project/barrier_rule.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <stdexcept>
#include <utility>

namespace heddle::test {

namespace {

const std::set<std::string> kBarriers{"barrier", "subgroupBarrier"};
// What differs between the invocations of a workgroup.
const std::set<std::string> kOwn{"gl_LocalInvocationID",  "gl_LocalInvocationIndex",
                                 "gl_GlobalInvocationID", "gl_SubgroupInvocationID",
                                 "gl_SubgroupID",         "subgroupElect"};

struct Statement {
  enum class Kind { simple, block, choice, loop, selection, leave };
  Kind kind = Kind::simple;
  ShaderToken at;
  ShaderTokens tokens;  // what it computes: the expression, the condition, the loop's header
  std::vector<Statement> parts;
};

struct Function {
  std::string name;
  ShaderTokens tokens;
  Statement body;
};

bool is_name(const std::string& text) {
  return std::isalpha(static_cast<unsigned char>(text[0])) || text[0] == '_';
}

// ---- Parsing

class Parser {
 public:
  explicit Parser(const ShaderTokens& tokens) : tokens_(tokens) {}

  std::vector<Function> functions() {
    std::vector<Function> all;
    while (at_ < tokens_.size()) {
      const bool named = at_ + 1 < tokens_.size() && is("(", 1) && is_name(tokens_[at_].text);
      if (is("{")) {  // a struct's, a block's
        at_ = closing(at_, "{", "}") + 1;
      } else if (const std::size_t end = named ? closing(at_ + 1, "(", ")") + 1 : 0;
                 named && end < tokens_.size() && tokens_[end].text == "{") {
        Function function{tokens_[at_].text, {}, {}};
        const std::size_t last = closing(end, "{", "}");
        function.tokens.assign(tokens_.begin() + static_cast<std::ptrdiff_t>(end),
                               tokens_.begin() + static_cast<std::ptrdiff_t>(last));
        at_ = end;
        function.body = statement();
        all.push_back(std::move(function));
      } else {
        ++at_;
      }
    }
    return all;
  }

 private:
  bool is(const char* text, std::size_t ahead = 0) const {
    return at_ + ahead < tokens_.size() && tokens_[at_ + ahead].text == text;
  }

  const ShaderToken& here() const {
    if (at_ >= tokens_.size()) throw std::runtime_error("a shader ends within a statement");
    return tokens_[at_];
  }

  std::size_t closing(std::size_t from, const char* open, const char* close) const {
    int depth = 0;
    for (std::size_t i = from; i < tokens_.size(); ++i) {
      if (tokens_[i].text == open) ++depth;
      if (tokens_[i].text == close && --depth == 0) return i;
    }
    const ShaderToken& token = tokens_[from];
    throw std::runtime_error(token.file + ":" + std::to_string(token.line) + ": no " + close);
  }

  ShaderTokens in_parentheses() {
    const std::size_t end = closing(at_, "(", ")");
    ShaderTokens inside(tokens_.begin() + static_cast<std::ptrdiff_t>(at_) + 1,
                        tokens_.begin() + static_cast<std::ptrdiff_t>(end));
    at_ = end + 1;
    return inside;
  }

  ShaderTokens to_semicolon() {
    ShaderTokens tokens;
    int depth = 0;
    for (; depth > 0 || !is(";"); ++at_) {
      const std::string& text = here().text;
      if (text == "(" || text == "{" || text == "[") ++depth;
      if (text == ")" || text == "}" || text == "]") --depth;
      tokens.push_back(tokens_[at_]);
    }
    ++at_;
    return tokens;
  }

  void skip_labels_and_attributes() {
    while (true) {
      if (is("[") && is("[", 1)) {
        at_ = closing(at_, "[", "]") + 1;
      } else if (is("case") || is("default")) {
        while (here().text != ":") ++at_;
        ++at_;
      } else {
        return;
      }
    }
  }

  Statement statement() {
    skip_labels_and_attributes();
    Statement s;
    s.at = here();
    const std::string& word = s.at.text;
    if (word == "{") {
      s.kind = Statement::Kind::block;
      ++at_;
      for (skip_labels_and_attributes(); here().text != "}"; skip_labels_and_attributes()) {
        s.parts.push_back(statement());
      }
      ++at_;
    } else if (word == "if" || word == "switch") {
      s.kind = word == "if" ? Statement::Kind::choice : Statement::Kind::selection;
      ++at_;
      s.tokens = in_parentheses();
      s.parts.push_back(statement());
      if (s.kind == Statement::Kind::choice && is("else")) {
        ++at_;
        s.parts.push_back(statement());
      }
    } else if (word == "for" || word == "while" || word == "do") {
      loop(s);
    } else {
      const bool leaves =
          word == "return" || word == "continue" || word == "break" || word == "discard";
      s.kind = leaves ? Statement::Kind::leave : Statement::Kind::simple;
      s.tokens = to_semicolon();
    }
    return s;
  }

  void loop(Statement& s) {
    s.kind = Statement::Kind::loop;
    const bool condition_last = s.at.text == "do";
    ++at_;
    if (!condition_last) s.tokens = in_parentheses();
    s.parts.push_back(statement());
    if (!condition_last) return;
    ++at_;  // while
    s.tokens = in_parentheses();
    ++at_;  // ;
  }

  const ShaderTokens& tokens_;
  std::size_t at_ = 0;
};

// ---- Which functions have barriers

const ShaderToken* first_call(const ShaderTokens& tokens, const std::set<std::string>& names) {
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (names.contains(tokens[i].text) && tokens[i + 1].text == "(") return &tokens[i];
  }
  return nullptr;
}

std::set<std::string> names_with_barriers(const std::vector<Function>& functions) {
  std::set<std::string> names = kBarriers;
  for (std::size_t known = 0; known != names.size();) {
    known = names.size();
    for (const Function& function : functions) {
      if (first_call(function.tokens, names)) names.insert(function.name);
    }
  }
  return names;
}

// ---- Ways past them

bool is_constant(const ShaderTokens& condition) {
  for (const ShaderToken& token : condition) {
    const std::string& text = token.text;
    const bool constant =
        (text.size() > 1 && text[0] == 'k' && std::isupper(static_cast<unsigned char>(text[1]))) ||
        text == "true" || text == "false";
    if (is_name(text) && !constant) return false;
  }
  return true;
}

class FunctionCheck {
 public:
  FunctionCheck(const std::set<std::string>& with_barriers, std::set<SkippedBarrier>& findings)
      : with_barriers_(with_barriers), findings_(findings) {}

  void run(const Function& function) {
    walk(function.body, {});
    for (const Leave& leave : leaves_) judge(leave);
  }

 private:
  struct Range {
    std::size_t begin, end;
  };
  struct Around {
    bool uniform = true;             // constants alone decide whether one comes here
    bool uniform_in_loop = true;     // and from the start of an iteration on
    bool in_selection = false;       // a break leaves no more than a switch
    bool own = false;                // an invocation's own value decides whether it comes here
    std::vector<std::size_t> loops;  // indices into loops_, outermost first
  };
  struct Leave {
    ShaderToken at;
    std::size_t place;
    Around around;
  };
  struct Barrier {
    ShaderToken at;
    std::size_t place;
  };

  void look_at(const ShaderTokens& tokens, const Around& around) {
    ++place_;
    note_own(tokens);
    const ShaderToken* call = first_call(tokens, with_barriers_);
    if (!call) return;
    barriers_.push_back({*call, place_});
    if (around.own) {
      findings_.insert({call->file, call->line, call->text + " where not all invocations come"});
    }
  }

  bool is_own(const ShaderTokens& tokens) const {
    return std::ranges::any_of(tokens,
                               [&](const ShaderToken& token) { return own_.contains(token.text); });
  }

  /// The variable that `tokens[equals]` assigns to; nothing if it compares.
  static std::string assigned(const ShaderTokens& tokens, std::size_t equals) {
    static const std::set<std::string> operations{"+", "-", "*", "/", "%", "&", "|", "^"};
    const auto text = [&](std::size_t i) { return i < tokens.size() ? tokens[i].text : ""; };
    if (equals == 0 || text(equals) != "=" || text(equals + 1) == "=") return "";
    const bool computes = operations.contains(text(equals - 1));
    const std::string name = computes && equals > 1 ? text(equals - 2) : text(equals - 1);
    return is_name(name) ? name : "";
  }

  /// Variables that get an invocation's own value are its own.
  void note_own(const ShaderTokens& tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const std::string variable = assigned(tokens, i);
      if (variable.empty()) continue;
      std::size_t end = i + 1;
      for (int depth = 0; end < tokens.size(); ++end) {
        const std::string& text = tokens[end].text;
        if (text == "(" || text == "[") ++depth;
        if (text == ")" || text == "]") --depth;
        if (depth == 0 && (text == "," || text == ";")) break;
      }
      const auto at = [&](std::size_t index) {
        return tokens.begin() + static_cast<std::ptrdiff_t>(index);
      };
      if (is_own({at(i + 1), at(end)})) own_.insert(variable);
    }
  }

  void walk(const Statement& s, Around around) {
    if (s.kind == Statement::Kind::loop) {
      walk_loop(s, std::move(around));
      return;
    }
    look_at(s.tokens, around);
    if (s.kind == Statement::Kind::leave) leaves_.push_back({s.at, ++place_, around});
    if (s.kind == Statement::Kind::choice || s.kind == Statement::Kind::selection) {
      const bool constant = is_constant(s.tokens);
      around.own = around.own || is_own(s.tokens);
      around.uniform = around.uniform && constant;
      around.uniform_in_loop = around.uniform_in_loop && constant;
      around.in_selection = around.in_selection || s.kind == Statement::Kind::selection;
    }
    for (const Statement& part : s.parts) walk(part, around);
  }

  void walk_loop(const Statement& s, Around around) {
    const std::size_t loop = loops_.size();
    loops_.push_back({place_ + 1, 0});
    around.loops.push_back(loop);
    around.uniform = around.in_selection = false;
    around.uniform_in_loop = true;
    look_at(s.tokens, around);
    around.own = around.own || is_own(s.tokens);
    for (const Statement& part : s.parts) walk(part, around);
    loops_[loop].end = ++place_;
  }

  /// The first barrier in the range.
  const Barrier* barrier_in(Range range) const {
    for (const Barrier& barrier : barriers_) {
      if (range.begin <= barrier.place && barrier.place < range.end) return &barrier;
    }
    return nullptr;
  }

  void judge(const Leave& leave) {
    const std::string& word = leave.at.text;
    const auto& loops = leave.around.loops;
    const Barrier* missed = nullptr;
    if (word == "continue" && !loops.empty()) {
      if (leave.around.uniform_in_loop) return;
      missed = barrier_in({leave.place, loops_[loops.back()].end});
    } else if (word == "break") {
      if (leave.around.in_selection || loops.empty() || leave.around.uniform_in_loop) return;
      missed = barrier_in(loops_[loops.back()]);
    } else {
      if (leave.around.uniform) return;
      missed = barrier_in({leave.place, place_ + 1});
      if (!missed && !loops.empty()) missed = barrier_in(loops_[loops.front()]);
    }
    if (!missed) return;
    findings_.insert({leave.at.file, leave.at.line,
                      word + " before " + missed->at.text + " (" + missed->at.file + ":" +
                          std::to_string(missed->at.line) + ")"});
  }

  const std::set<std::string>& with_barriers_;
  std::set<SkippedBarrier>& findings_;
  std::set<std::string> own_ = kOwn;
  std::size_t place_ = 0;  // in the order of the text
  std::vector<Range> loops_;
  std::vector<Barrier> barriers_;
  std::vector<Leave> leaves_;
};

}  // namespace

std::vector<SkippedBarrier> skipped_barriers(const ShaderFiles& files, const std::string& name) {
  std::set<SkippedBarrier> findings;
  for (const ShaderTokens& variant : shader_variants(files, name)) {
    const std::vector<Function> functions = Parser(variant).functions();
    const std::set<std::string> with_barriers = names_with_barriers(functions);
    for (const Function& function : functions) {
      FunctionCheck(with_barriers, findings).run(function);
    }
  }
  return {findings.begin(), findings.end()};
}

}  // namespace heddle::test
