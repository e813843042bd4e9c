// /health, /metrics and /v1/models.
#include "server/app.h"

namespace heddle::server {

namespace {

Json model_json(const App& app) {
  const llm::ModelConfig& config = app.model->config();
  return {{"id", app.options.model_id},
          {"object", "model"},
          {"created", app.started},
          {"owned_by", "heddle"},
          {"meta",
           {{"architecture", config.architecture},
            {"n_ctx", app.n_ctx()},
            {"n_ctx_train", config.n_ctx_train},
            {"n_embd", config.n_embd},
            {"n_vocab", config.n_vocab},
            {"n_params", app.model->parameter_count()},
            {"size", app.model->weight_bytes()},
            {"chat_template", app.has_template},
            {"tools", app.prompt.tool_format() != ToolFormat::none}}}};
}

/// Prometheus' text format, version 0.0.4.
class Metrics {
 public:
  void family(std::string_view name, std::string_view type, std::string_view help) {
    text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  template <class T>
  void sample(std::string_view name, T value, std::string_view labels = "") {
    text_ += fmt::format("{}{} {}\n", name, labels, value);
  }
  template <class T>
  void one(std::string_view name, std::string_view type, std::string_view help, T value) {
    family(name, type, help);
    sample(name, value);
  }
  void histogram(const std::string& name, std::string_view help, const llm::Histogram& values) {
    family(name, "histogram", help);
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < values.bounds.size(); ++i) {
      sum += values.counts[i];
      sample(name + "_bucket", sum, fmt::format("{{le=\"{}\"}}", values.bounds[i]));
    }
    sample(name + "_bucket", values.count, "{le=\"+Inf\"}");
    sample(name + "_sum", values.sum);
    sample(name + "_count", values.count);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

void add_requests(Metrics& metrics, const App& app, const llm::EngineStats& stats) {
  metrics.family("heddle_http_replies_total", "counter", "Replies by route and status.");
  for (const auto& [key, count] : app.counts.all())
    metrics.sample("heddle_http_replies_total", count,
                   fmt::format("{{route=\"{}\",status=\"{}\"}}", key.first, key.second));
  const HttpCounts http = app.http_counts();
  metrics.one("heddle_http_connections", "gauge", "Open connections.", http.open);
  metrics.one("heddle_http_connections_total", "counter", "Connections accepted.", http.accepted);
  metrics.one("heddle_http_connections_refused_total", "counter", "Connections beyond the limit.",
              http.refused);
  metrics.one("heddle_http_malformed_total", "counter", "Requests that were none.", http.malformed);
  metrics.one("heddle_http_vanished_total", "counter", "Clients that went before their reply.",
              http.vanished);
  metrics.one("heddle_requests_running", "gauge", "Texts in work.", stats.running);
  metrics.one("heddle_requests_queued", "gauge", "Texts that wait.", stats.queued);
  metrics.family("heddle_requests_total", "counter", "Texts by how they ended.");
  metrics.sample("heddle_requests_total", stats.completed, "{end=\"completed\"}");
  metrics.sample("heddle_requests_total", stats.cancelled, "{end=\"cancelled\"}");
  metrics.sample("heddle_requests_total", stats.failed, "{end=\"failed\"}");
  metrics.sample("heddle_requests_total", stats.rejected, "{end=\"rejected\"}");
}

void add_engine(Metrics& metrics, const llm::EngineStats& stats) {
  metrics.family("heddle_tokens_total", "counter", "Tokens by what was done with them.");
  metrics.sample("heddle_tokens_total", stats.prompt_tokens, "{kind=\"prompt\"}");
  metrics.sample("heddle_tokens_total", stats.cached_tokens, "{kind=\"cached\"}");
  metrics.sample("heddle_tokens_total", stats.generated_tokens, "{kind=\"generated\"}");
  metrics.one("heddle_steps_total", "counter", "Steps of the model.", stats.steps);
  metrics.one("heddle_faults_total", "counter", "Steps that failed.", stats.faults);
  metrics.one("heddle_preemptions_total", "counter", "Texts that gave their memory to others.",
              stats.preemptions);
  metrics.family("heddle_kv_blocks", "gauge", "Blocks of KV memory.");
  metrics.sample("heddle_kv_blocks", stats.blocks_used, "{state=\"used\"}");
  metrics.sample("heddle_kv_blocks", stats.blocks_cached, "{state=\"cached\"}");
  metrics.sample("heddle_kv_blocks", stats.blocks_free, "{state=\"free\"}");
  metrics.one("heddle_cached_texts", "gauge", "Finished texts that are kept.", stats.cached_texts);
  metrics.histogram("heddle_step_seconds", "Time of a step.", stats.step_seconds);
  metrics.histogram("heddle_queue_seconds", "Time until a text is begun.", stats.queue_seconds);
  metrics.histogram("heddle_first_token_seconds", "Time until a text's first token.",
                    stats.first_token_seconds);
  metrics.histogram("heddle_request_seconds", "Time until a text's end.", stats.request_seconds);
}

}  // namespace

void ReplyCounts::add(const std::string& route, int status) {
  const std::lock_guard lock(mutex_);
  ++counts_[{route, status}];
}

std::map<std::pair<std::string, int>, std::uint64_t> ReplyCounts::all() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void send_json(Reply& reply, const Json& json) {
  reply.send({.body = json_text(json)});
}

void health(App& app, Call call) {
  const bool draining = app.draining;
  call.reply->send({.status = draining ? 503 : 200,
                    .body = json_text({{"status", draining ? "draining" : "ok"}})});
}

void metrics(App& app, Call call) {
  const llm::EngineStats stats = app.engine.stats();
  Metrics metrics;
  add_requests(metrics, app, stats);
  add_engine(metrics, stats);
  call.reply->send(
      {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = metrics.text()});
}

void models(App& app, Call call) {
  send_json(*call.reply, {{"object", "list"}, {"data", Json::array({model_json(app)})}});
}

void model(App& app, Call call) {
  const std::string id = call.request.path.substr(std::string_view("/v1/models/").size());
  if (id == app.options.model_id) return send_json(*call.reply, model_json(app));
  ApiError error(404, fmt::format("The model '{}' does not exist; this server has '{}'", id,
                                  app.options.model_id));
  error.param = "model";
  error.code = "model_not_found";
  throw error;
}

}  // namespace heddle::server
