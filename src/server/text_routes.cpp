// /v1/chat/completions and /v1/completions.
#include "server/app.h"
#include "server/text_reply.h"

namespace heddle::server {

namespace {

constexpr std::size_t kMostPrompts = 1024, kMostReplies = 2048;
constexpr std::int64_t kDefaultCompletion = 16;  // tokens; OpenAI's

struct CompletionRequest {
  GenerationOptions generation;
  std::vector<TokenInput> prompts;
  bool echo = false;
};

CompletionRequest read_completion_request(const App& app, const Json& body) {
  Fields fields(body);
  fields.text("model");
  CompletionRequest request;
  request.generation = read_generation(fields, app.tokenizer().size());
  llm::Request& base = request.generation.request;
  if (base.max_tokens < 0) base.max_tokens = kDefaultCompletion;
  base.top_logprobs = fields.whole("logprobs", 0, 5).value_or(-1);
  const EncodeOptions encode{.parse_special = fields.flag("parse_special").value_or(true)};
  request.prompts = read_inputs(app, fields.get("prompt"), "prompt", kMostPrompts, encode);
  request.echo = fields.flag("echo").value_or(false);
  if (request.echo && base.top_logprobs >= 0)
    refuse_field("echo", "echo with logprobs is not supported: there are none of the prompt");
  if (fields.whole("best_of", 1, 128).value_or(request.generation.n) != request.generation.n)
    refuse_field("best_of", "best_of other than n is not supported");
  fields.refuse("suffix", "this server continues texts only", "");
  fields.finish();
  const auto replies = request.prompts.size() * static_cast<std::size_t>(request.generation.n);
  if (replies > kMostReplies)
    refuse_field("n", "{} prompts with {} replies each are too many; expected {} replies at most",
                 request.prompts.size(), request.generation.n, kMostReplies);
  return request;
}

std::vector<std::string> echoes_of(const CompletionRequest& request) {
  std::vector<std::string> echoes;
  for (const TokenInput& prompt : request.prompts) {
    for (std::int64_t i = 0; i < request.generation.n; ++i)
      echoes.push_back(request.echo ? prompt.text : "");
  }
  return echoes;
}

}  // namespace

void chat_completions(App& app, Call call) {
  ChatRequest request = read_chat_request(parse_json(call.request.body), app.tokenizer().size());
  ChatPrompt::Prompt prompt = app.prompt.make(request);
  check_length(app, prompt.tokens.size(), "messages");
  const bool logprobs = request.generation.request.top_logprobs >= 0;
  TextWork work{.prompts = {std::move(prompt.tokens)},
                .options = std::move(request.generation),
                .tools = std::move(prompt.tools),
                .form = chat_form(app.tokenizer(), logprobs),
                .model_id = app.options.model_id};
  std::make_shared<TextReply>(std::move(call.reply), app.engine, std::move(work))->start();
}

void completions(App& app, Call call) {
  CompletionRequest request = read_completion_request(app, parse_json(call.request.body));
  const bool logprobs = request.generation.request.top_logprobs >= 0;
  TextWork work;
  work.options = request.generation;
  work.form = completion_form(app.tokenizer(), logprobs, echoes_of(request));
  work.model_id = app.options.model_id;
  for (TokenInput& prompt : request.prompts) work.prompts.push_back(std::move(prompt.tokens));
  std::make_shared<TextReply>(std::move(call.reply), app.engine, std::move(work))->start();
}

}  // namespace heddle::server
