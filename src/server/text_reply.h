// Text from the engine as replies of /v1/chat/completions and /v1/completions, whole or streamed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/generation.h"
#include "server/jobs.h"
#include "server/tool_calls.h"

namespace heddle::server {

/// What has come of one reply.
struct Choice {
  std::size_t index = 0;
  ToolCallReader reader{{}};
  ReplyPiece whole;
  std::vector<llm::SampledToken> tokens;  // all of them, or those that no chunk has told yet
  std::string finish_reason;              // empty: it goes on
  llm::Usage usage;
  std::size_t calls = 0, text_offset = 0;  // told so far
  bool begun = false;
};

/// The JSON of one of the two endpoints.
class TextForm {
 public:
  virtual ~TextForm() = default;
  virtual std::string id_prefix() const = 0;
  virtual std::string object(bool chunk) const = 0;
  /// A choice whole, or what a chunk adds to it: `piece`.
  virtual Json whole(const Choice& choice) const = 0;
  virtual Json chunk(Choice& choice, const ReplyPiece& piece) const = 0;
};

std::unique_ptr<TextForm> chat_form(const Tokenizer& tokenizer, bool logprobs);
/// `echoes`: what stands before each choice's text.
std::unique_ptr<TextForm> completion_form(const Tokenizer& tokenizer, bool logprobs,
                                          std::vector<std::string> echoes);

struct TextWork {
  std::vector<std::vector<TokenId>> prompts;
  GenerationOptions options;
  ToolCallReader::Options tools;
  std::unique_ptr<TextForm> form;
  std::string model_id;
};

class TextReply : public Jobs {
 public:
  TextReply(std::shared_ptr<Reply> reply, llm::Engine& engine, TextWork work);

 protected:
  std::shared_ptr<llm::Ticket> submit(std::size_t job) override;
  void on_event(std::size_t job, const llm::Event& event) override;
  void on_end() override;
  void on_error(const ApiError& error) override;

 private:
  void send_chunk(Choice& choice, const ReplyPiece& piece);
  void send_event(const std::string& data);
  Json frame(bool chunk) const;
  Json usage() const;

  llm::Engine& engine_;
  TextWork work_;
  std::vector<Choice> choices_;
  std::string id_;
  std::int64_t created_;
  bool begun_ = false;
};

}  // namespace heddle::server
