// Any template with any context is rendered or refused with Error(invalid_argument), within its
// limits. The input is a template, a zero byte, and the context (an example if there is none).
//
//   cmake --preset fuzz && cmake --build --preset fuzz --target chat_template_fuzz
//   build/fuzz/fuzz/chat_template_fuzz -max_total_time=600 -max_len=8192 CORPUS_DIR
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "heddle/chat_template.h"
#include "heddle/error.h"

namespace {

constexpr std::string_view kContext = R"({"bos_token": "<s>", "eos_token": "</s>",
  "add_generation_prompt": true, "tools": [{"type": "function", "function": {"name": "f",
  "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}}],
  "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": " Hi é\n"},
  {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "type": "function",
  "function": {"name": "f", "arguments": {"a": 1.5}}}]}, {"role": "tool", "content": "[1]"}]})";

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "chat_template_fuzz: %s\n", what);
  std::abort();
}

heddle::TemplateLimits limits() {
  heddle::TemplateLimits limits;
  limits.steps = 200'000;
  limits.output_bytes = 1 << 20;
  limits.string_bytes = 16 << 20;
  return limits;
}

void check(const std::vector<heddle::TextPiece>& pieces) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    require(!pieces[i].text.empty(), "a piece is empty");
    require(i == 0 || pieces[i].from_template != pieces[i - 1].from_template,
            "neighbouring pieces could be one");
    bytes += pieces[i].text.size();
  }
  require(bytes <= limits().output_bytes, "the output exceeds its limit");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t split = input.find('\0');
  const std::string_view source = input.substr(0, split);
  const std::string_view context = split == input.npos ? kContext : input.substr(split + 1);
  try {
    const heddle::ChatTemplate one(source, limits());
    const auto pieces = one.render({.context = context, .now = std::tm{}});
    check(pieces);
    require(one.render({.context = context, .now = std::tm{}}) == pieces,
            "rendering again gives something else");
  } catch (const heddle::Error& error) {
    require(error.code() == heddle::ErrorCode::invalid_argument, "refused with another error");
    require(std::string_view(error.what()).starts_with("chat template"),
            "the error does not say what it is about");
  }
  return 0;
}
