// Chat templates (`tokenizer.chat_template`): Jinja, as Hugging Face's apply_chat_template sets it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

/// What a template may take. Going beyond one throws invalid_argument naming it.
struct TemplateLimits {
  std::size_t source_bytes = std::size_t{1} << 20;
  /// How deep statements and expressions may nest in the source, and lists and dicts in values.
  int nesting = 200;
  /// Statements and expressions in progress at once: what recursive macros run into. Each takes
  /// about a KiB of the thread's stack.
  int recursion = 600;
  /// Statements, expressions, elements and every 64 bytes of text looked at.
  std::int64_t steps = 10'000'000;
  /// The text that comes out, and any one string on the way.
  std::size_t output_bytes = std::size_t{64} << 20;
  /// All strings made on the way, together.
  std::size_t string_bytes = std::size_t{512} << 20;
  /// Elements of a range().
  std::int64_t range = 100'000;
};

/// A piece of a rendered text. What the template itself says may name special tokens; data, which
/// is what came from the context (messages, tools), must be tokenised with special tokens off.
struct TextPiece {
  std::string text;
  bool from_template;
  bool operator==(const TextPiece&) const = default;
};

/// The pieces one after the other.
std::string joined(const std::vector<TextPiece>& pieces);

struct TemplateInput {
  /// A JSON object: the names that the template reads. Its strings are data, whatever is done to
  /// them.
  std::string_view context;
  /// A JSON object of more names, whose strings count as the template's own text: `bos_token` and
  /// `eos_token`, say. Its names win.
  std::string_view trusted = "{}";
  /// What strftime_now tells; the local time if not given.
  std::optional<std::tm> now = std::nullopt;
};

/// A parsed template. Immutable; any number of threads may render one at once.
///
/// Trim and lstrip blocks are on, one newline at the end of the source is dropped, break, continue
/// and generation blocks are there, lists and dicts cannot be changed. `include`, `import`,
/// `extends`, `block` and `autoescape` are refused. Integers have 64 bits; larger
/// ones are errors, or floats where they come from the context.
///
/// Errors (invalid_argument) begin with "chat template, line L, column C: ". What raise_exception
/// says follows as it is.
class ChatTemplate {
 public:
  explicit ChatTemplate(std::string_view source, const TemplateLimits& limits = {});
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  /// Neighbouring pieces differ in `from_template`; none is empty.
  std::vector<TextPiece> render(const TemplateInput& input) const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace heddle
