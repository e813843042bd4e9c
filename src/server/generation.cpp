#include "server/generation.h"

#include <charconv>
#include <limits>
#include <random>

#include "heddle/grammar.h"
#include "server/api_error.h"

namespace heddle::server {

namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t kMostStops = 16, kLongestStop = 1000;
constexpr std::int64_t kMostReplies = 128;

std::vector<std::string> read_stop(Fields& fields) {
  const Json* value = fields.find("stop");
  if (!value) return {};
  const Json list = value->is_array() ? *value : Json::array({*value});
  if (list.size() > kMostStops)
    refuse_field("stop", "stop has {} texts; expected {} at most", list.size(), kMostStops);
  std::vector<std::string> stop;
  for (const Json& text : list) {
    if (!text.is_string()) refuse_field("stop", "stop is to be a string, or a list of strings");
    stop.push_back(text.get<std::string>());
    if (stop.back().empty() || stop.back().size() > kLongestStop)
      refuse_field("stop", "a text of stop has {} bytes; expected 1 to {}", stop.back().size(),
                   kLongestStop);
  }
  return stop;
}

std::map<TokenId, float> read_logit_bias(Fields& fields, std::size_t vocabulary) {
  const Json* value = fields.find("logit_bias");
  if (!value) return {};
  Fields members(*value, "logit_bias");
  std::map<TokenId, float> bias;
  for (const auto& [name, amount] : value->items()) {
    TokenId token = -1;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), token);
    if (error != std::errc() || end != name.data() + name.size() || token < 0 ||
        static_cast<std::size_t>(token) >= vocabulary)
      refuse_field("logit_bias", "logit_bias names the token '{}'; expected an id from 0 to {}",
                   name, vocabulary - 1);
    bias[token] = static_cast<float>(members.number(name, -100, 100).value_or(0));
  }
  return bias;
}

std::uint64_t read_seed(Fields& fields) {
  const Json* value = fields.find("seed");
  if (!value) return std::random_device{}() | std::uint64_t{std::random_device{}()} << 32;
  if (value->is_number_unsigned()) return value->get<std::uint64_t>();
  return static_cast<std::uint64_t>(whole_number(*value, "seed",
                                                 std::numeric_limits<std::int64_t>::min(),
                                                 std::numeric_limits<std::int64_t>::max()));
}

/// The defaults are OpenAI's: the model's own distribution.
llm::SamplerOptions read_sampler(Fields& fields, std::size_t vocabulary) {
  const auto number = [&](const char* name, double least, double most, float otherwise) {
    const auto given = fields.number(name, least, most);
    return given ? static_cast<float>(*given) : otherwise;
  };
  llm::SamplerOptions sampler;
  sampler.temperature = number("temperature", 0, 2, 1);
  sampler.top_p = number("top_p", 0, 1, 1);
  sampler.min_p = number("min_p", 0, 1, 0);
  sampler.top_k = fields.whole("top_k", 0, kMost).value_or(0);
  sampler.repeat_penalty = number("repeat_penalty", 0.01, 100, 1);
  sampler.repeat_last_n = fields.whole("repeat_last_n", 0, kMost).value_or(64);
  sampler.presence_penalty = number("presence_penalty", -2, 2, 0);
  sampler.frequency_penalty = number("frequency_penalty", -2, 2, 0);
  sampler.logit_bias = read_logit_bias(fields, vocabulary);
  sampler.seed = read_seed(fields);
  return sampler;
}

void read_streaming(Fields& fields, GenerationOptions& options) {
  options.stream = fields.flag("stream").value_or(false);
  const Json* value = fields.find("stream_options");
  if (!value) return;
  if (!options.stream)
    refuse_field("stream_options", "stream_options makes sense only with stream: true");
  Fields members(*value, "stream_options");
  options.include_usage = members.flag("include_usage").value_or(false);
  members.ignore({"include_obfuscation"});
  members.finish();
}

std::shared_ptr<const Grammar> schema_grammar(const Json& format) {
  Fields members(format, "response_format.json_schema");
  members.get_text("name");
  members.text("description");
  members.flag("strict");
  const Json* schema = members.find("schema");
  members.finish();
  return schema ? Grammar::from_json_schema(json_text(*schema)) : Grammar::json_object();
}

std::shared_ptr<const Grammar> format_grammar(Fields& format) {
  const std::string type = format.get_text("type");
  if (type == "text") return nullptr;
  if (type == "json_object") {
    // llama.cpp's form of a schema.
    const Json* schema = format.find("schema");
    return schema ? Grammar::from_json_schema(json_text(*schema)) : Grammar::json_object();
  }
  if (type == "json_schema") return schema_grammar(format.get("json_schema"));
  refuse_field("response_format.type",
               "response_format.type is '{}'; expected text, json_object or json_schema", type);
}

}  // namespace

GenerationOptions read_generation(Fields& fields, std::size_t vocabulary) {
  GenerationOptions options;
  llm::Request& request = options.request;
  const auto older = fields.whole("max_tokens", 1, kMost);
  request.max_tokens = fields.whole("max_completion_tokens", 1, kMost).value_or(older.value_or(-1));
  request.stop = read_stop(fields);
  request.sampler = read_sampler(fields, vocabulary);
  request.grammar = read_grammar(fields);
  request.ignore_end_tokens = fields.flag("ignore_eos").value_or(false);
  if (request.grammar && request.ignore_end_tokens)
    refuse_field("ignore_eos", "ignore_eos and a grammar exclude each other");
  options.n = fields.whole("n", 1, kMostReplies).value_or(1);
  read_streaming(fields, options);
  fields.ignore({"user", "store", "metadata", "service_tier", "safety_identifier",
                 "prompt_cache_key", "prompt_cache_retention"});
  return options;
}

std::shared_ptr<const Grammar> read_grammar(Fields& fields) {
  const Json* format = fields.find("response_format");
  std::shared_ptr<const Grammar> grammar;
  std::string at = "response_format";
  try {
    if (format) {
      Fields members(*format, "response_format");
      grammar = format_grammar(members);
      members.finish();
    }
    const auto text = fields.text("grammar");
    if (text && grammar) refuse_field("grammar", "grammar and response_format exclude each other");
    at = "grammar";
    return text ? Grammar::from_gbnf(*text) : grammar;
  } catch (const Error& error) {
    refuse_field(at, "{}: {}", at, error.what());
  }
}

}  // namespace heddle::server
