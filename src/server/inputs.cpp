// Texts and token lists of requests.
#include "server/app.h"

namespace heddle::server {

namespace {

bool is_token_list(const Json& value) {
  return value.is_array() && !value.empty() && value[0].is_number();
}

TokenInput read_input(const App& app, const Json& value, const std::string& field,
                      const EncodeOptions& encode) {
  TokenInput input;
  if (value.is_string()) {
    input.text = value.get<std::string>();
    input.tokens = app.tokenizer().encode(input.text, encode);
  } else if (value.is_array()) {
    input.tokens = read_token_ids(app, value, field);
    input.text = app.tokenizer().decode(input.tokens);
  } else {
    refuse_field(field, "{} is to be a string, a list of token ids, or a list of those", field);
  }
  if (input.tokens.empty()) refuse_field(field, "{} has no tokens; at least one is needed", field);
  check_length(app, input.tokens.size(), field);
  return input;
}

}  // namespace

void check_length(const App& app, std::size_t tokens, const std::string& field) {
  if (tokens <= static_cast<std::size_t>(app.n_ctx())) return;
  ApiError error(400, fmt::format("This model's maximum context length is {} tokens. However, {} "
                                  "has {} tokens. Please shorten it.",
                                  app.n_ctx(), field, tokens));
  error.param = field;
  error.code = "context_length_exceeded";
  throw error;
}

std::vector<TokenId> read_token_ids(const App& app, const Json& value, const std::string& field) {
  if (!value.is_array()) refuse_field(field, "{} is to be a list of token ids", field);
  const auto last = static_cast<std::int64_t>(app.tokenizer().size()) - 1;
  std::vector<TokenId> tokens;
  tokens.reserve(value.size());
  for (const Json& id : value)
    tokens.push_back(static_cast<TokenId>(whole_number(id, field, 0, last)));
  return tokens;
}

std::vector<TokenInput> read_inputs(const App& app, const Json& value, const std::string& field,
                                    std::size_t most, const EncodeOptions& encode) {
  if (!value.is_array() || is_token_list(value)) return {read_input(app, value, field, encode)};
  if (value.empty() || value.size() > most)
    refuse_field(field, "{} has {} elements; expected 1 to {}", field, value.size(), most);
  std::vector<TokenInput> inputs;
  for (std::size_t i = 0; i < value.size(); ++i)
    inputs.push_back(read_input(app, value[i], fmt::format("{}[{}]", field, i), encode));
  return inputs;
}

}  // namespace heddle::server
