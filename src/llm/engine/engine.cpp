#include "heddle/engine.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "base/check.h"
#include "llm/engine/batch.h"

namespace heddle::llm {

namespace {

constexpr double kLeastRetryAfter = 1;  // seconds

void check(const EngineOptions& o) {
  const auto invalid = ErrorCode::invalid_argument;
  require(o.n_parallel >= 1, invalid, "n_parallel is {}; at least 1 text is needed", o.n_parallel);
  require(o.max_queue >= 0, invalid, "max_queue is {}; expected 0 or more", o.max_queue);
  require(o.max_cached >= 0, invalid, "max_cached is {}; expected 0 or more", o.max_cached);
  require(o.n_kv >= 0, invalid, "n_kv is {}; expected 0 (n_ctx for each text) or more", o.n_kv);
  require(std::isfinite(o.step_seconds) && o.step_seconds > 0, invalid,
          "step_seconds is {}; expected a time above 0", o.step_seconds);
}

ContextOptions context_options(const EngineOptions& options) {
  check(options);
  ContextOptions context = options.context;
  context.n_seq_step = options.n_parallel;
  context.n_seq_max =
      options.n_parallel + options.max_cached + 1;  // one more while one is replaced
  context.n_kv = options.n_kv;
  // A step of every text in work is one run, with some tokens of a prompt.
  context.chunk = std::max(context.chunk, options.n_parallel + 1);
  return context;
}

void check_tokens(const char* what, std::span<const TokenId> tokens, const Context& context) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  const std::int64_t n_ctx = context.options().n_ctx, n_vocab = context.model().config().n_vocab;
  require(count > 0, ErrorCode::invalid_argument, "the {} is empty; at least 1 token is needed",
          what);
  require(count <= n_ctx, ErrorCode::invalid_argument,
          "the {} has {} tokens, and the context holds {} (-c)", what, count, n_ctx);
  for (const TokenId id : tokens) {
    require(0 <= id && id < n_vocab, ErrorCode::invalid_argument,
            "the {} has the token {}, which is outside the vocabulary of {}", what, id, n_vocab);
  }
}

}  // namespace

struct Engine::Impl {
  std::shared_ptr<const Model> model;
  EngineOptions options;
  Context context;
  const std::shared_ptr<Doorbell> doorbell = std::make_shared<Doorbell>();
  Notifier notifier;

  mutable std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::unique_ptr<Work>> queue;
  std::int64_t in_flight = 0;  // requests that have not ended
  std::uint64_t arrivals = 0, rejected = 0;
  bool draining = false, stopping = false;
  EngineStats stats;
  Context::MemoryUse memory;

  std::once_flag indexed;
  std::shared_ptr<const VocabularyIndex> index;

  Batch batch;  // the thread's own
  std::mutex joining;
  std::thread thread;

  Impl(std::shared_ptr<const Model> m, const EngineOptions& o)
      : model(std::move(m)),
        options(o),
        context(model, context_options(o)),
        batch(context, options) {
    options.context = context.options();
    options.n_kv = context.options().n_kv;
    publish();
    thread = std::thread([this] { run(); });
  }
  ~Impl() { stop(); }

  // ---- Any thread

  std::shared_ptr<const VocabularyIndex> vocabulary_index() {
    std::call_once(indexed,
                   [this] { index = std::make_shared<const VocabularyIndex>(model->tokenizer()); });
    return index;
  }

  std::unique_ptr<Work> make_work(std::vector<TokenId> tokens) {
    auto work = std::make_unique<Work>();
    work->mailbox = std::make_shared<Mailbox>(doorbell, notifier.queue());
    work->usage.prompt_tokens = static_cast<std::int64_t>(tokens.size());
    work->tokens = std::move(tokens);
    return work;
  }

  std::unique_ptr<Work> work_for(Request request) {
    check_tokens("prompt", request.prompt, context);
    std::unique_ptr<Work> work = make_work(request.prompt);
    work->reply.emplace(*model, std::move(request), request.grammar ? vocabulary_index() : nullptr);
    return work;
  }

  std::unique_ptr<Work> work_for(EmbeddingRequest request) {
    check_tokens("text", request.tokens, context);
    std::unique_ptr<Work> work = make_work(std::move(request.tokens));
    work->pool.emplace(request.pooling ? *request.pooling : pooling_of(*model), request.normalize);
    return work;
  }

  template <class AnyRequest>
  std::vector<std::shared_ptr<Ticket>> submit(std::vector<AnyRequest> requests) {
    std::vector<std::unique_ptr<Work>> works;
    for (AnyRequest& request : requests) works.push_back(work_for(std::move(request)));
    std::vector<std::shared_ptr<Ticket>> tickets;
    for (const auto& work : works) tickets.push_back(std::make_shared<Ticket>(work->mailbox));
    enqueue(std::move(works));
    return tickets;
  }

  void enqueue(std::vector<std::unique_ptr<Work>> works) {
    {
      const std::lock_guard lock(mutex);
      require(!draining, ErrorCode::cancelled, "the engine is stopping and takes no more requests");
      refuse_beyond_queue(static_cast<std::int64_t>(works.size()));
      for (auto& work : works) {
        work->order = arrivals++;
        queue.push_back(std::move(work));
        ++in_flight;
      }
    }
    doorbell->ring();
  }

