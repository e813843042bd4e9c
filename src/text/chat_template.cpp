#include "heddle/chat_template.h"

#include <algorithm>

#include "base/check.h"
#include "text/jinja/check_names.h"
#include "text/jinja/evaluator.h"
#include "text/jinja/parser.h"
#include "text/jinja/unicode.h"

namespace heddle {

namespace jinja = text::jinja;

namespace {

[[noreturn]] void fail_at(std::string_view source, std::size_t at, std::string_view why) {
  const std::string_view before = source.substr(0, std::min(at, source.size()));
  const std::size_t newline = before.rfind('\n');
  const std::string_view line = newline == before.npos ? before : before.substr(newline + 1);
  fail(ErrorCode::invalid_argument, "chat template, line {}, column {}: {}",
       std::count(before.begin(), before.end(), '\n') + 1, jinja::count_characters(line) + 1, why);
}

std::tm local_now() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return local;
}

/// With the day of the week and of the year that belong to its date.
std::tm completed(std::tm time) {
  timegm(&time);
  return time;
}

std::vector<TextPiece> pieces_of(const jinja::Text& text) {
  std::vector<TextPiece> pieces;
  text.each_run([&](std::string_view piece, jinja::Origin origin) {
    pieces.push_back({std::string(piece), origin == jinja::Origin::from_template});
  });
  return pieces;
}

}  // namespace

struct ChatTemplate::Impl {
  std::string source;
  TemplateLimits limits;
  jinja::Body body;
};

std::string joined(const std::vector<TextPiece>& pieces) {
  std::string text;
  for (const TextPiece& piece : pieces) text += piece.text;
  return text;
}

ChatTemplate::ChatTemplate(std::string_view source, const TemplateLimits& limits) {
  require(source.size() <= limits.source_bytes, ErrorCode::invalid_argument,
          "chat template: {} bytes exceed {} (limit 'source_bytes')", source.size(),
          limits.source_bytes);
  auto impl = std::make_unique<Impl>();
  impl->limits = limits;
  try {
    impl->source = jinja::normalized_source(source);
    impl->body = jinja::parse(jinja::tokenize(impl->source), limits);
    jinja::check_names(impl->body);
  } catch (const jinja::SyntaxFailure& failure) {
    fail_at(impl->source.empty() ? source : impl->source, failure.at, failure.what());
  }
  impl_ = std::move(impl);
}

ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

std::vector<TextPiece> ChatTemplate::render(const TemplateInput& input) const {
  jinja::Runtime run(impl_->limits, input.now ? completed(*input.now) : local_now());
  std::optional<jinja::Evaluator> evaluator;
  try {
    using jinja::Origin;
    evaluator.emplace(
        run, jinja::from_json(run, input.trusted, Origin::from_template, "the trusted input"),
        jinja::from_json(run, input.context, Origin::data, "the context"));
    return pieces_of(evaluator->render(impl_->body));
  } catch (const jinja::Failure& failure) {
    if (evaluator) fail_at(impl_->source, evaluator->at(), failure.what());
    fail(ErrorCode::invalid_argument, "chat template: {}", failure.what());
  }
}

}  // namespace heddle
