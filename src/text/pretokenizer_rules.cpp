// Where each pattern is from: the `pre_tokenizer` of the family's tokenizer.json, as GGUF users
// know it from llama.cpp. Three changes keep the result and make the time linear or the pattern
// plain:
// `|\s+` closes GPT-2's pattern (without it, the one blank that is left over is a gap, hence a
// piece too), DeepSeek's `\s+$` looks back so that it is tried once for each run of blanks, and its
// letter table is written by code point.
#include "base/check.h"
#include "heddle/gguf.h"
#include "text/pretokenizer.h"

namespace heddle::text {
namespace {

constexpr std::string_view kGpt2Words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kThreeDigits = "[0-9][0-9][0-9]";
constexpr std::string_view kHanAndHangul =
    R"([\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";

constexpr std::string_view kGpt2[] = {kGpt2Words};
constexpr std::string_view kStarcoder[] = {R"(\p{N})", kGpt2Words};
constexpr std::string_view kFalcon[] = {R"([\p{P}$+<=>^~|`]+)", kGpt2Words, kThreeDigits};
constexpr std::string_view kDefault[] = {R"([\p{P}$+<=>^~|]+)", kGpt2Words, R"(\p{N}+)",
                                         kThreeDigits};
constexpr std::string_view kLlama3[] = {
    R"('[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
    R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::string_view kQwen2[] = {
    R"('[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
    R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::string_view kDeepseekCoder[] = {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
                                               kHanAndHangul, R"(\p{N})"};
constexpr std::string_view kDeepseekLlm[] = {
    R"([\r\n])",
    // Latin, Greek, Cyrillic and the other letters that have case
    R"(\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293})"
    R"(\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A})"
    R"(\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556})"
    R"(\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF})"
    R"(\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D})"
    R"(\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D})"
    R"(\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4})"
    R"(\x{1FC6}-\x{1FCC})"
    R"(\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4})"
    R"(\x{1FF6}-\x{1FFC}\x{2102}\x{2107})"
    R"(\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D})"
    R"(\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184})"
    R"(\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D})"
    R"(\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF})"
    R"(\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F})"
    R"(\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2})"
    R"(\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+)",
    R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)",
    R"((?<!\s)\s+\z)", kHanAndHangul, R"(\p{N}+)"};

constexpr std::string_view kDefaultNames[] = {"default"};
constexpr std::string_view kLlama3Names[] = {"llama-bpe", "llama3", "llama-v3"};
constexpr std::string_view kQwen2Names[] = {"qwen2", "deepseek-r1-qwen", "stablelm2"};
constexpr std::string_view kGpt2Names[] = {"gpt-2", "phi-2", "mpt", "olmo"};
constexpr std::string_view kStarcoderNames[] = {"starcoder", "refact", "command-r", "smollm"};
constexpr std::string_view kFalconNames[] = {"falcon"};
constexpr std::string_view kDeepseekLlmNames[] = {"deepseek-llm"};
constexpr std::string_view kDeepseekCoderNames[] = {"deepseek-coder"};

constexpr PretokenizerRules kRules[] = {
    {kDefaultNames, kDefault},
    {kLlama3Names, kLlama3, true, true},
    {kQwen2Names, kQwen2},
    {kGpt2Names, kGpt2},
    {kStarcoderNames, kStarcoder},
    {kFalconNames, kFalcon},
    {kDeepseekLlmNames, kDeepseekLlm},
    {kDeepseekCoderNames, kDeepseekCoder},
};

}  // namespace

const PretokenizerRules& pretokenizer_rules(std::string_view name) {
  std::string known;
  for (const PretokenizerRules& rules : kRules) {
    for (const std::string_view candidate : rules.names) {
      if (candidate == name) return rules;
      known += known.empty() ? "" : ", ";
      known += candidate;
    }
  }
  fail(ErrorCode::unsupported,
       "tokenizer.ggml.pre: \"{}\" is not a known pre-tokenizer; known are {}", name, known);
}

const PretokenizerRules& pretokenizer_rules(const gguf::Metadata& metadata) {
  return pretokenizer_rules(metadata.find_string("tokenizer.ggml.pre").value_or("default"));
}

}  // namespace heddle::text
