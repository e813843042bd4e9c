// /tokenize and /detokenize, as llama.cpp's server has them.
#include "server/app.h"
#include "text/utf8.h"

namespace heddle::server {

namespace {

bool is_text(std::string_view bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    const text::Utf8Unit unit = text::utf8_unit(bytes, at);
    if (unit.status != text::Utf8Status::valid) return false;
    at += unit.length;
  }
  return true;
}

/// A token's text, or its bytes where they are no text by themselves.
Json piece_of(const Tokenizer& tokenizer, TokenId token) {
  const std::string bytes = tokenizer.token_bytes(token, true);
  if (is_text(bytes)) return bytes;
  Json numbers = Json::array();
  for (const char byte : bytes) numbers.push_back(static_cast<unsigned char>(byte));
  return numbers;
}

}  // namespace

void tokenize(App& app, Call call) {
  const Json body = parse_json(call.request.body);
  Fields fields(body);
  const std::string content = fields.get_text("content");
  const EncodeOptions encode{.add_special = fields.flag("add_special").value_or(false),
                             .parse_special = fields.flag("parse_special").value_or(true)};
  const bool with_pieces = fields.flag("with_pieces").value_or(false);
  fields.ignore({"model"});
  fields.finish();
  Json tokens = Json::array();
  for (const TokenId token : app.tokenizer().encode(content, encode)) {
    if (with_pieces)
      tokens.push_back({{"id", token}, {"piece", piece_of(app.tokenizer(), token)}});
    else
      tokens.push_back(token);
  }
  send_json(*call.reply, {{"tokens", std::move(tokens)}});
}

void detokenize(App& app, Call call) {
  const Json body = parse_json(call.request.body);
  Fields fields(body);
  const std::vector<TokenId> tokens = read_token_ids(app, fields.get("tokens"), "tokens");
  fields.ignore({"model"});
  fields.finish();
  send_json(*call.reply, {{"content", app.tokenizer().decode(tokens, true)}});
}

}  // namespace heddle::server
