#include "project/shader_text.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

namespace heddle::test {

namespace {

constexpr std::size_t kMostVariants = 4096;
constexpr std::size_t kDeepestInclude = 32;

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

/// The same text with blanks in place of comments; lines stay where they are.
std::string without_comments(std::string text) {
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    const bool line = text[i] == '/' && text[i + 1] == '/';
    const bool block = text[i] == '/' && text[i + 1] == '*';
    if (!line && !block) continue;
    std::size_t end = line ? text.find('\n', i) : text.find("*/", i + 2);
    if (end == std::string::npos) end = text.size();
    if (block) end = std::min(end + 2, text.size());
    for (; i < end; ++i) {
      if (text[i] != '\n' && text[i] != '\\') text[i] = ' ';
    }
  }
  return text;
}

/// Lines as the preprocessor counts them: one that ends in a backslash goes on.
std::vector<ShaderTokens> logical_lines(const std::string& file, const std::string& raw) {
  const std::string text = without_comments(raw);
  std::vector<ShaderTokens> lines(1);
  int line = 1;
  bool spaced = false;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '\\' && i + 1 < text.size() && text[i + 1] == '\n') {
      ++line, i += 2, spaced = true;
    } else if (c == '\n') {
      ++line, ++i;
      lines.emplace_back();
    } else if (std::isspace(static_cast<unsigned char>(c))) {
      ++i, spaced = true;
    } else {
      std::size_t end = i + 1;
      if (c == '"') {
        end = std::min(text.find('"', i + 1), text.size() - 1) + 1;
      } else if (is_word(c)) {
        while (end < text.size() && is_word(text[end])) ++end;
      } else if (c == '#' && end < text.size() && text[end] == '#') {
        ++end;
      }
      lines.back().push_back({text.substr(i, end - i), file, line, spaced});
      i = end, spaced = false;
    }
  }
  return lines;
}

struct Macro {
  bool takes_arguments = false;
  std::vector<std::string> parameters;
  ShaderTokens body;
};
using Macros = std::map<std::string, Macro>;

/// The index after the bracket that closes the one at `open`.
std::size_t after_closing(const ShaderTokens& tokens, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < tokens.size(); ++i) {
    if (tokens[i].text == "(") ++depth;
    if (tokens[i].text == ")" && --depth == 0) return i + 1;
  }
  return tokens.size();
}

std::vector<ShaderTokens> arguments_of(const ShaderTokens& tokens, std::size_t open,
                                       std::size_t end) {
  std::vector<ShaderTokens> arguments(1);
  int depth = 0;
  for (std::size_t i = open + 1; i + 1 < end; ++i) {
    const std::string& text = tokens[i].text;
    if (text == "(" || text == "[") ++depth;
    if (text == ")" || text == "]") --depth;
    if (text == "," && depth == 0)
      arguments.emplace_back();
    else
      arguments.back().push_back(tokens[i]);
  }
  return arguments;
}

ShaderTokens substituted(const Macro& macro, const std::vector<ShaderTokens>& arguments) {
  ShaderTokens result;
  bool paste = false;
  const auto add = [&](const ShaderToken& token) {
    if (std::exchange(paste, false) && !result.empty())
      result.back().text += token.text;
    else
      result.push_back(token);
  };
  for (const ShaderToken& token : macro.body) {
    if (token.text == "##") {
      paste = true;
      continue;
    }
    std::size_t p = 0;
    while (p < macro.parameters.size() && macro.parameters[p] != token.text) ++p;
    if (p == macro.parameters.size()) {
      add(token);
    } else if (p < arguments.size()) {
      for (const ShaderToken& part : arguments[p]) add(part);
    }
  }
  return result;
}

void expand(const ShaderTokens& tokens, const Macros& macros, std::set<std::string> hidden,
            ShaderTokens& out) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto found = macros.find(tokens[i].text);
    const bool called = i + 1 < tokens.size() && tokens[i + 1].text == "(";
    if (found == macros.end() || hidden.contains(found->first) ||
        (found->second.takes_arguments && !called)) {
      out.push_back(tokens[i]);
      continue;
    }
    std::vector<ShaderTokens> arguments;
    if (found->second.takes_arguments) {
      const std::size_t end = after_closing(tokens, i + 1);
      arguments = arguments_of(tokens, i + 1, end);
      i = end - 1;
    }
    std::set<std::string> now_hidden = hidden;
    now_hidden.insert(found->first);
    expand(substituted(found->second, arguments), macros, std::move(now_hidden), out);
  }
}

/// How conditions that these files leave open turn out.
using Choices = std::map<std::string, bool>;

/// One variant in the making.
class Preprocessor {
 public:
  Preprocessor(const ShaderFiles& files, const Choices& choices)
      : files_(files), choices_(choices) {}

