#include "server/text_reply.h"

#include <ctime>
#include <utility>

#include "server/api_error.h"

namespace heddle::server {

namespace {

std::string finish_reason(llm::StopReason reason, const ToolCallReader& reader) {
  const bool whole =
      reason != llm::StopReason::max_tokens && reason != llm::StopReason::context_full;
  if (!whole) return "length";
  return reader.has_calls() ? "tool_calls" : "stop";
}

void append(ReplyPiece& whole, const ReplyPiece& piece) {
  whole.content += piece.content;
  whole.calls.insert(whole.calls.end(), piece.calls.begin(), piece.calls.end());
}

}  // namespace

TextReply::TextReply(std::shared_ptr<Reply> reply, llm::Engine& engine, TextWork work)
    : Jobs(std::move(reply), work.prompts.size() * static_cast<std::size_t>(work.options.n),
           static_cast<std::size_t>(engine.options().n_parallel)),
      engine_(engine),
      work_(std::move(work)),
      id_(random_id(work_.form->id_prefix(), 24)),
      created_(std::time(nullptr)) {
  choices_.resize(work_.prompts.size() * static_cast<std::size_t>(work_.options.n));
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    choices_[i].index = i;
    choices_[i].reader = ToolCallReader(work_.tools);
  }
}

std::shared_ptr<llm::Ticket> TextReply::submit(std::size_t job) {
  const auto n = static_cast<std::size_t>(work_.options.n);
  llm::Request request = work_.options.request;
  request.prompt = work_.prompts[job / n];
  request.sampler.seed += job % n;
  return engine_.submit(std::move(request));
}

void TextReply::on_event(std::size_t job, const llm::Event& event) {
  Choice& choice = choices_[job];
  ReplyPiece piece = choice.reader.add(event.text);
  choice.tokens.insert(choice.tokens.end(), event.tokens.begin(), event.tokens.end());
  if (event.finish) append(piece, choice.reader.finish());
  if (work_.options.stream)
    send_chunk(choice, piece);
  else
    append(choice.whole, piece);
  if (event.finish) {
    choice.usage = event.finish->usage;
    choice.finish_reason = finish_reason(event.finish->reason, choice.reader);
    if (work_.options.stream) send_chunk(choice, {});  // why it ends, alone, as clients expect it
  }
  // What comes after the only call is of no use.
  if (!event.finish && !work_.tools.parallel && choice.reader.has_calls()) cancel(job);
}

void TextReply::send_chunk(Choice& choice, const ReplyPiece& piece) {
  const bool silent = piece.content.empty() && piece.calls.empty();
  if (silent && choice.begun && choice.finish_reason.empty()) return;
  Json chunk = frame(true);
  chunk["choices"] = Json::array({work_.form->chunk(choice, piece)});
  if (work_.options.include_usage) chunk["usage"] = nullptr;
  send_event(json_text(chunk));
  choice.tokens.clear();
  choice.begun = true;
}

void TextReply::send_event(const std::string& data) {
  if (!std::exchange(begun_, true))
    reply().begin({.content_type = "text/event-stream",
                   .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}}});
  reply().write("data: " + data + "\n\n");
}

void TextReply::on_end() {
  Json last = frame(work_.options.stream);
  last["choices"] = Json::array();
  last["usage"] = usage();
  if (!work_.options.stream) {
    for (const Choice& choice : choices_) last["choices"].push_back(work_.form->whole(choice));
    reply().send({.body = json_text(last)});
    return;
  }
  if (work_.options.include_usage) send_event(json_text(last));
  send_event("[DONE]");
  reply().end();
}

void TextReply::on_error(const ApiError& error) {
  if (!begun_) return reply().send(error_response(error));
  send_event(error_body(error));
  reply().end();
}

Json TextReply::frame(bool chunk) const {
  return {{"id", id_},
          {"object", work_.form->object(chunk)},
          {"created", created_},
          {"model", work_.model_id},
          {"system_fingerprint", "heddle"}};
}

/// A prompt counts once, however many replies it has.
Json TextReply::usage() const {
  std::int64_t prompt = 0, cached = 0, generated = 0;
  for (const Choice& choice : choices_) {
    generated += choice.usage.generated_tokens;
    if (choice.index % static_cast<std::size_t>(work_.options.n) != 0) continue;
    prompt += choice.usage.prompt_tokens;
    cached += choice.usage.cached_tokens;
  }
  return {{"prompt_tokens", prompt},
          {"completion_tokens", generated},
          {"total_tokens", prompt + generated},
          {"prompt_tokens_details", {{"cached_tokens", cached}}}};
}

}  // namespace heddle::server
