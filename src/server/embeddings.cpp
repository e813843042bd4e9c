// /v1/embeddings.
#include <bit>
#include <cstring>

#include "server/app.h"
#include "server/jobs.h"

namespace heddle::server {

namespace {

constexpr std::size_t kMostInputs = 2048;

struct EmbeddingWork {
  std::vector<TokenInput> inputs;
  bool base64 = false;
  std::string model_id;
};

std::string base64(std::span<const unsigned char> bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k) bits = bits << 8 | (k < count ? bytes[i + k] : 0);
    for (std::size_t k = 0; k < 4; ++k)
      text += k <= count ? kDigits[bits >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

/// Little-endian float32, as OpenAI's clients ask for it to save bytes.
std::string base64_of(const std::vector<float>& numbers) {
  static_assert(std::endian::native == std::endian::little);
  std::vector<unsigned char> bytes(numbers.size() * sizeof(float));
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return base64(bytes);
}

class EmbeddingReply : public Jobs {
 public:
  EmbeddingReply(std::shared_ptr<Reply> reply, llm::Engine& engine, EmbeddingWork work)
      : Jobs(std::move(reply), work.inputs.size(),
             static_cast<std::size_t>(engine.options().n_parallel)),
        engine_(engine),
        work_(std::move(work)),
        data_(work_.inputs.size()) {}

 protected:
  std::shared_ptr<llm::Ticket> submit(std::size_t job) override {
    llm::EmbeddingRequest request;
    request.tokens = work_.inputs[job].tokens;
    return engine_.submit(std::move(request));
  }

  void on_event(std::size_t job, const llm::Event& event) override {
    if (!event.finish) return;
    tokens_ += event.finish->usage.prompt_tokens;
    const std::vector<float>& numbers = event.finish->embedding;
    data_[job] = {{"object", "embedding"},
                  {"index", job},
                  {"embedding", work_.base64 ? Json(base64_of(numbers)) : Json(numbers)}};
  }

  void on_end() override {
    send_json(reply(), {{"object", "list"},
                        {"data", data_},
                        {"model", work_.model_id},
                        {"usage", {{"prompt_tokens", tokens_}, {"total_tokens", tokens_}}}});
  }

  void on_error(const ApiError& error) override { reply().send(error_response(error)); }

 private:
  llm::Engine& engine_;
  EmbeddingWork work_;
  std::vector<Json> data_;
  std::int64_t tokens_ = 0;
};

bool wants_base64(Fields& fields) {
  const std::string format = fields.text("encoding_format").value_or("float");
  if (format != "float" && format != "base64")
    refuse_field("encoding_format", "encoding_format is '{}'; expected float or base64", format);
  return format == "base64";
}

}  // namespace

void embeddings(App& app, Call call) {
  const Json body = parse_json(call.request.body);
  Fields fields(body);
  fields.text("model");
  EmbeddingWork work{
      .inputs = read_inputs(app, fields.get("input"), "input", kMostInputs, EncodeOptions{}),
      .base64 = wants_base64(fields),
      .model_id = app.options.model_id};
  const std::int64_t n_embd = app.model->config().n_embd;
  fields.refuse("dimensions", fmt::format("this model's vectors have {} numbers", n_embd), n_embd);
  fields.ignore({"user"});
  fields.finish();
  std::make_shared<EmbeddingReply>(std::move(call.reply), app.engine, std::move(work))->start();
}

}  // namespace heddle::server