  /// False when it comes upon a condition without a choice: see `open_choice`.
  bool read(const std::string& name) {
    const auto file = files_.find(name);
    if (file == files_.end()) throw std::runtime_error("there is no shader file " + name);
    if (++depth_ > kDeepestInclude) throw std::runtime_error(name + ": includes itself");
    const std::size_t outer = conditions_.size();
    for (const ShaderTokens& line : logical_lines(name, file->second)) {
      if (line.empty()) continue;
      if (line[0].text != "#") {
        if (active()) text_.insert(text_.end(), line.begin(), line.end());
      } else if (!directive(line)) {
        return false;
      }
    }
    if (conditions_.size() != outer) throw std::runtime_error(name + ": an #if without #endif");
    --depth_;
    flush();
    return true;
  }

  ShaderTokens take() { return std::move(out_); }
  const std::string& open_choice() const { return open_choice_; }

 private:
  struct Condition {
    bool outer, taken, now;  // whether it stands in active text; had an active branch; is in one
  };

  bool active() const { return conditions_.empty() || conditions_.back().now; }

  void flush() {
    expand(text_, macros_, {}, out_);
    text_.clear();
  }

  bool directive(const ShaderTokens& line) {
    flush();
    if (line.size() < 2) return true;
    const std::string& word = line[1].text;
    if (word.starts_with("if") || word == "elif") return condition(line, word);
    if (word == "else" || word == "endif") {
      if (conditions_.empty()) throw std::runtime_error(line[0].file + ": #" + word + " alone");
      Condition& c = conditions_.back();
      c.now = c.outer && !c.taken;
      if (word == "endif") conditions_.pop_back();
    } else if (active() && word == "include" && line.size() > 2) {
      const std::string& quoted = line[2].text;
      return read(quoted.substr(1, quoted.size() - 2));
    } else if (active() && word == "define" && line.size() > 2) {
      define(line);
    } else if (active() && word == "undef" && line.size() > 2) {
      macros_.erase(line[2].text);
    }
    return true;
  }

  void define(const ShaderTokens& line) {
    Macro macro;
    std::size_t body = 3;
    macro.takes_arguments = line.size() > 3 && line[3].text == "(" && !line[3].spaced;
    if (macro.takes_arguments) {
      body = after_closing(line, 3);
      for (const ShaderTokens& name : arguments_of(line, 3, body)) {
        if (!name.empty()) macro.parameters.push_back(name[0].text);
      }
    }
    macro.body.assign(line.begin() + static_cast<std::ptrdiff_t>(body), line.end());
    macros_[line[2].text] = std::move(macro);
  }

  bool condition(const ShaderTokens& line, const std::string& word) {
    const bool is_new = word != "elif";
    if (is_new) conditions_.push_back({active(), false, false});
    if (conditions_.empty()) throw std::runtime_error(line[0].file + ": #elif alone");
    Condition& c = conditions_.back();
    const bool relevant = c.outer && !c.taken;
    const std::optional<bool> holds = relevant ? value(line, word) : false;
    if (!holds) return false;
    c.now = *holds;
    c.taken = c.taken || *holds;
    return true;
  }

  /// Of `#ifdef X`, `#ifndef X`, `#if [!]defined(X)`; other conditions are a choice as a whole.
  std::optional<bool> value(const ShaderTokens& line, const std::string& word) {
    ShaderTokens rest(line.begin() + 2, line.end());
    bool negated = word == "ifndef";
    if (word == "if" || word == "elif") {
      if (!rest.empty() && rest[0].text == "!") {
        negated = true;
        rest.erase(rest.begin());
      }
      const bool asks = rest.size() == 4 && rest[0].text == "defined" && rest[1].text == "(";
      if (asks) {
        rest = {rest[2]};
      } else if (negated) {
        rest.insert(rest.begin(), {"!", line[0].file, line[0].line});
        negated = false;
      }
    }
    std::string name;
    for (const ShaderToken& token : rest) name += (name.empty() ? "" : " ") + token.text;
    if (macros_.contains(name)) return !negated;
    const auto chosen = choices_.find(name);
    if (chosen != choices_.end()) return chosen->second != negated;
    open_choice_ = name;
    return std::nullopt;
  }

  const ShaderFiles& files_;
  const Choices& choices_;
  Macros macros_;
  std::vector<Condition> conditions_;
  ShaderTokens text_, out_;
  std::string open_choice_;
  std::size_t depth_ = 0;
};

}  // namespace

std::vector<ShaderTokens> shader_variants(const ShaderFiles& files, const std::string& name) {
  std::vector<ShaderTokens> variants;
  std::vector<Choices> open{{}};
  while (!open.empty()) {
    Choices choices = std::move(open.back());
    open.pop_back();
    Preprocessor preprocessor(files, choices);
    if (preprocessor.read(name)) {
      variants.push_back(preprocessor.take());
      if (variants.size() > kMostVariants) throw std::runtime_error(name + ": too many variants");
      continue;
    }
    for (const bool value : {true, false}) {
      choices[preprocessor.open_choice()] = value;
      open.push_back(choices);
    }
  }
  return variants;
}

}  // namespace heddle::test