  void refuse_beyond_queue(std::int64_t more) {
    if (in_flight + more <= options.n_parallel + options.max_queue) return;
    rejected += static_cast<std::uint64_t>(more);
    const std::int64_t waiting = std::max<std::int64_t>(in_flight - options.n_parallel, 0);
    // Each place is free again after the time that a request takes once it has one.
    const double took = stats.request_seconds.sum - stats.queue_seconds.sum;
    const double each = std::max(took, 0.0) / std::max<double>(stats.request_seconds.count, 1);
    const double guess =
        each * static_cast<double>(waiting + more) / static_cast<double>(options.n_parallel);
    throw QueueFull(fmt::format("{} requests wait already, of {} that may; try again later",
                                waiting, options.max_queue),
                    std::max(kLeastRetryAfter, std::ceil(guess)));
  }

  bool drain(std::chrono::milliseconds most) {
    std::unique_lock lock(mutex);
    draining = true;
    return changed.wait_for(lock, most, [this] { return in_flight == 0; });
  }

  void stop() {
    {
      const std::lock_guard lock(mutex);
      draining = stopping = true;
    }
    doorbell->ring();
    const std::lock_guard lock(joining);
    if (thread.joinable()) thread.join();
  }

  // ---- The engine's thread

  void run() {
    while (!is_stopping()) {
      try {
        take_turn();
      } catch (...) {
        batch.end_all(error_of(std::current_exception()));
      }
      publish();
      if (batch.empty() && !has_queue()) doorbell->wait();
    }
    const Error stopped(ErrorCode::cancelled, "the engine was stopped");
    batch.end_all(stopped);
    while (std::unique_ptr<Work> work = take_first()) batch.end(*work, stopped);
    publish();
  }

  void take_turn() {
    for (const auto& work : take_cancelled()) batch.end_as_cancelled(*work);
    batch.end_cancelled();
    admit_some();
    if (!batch.empty()) batch.step();
    for (auto& work : batch.take_requeued()) give_back(std::move(work));
  }

  /// In order of arrival: nobody passes one that does not fit yet.
  void admit_some() {
    while (std::unique_ptr<Work> work = take_first()) {
      try {
        if (batch.admit(work)) continue;
      } catch (...) {
        batch.end(*work, error_of(std::current_exception()));
        continue;
      }
      return give_back(std::move(work));
    }
  }

  bool is_stopping() const {
    const std::lock_guard lock(mutex);
    return stopping;
  }

  bool has_queue() const {
    const std::lock_guard lock(mutex);
    return !queue.empty();
  }

  std::unique_ptr<Work> take_first() {
    const std::lock_guard lock(mutex);
    if (queue.empty()) return nullptr;
    std::unique_ptr<Work> work = std::move(queue.front());
    queue.pop_front();
    return work;
  }

  void give_back(std::unique_ptr<Work> work) {
    const std::lock_guard lock(mutex);
    const auto after = std::ranges::upper_bound(queue, work->order, {}, &Work::order);
    queue.insert(after, std::move(work));
  }

  std::vector<std::unique_ptr<Work>> take_cancelled() {
    std::vector<std::unique_ptr<Work>> cancelled;
    const std::lock_guard lock(mutex);
    for (auto& work : queue) {
      if (work->mailbox->is_cancelled()) cancelled.push_back(std::move(work));
    }
    std::erase(queue, nullptr);
    return cancelled;
  }

  /// What has changed; and only then do those hear of it that ended.
  void publish() {
    std::vector<Farewell> farewells = batch.take_farewells();
    EngineStats now = batch.stats();
    const Context::MemoryUse use = context.memory();
    {
      const std::lock_guard lock(mutex);
      stats = std::move(now);
      memory = use;
      in_flight -= static_cast<std::int64_t>(farewells.size());
    }
    for (Farewell& farewell : farewells) farewell.mailbox->put(std::move(farewell.event));
    changed.notify_all();
  }
};

Engine::Engine(std::shared_ptr<const Model> model, const EngineOptions& options)
    : impl_(std::make_unique<Impl>(std::move(model), options)) {}

Engine::~Engine() = default;

std::shared_ptr<Ticket> Engine::submit(Request request) {
  std::vector<Request> one;
  one.push_back(std::move(request));
  return impl_->submit(std::move(one)).front();
}

std::shared_ptr<Ticket> Engine::submit(EmbeddingRequest request) {
  std::vector<EmbeddingRequest> one;
  one.push_back(std::move(request));
  return impl_->submit(std::move(one)).front();
}

std::vector<std::shared_ptr<Ticket>> Engine::submit(std::vector<Request> requests) {
  return impl_->submit(std::move(requests));
}

std::vector<std::shared_ptr<Ticket>> Engine::submit(std::vector<EmbeddingRequest> requests) {
  return impl_->submit(std::move(requests));
}

bool Engine::drain(std::chrono::milliseconds most) {
  return impl_->drain(most);
}

void Engine::stop() {
  impl_->stop();
}

EngineStats Engine::stats() const {
  const std::lock_guard lock(impl_->mutex);
  EngineStats stats = impl_->stats;
  stats.rejected = impl_->rejected;
  stats.queued = impl_->in_flight - stats.running;
  return stats;
}

const Model& Engine::model() const noexcept {
  return *impl_->model;
}

const EngineOptions& Engine::options() const noexcept {
  return impl_->options;
}

Context::MemoryUse Engine::memory() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->memory;
}

}  // namespace heddle::llm
