#include <nlohmann/json.hpp>

#include "base/check.h"
#include "heddle/chat.h"

namespace heddle::llm {

namespace {

using nlohmann::json;

std::string dumped(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string_view own_template(const Model& model) {
  const std::optional<std::string_view> source =
      model.file().metadata().find_string("tokenizer.chat_template");
  require(source.has_value(), ErrorCode::unsupported,
          "{} has no chat template (tokenizer.chat_template)", model.file().name());
  return *source;
}

std::string names_of(const Tokenizer& tokenizer) {
  json names = json::object();
  if (tokenizer.bos()) names["bos_token"] = tokenizer.token_text(*tokenizer.bos());
  if (tokenizer.eos()) names["eos_token"] = tokenizer.token_text(*tokenizer.eos());
  return dumped(names);
}

/// The token that the vocabulary wants before every text.
std::optional<TokenId> begin_of(const Tokenizer& tokenizer) {
  const std::vector<TokenId> nothing = tokenizer.encode("");
  const bool wanted = !nothing.empty() && nothing.front() == tokenizer.bos();
  return wanted ? tokenizer.bos() : std::nullopt;
}

}  // namespace

std::string chat_context(std::span<const ChatMessage> messages) {
  json all = json::array();
  for (const ChatMessage& message : messages)
    all.push_back({{"role", message.role}, {"content", message.content}});
  return dumped({{"messages", std::move(all)}, {"add_generation_prompt", true}});
}

ChatFormat::ChatFormat(std::shared_ptr<const Model> model)
    : ChatFormat(model, own_template(*model)) {}

ChatFormat::ChatFormat(std::shared_ptr<const Model> model, std::string_view template_source,
                       const TemplateLimits& limits)
    : model_(std::move(model)),
      template_(std::make_shared<const ChatTemplate>(template_source, limits)),
      names_(names_of(model_->tokenizer())),
      begin_(begin_of(model_->tokenizer())) {}

std::vector<TextPiece> ChatFormat::render(std::string_view context,
                                          std::optional<std::tm> now) const {
  return template_->render({.context = context, .trusted = names_, .now = now});
}

std::vector<TokenId> ChatFormat::encode(std::span<const TextPiece> pieces) const {
  std::vector<TokenId> tokens = model_->tokenizer().encode_pieces(pieces);
  if (begin_ && (tokens.empty() || tokens.front() != *begin_))
    tokens.insert(tokens.begin(), *begin_);
  return tokens;
}

}  // namespace heddle::llm
