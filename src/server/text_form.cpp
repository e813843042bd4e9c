#include <algorithm>
#include <cmath>
#include <utility>

#include "server/text_reply.h"

namespace heddle::server {

namespace {

/// OpenAI's number for what has no probability: JSON has no infinity.
constexpr double kNoLogprob = -9999;

double shown(double logprob) {
  return std::isfinite(logprob) ? std::max(logprob, kNoLogprob) : kNoLogprob;
}

/// Characters that begin in `bytes`.
std::size_t count_characters(std::string_view bytes) {
  return static_cast<std::size_t>(
      std::ranges::count_if(bytes, [](char c) { return (c & 0xC0) != 0x80; }));
}

Json reason(const Choice& choice) {
  return choice.finish_reason.empty() ? Json() : Json(choice.finish_reason);
}

class ChatForm : public TextForm {
 public:
  ChatForm(const Tokenizer& tokenizer, bool logprobs)
      : tokenizer_(tokenizer), logprobs_(logprobs) {}

  std::string id_prefix() const override { return "chatcmpl-"; }
  std::string object(bool chunk) const override {
    return chunk ? "chat.completion.chunk" : "chat.completion";
  }

  Json whole(const Choice& choice) const override {
    const ReplyPiece& reply = choice.whole;
    Json message = {{"role", "assistant"}, {"content", reply.content}, {"refusal", nullptr}};
    if (reply.content.empty() && !reply.calls.empty()) message["content"] = nullptr;
    for (const ToolCall& call : reply.calls) message["tool_calls"].push_back(json_of(call));
    return {{"index", choice.index},
            {"message", std::move(message)},
            {"logprobs", logprobs(choice)},
            {"finish_reason", reason(choice)}};
  }

  Json chunk(Choice& choice, const ReplyPiece& piece) const override {
    Json delta = Json::object();
    if (!choice.begun) delta["role"] = "assistant";
    if (!piece.content.empty() || (!choice.begun && piece.calls.empty()))
      delta["content"] = piece.content;
    for (const ToolCall& call : piece.calls) {
      Json json = {{"index", choice.calls++}};
      json.update(json_of(call));
      delta["tool_calls"].push_back(std::move(json));
    }
    return {{"index", choice.index},
            {"delta", std::move(delta)},
            {"logprobs", logprobs(choice)},
            {"finish_reason", reason(choice)}};
  }

 private:
  static Json json_of(const ToolCall& call) {
    return {{"id", call.id},
            {"type", "function"},
            {"function", {{"name", call.name}, {"arguments", call.arguments}}}};
  }

  Json json_of(const llm::TokenLogprob& token) const {
    const std::string bytes = tokenizer_.token_bytes(token.token, true);
    Json numbers = Json::array();
    for (const char byte : bytes) numbers.push_back(static_cast<unsigned char>(byte));
    return {{"token", bytes}, {"logprob", shown(token.logprob)}, {"bytes", std::move(numbers)}};
  }

  Json logprobs(const Choice& choice) const {
    if (!logprobs_) return nullptr;
    Json content = Json::array();
    for (const llm::SampledToken& token : choice.tokens) {
      Json json = json_of(token.chosen);
      json["top_logprobs"] = Json::array();
      for (const llm::TokenLogprob& other : token.top)
        json["top_logprobs"].push_back(json_of(other));
      content.push_back(std::move(json));
    }
    return {{"content", std::move(content)}, {"refusal", nullptr}};
  }

  const Tokenizer& tokenizer_;
  bool logprobs_;
};

class CompletionForm : public TextForm {
 public:
  CompletionForm(const Tokenizer& tokenizer, bool logprobs, std::vector<std::string> echoes)
      : tokenizer_(tokenizer), logprobs_(logprobs), echoes_(std::move(echoes)) {}

  std::string id_prefix() const override { return "cmpl-"; }
  std::string object(bool) const override { return "text_completion"; }

  Json whole(const Choice& choice) const override {
    const std::string& echo = echoes_[choice.index];
    std::size_t offset = count_characters(echo);
    return json(choice, echo + choice.whole.content, offset);
  }

  Json chunk(Choice& choice, const ReplyPiece& piece) const override {
    const std::string echo = choice.begun ? "" : echoes_[choice.index];
    choice.text_offset += count_characters(echo);
    return json(choice, echo + piece.content, choice.text_offset);
  }

 private:
  Json json(const Choice& choice, std::string text, std::size_t& offset) const {
    return {{"index", choice.index},
            {"text", std::move(text)},
            {"logprobs", logprobs(choice, offset)},
            {"finish_reason", reason(choice)}};
  }

  Json logprobs(const Choice& choice, std::size_t& offset) const {
    if (!logprobs_) return nullptr;
    Json tokens = Json::array(), chosen = Json::array(), top = Json::array(),
         offsets = Json::array();
    for (const llm::SampledToken& token : choice.tokens) {
      const std::string bytes = tokenizer_.token_bytes(token.chosen.token, true);
      tokens.push_back(bytes);
      chosen.push_back(shown(token.chosen.logprob));
      offsets.push_back(offset);
      offset += count_characters(bytes);
      Json others = Json::object();
      for (const llm::TokenLogprob& other : token.top)
        others[tokenizer_.token_bytes(other.token, true)] = shown(other.logprob);
      top.push_back(std::move(others));
    }
    return {{"tokens", std::move(tokens)},
            {"token_logprobs", std::move(chosen)},
            {"top_logprobs", std::move(top)},
            {"text_offset", std::move(offsets)}};
  }

  const Tokenizer& tokenizer_;
  bool logprobs_;
  std::vector<std::string> echoes_;
};

}  // namespace

std::unique_ptr<TextForm> chat_form(const Tokenizer& tokenizer, bool logprobs) {
  return std::make_unique<ChatForm>(tokenizer, logprobs);
}

std::unique_ptr<TextForm> completion_form(const Tokenizer& tokenizer, bool logprobs,
                                          std::vector<std::string> echoes) {
  return std::make_unique<CompletionForm>(tokenizer, logprobs, std::move(echoes));
}

}  // namespace heddle::server
