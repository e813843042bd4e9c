// Many texts continued at once: an engine steps one Context on a thread of its own, and requests
// join and leave the running batch as they come and go.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heddle/error.h"
#include "heddle/llm.h"

namespace heddle {
class Grammar;  // grammar.h
}

namespace heddle::llm {

class Mailbox;

struct EngineOptions {
  /// n_ctx is what one text may have, prompt and reply together; chunk the most prompt tokens of
  /// one step. The engine sets n_seq_max, n_seq_step and n_kv itself.
  ContextOptions context;
  std::int64_t n_parallel = 8;  // texts in work at once; the others are queued
  /// Positions that KV memory holds, for all texts in work and the finished ones that are kept; at
  /// least n_ctx. 0: n_parallel times n_ctx. When it runs out, the texts that came last give theirs
  /// back, and are computed again when there is room.
  std::int64_t n_kv = 0;
  std::int64_t max_queue = 64;  // requests that wait; more are refused with QueueFull
  /// Finished texts whose KV is kept, as long as nothing else needs the room, for requests that
  /// begin in the same way.
  std::int64_t max_cached = 32;
  /// Beside texts that are being written, a step takes as many prompt tokens as make it last about
  /// so long (at least 16), so that a long prompt does not hold them up; where there are none, ten
  /// times as long (at least 128).
  double step_seconds = 0.1;
  /// Called on the engine's thread before each step, with how many there were; what it throws is
  /// that step's failure. For tests, which inject faults.
  std::function<void(std::uint64_t)> before_step;
};

/// A text to be continued.
struct Request {
  std::vector<TokenId> prompt;    // at least one token, at most n_ctx
  std::int64_t max_tokens = -1;   // -1: until an end token or the end of the context
  std::vector<std::string> stop;  // texts that end it, not given out
  SamplerOptions sampler;
  /// -1: no logprobs; else each token's, and those of so many likeliest ones.
  std::int64_t top_logprobs = -1;
  std::shared_ptr<const Grammar> grammar;  // what the reply must match; none: anything
  bool ignore_end_tokens = false;          // they are never sampled
};

/// How the vectors of a text's tokens become one.
enum class Pooling { mean, last };

/// A text whose vector is wanted.
struct EmbeddingRequest {
  std::vector<TokenId> tokens;     // at least one, at most n_ctx
  std::optional<Pooling> pooling;  // none: what the model's file says, or else mean
  bool normalize = true;           // to length 1
};

struct TokenLogprob {
  TokenId token = 0;
  double logprob = 0;  // natural logarithm, of the model's own distribution: before penalties,
                       // biases, temperature, cuts and grammar
};

/// One token of a reply.
struct SampledToken {
  TokenLogprob chosen;
  std::vector<TokenLogprob> top;  // the likeliest first
};

struct Usage {
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;  // of the prompt, that other texts had computed already
  std::int64_t generated_tokens = 0;
  double queue_seconds = 0, prompt_seconds = 0, generate_seconds = 0;
};

struct Finish {
  StopReason reason = StopReason::end_token;
  Usage usage;
  std::vector<float> embedding;  // n_embd numbers, if that was asked for
};

/// What has become of a request since its last event.
struct Event {
  std::string text;                    // whole characters; may be empty
  std::vector<SampledToken> tokens;    // if logprobs were asked for: those whose text is out
  std::optional<Finish> finish;        // the last event of a request has this
  std::shared_ptr<const Error> error;  // or this
};

/// A request's end of the line. Thread-safe. Whoever drops the last handle cancels the request.
///
/// Nothing that a consumer does, or leaves undone, holds up the engine: events wait here, joined
/// into one, until they are taken.
class Ticket {
 public:
  explicit Ticket(std::shared_ptr<Mailbox> mailbox);
  ~Ticket();
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;

  /// All that has come since the last call, in order, as one event; waits up to `timeout` for it.
  /// Nothing if nothing came by then, or if the last event has been taken.
  std::optional<Event> next(std::chrono::milliseconds timeout);
  /// Whether the last event has been taken.
  bool ended() const noexcept;
  /// Has `ready` called whenever `next` has something to give after it had nothing, and at once if
  /// it has now: on a thread that the engine keeps for this. For event loops, which must not wait
  /// in `next`. It must not block, or the notices of others are late (their texts are not); what it
  /// throws cancels this request. A call may still go on when the ticket is dropped.
  void notify(std::function<void()> ready);
  /// Ends the request, queued or running, with StopReason::cancelled; what it held is free before
  /// the engine's next step, but for KV that is kept, until it is needed, for those that begin in
  /// the same way. Does nothing if it has ended. Never blocks.
  void cancel() noexcept;

 private:
  std::shared_ptr<Mailbox> mailbox_;
};

/// Thrown by submit: nothing is wrong with the request, but too many others wait.
class QueueFull : public Error {
 public:
  QueueFull(const std::string& message, double retry_after)
      : Error(ErrorCode::out_of_memory, message), retry_after_(retry_after) {}
  /// Seconds, as far as one can guess from how long requests took of late.
  double retry_after() const noexcept { return retry_after_; }

 private:
  double retry_after_;
};

/// Counts of values up to each bound (seconds), as Prometheus has them, but not yet cumulative.
struct Histogram {
  std::vector<double> bounds;
  std::vector<std::uint64_t> counts;  // one more than bounds: the last is for what is larger
  std::uint64_t count = 0;
  double sum = 0;
  void add(double value);
};

struct EngineStats {
  std::int64_t running = 0, queued = 0;
  // Requests by how they ended. Rejected ones are those that met a full queue.
  std::uint64_t completed = 0, cancelled = 0, failed = 0, rejected = 0;
  std::uint64_t prompt_tokens = 0;     // computed
  std::uint64_t cached_tokens = 0;     // taken over from other texts
  std::uint64_t generated_tokens = 0;  // sampled
  std::uint64_t preemptions = 0;       // times that a text gave its memory to others
  std::uint64_t steps = 0;
  std::uint64_t faults = 0;  // steps that failed
  std::string last_fault;    // what the last one said
  // KV memory. Cached blocks belong to finished texts only, and are given to whoever needs them.
  std::int64_t block_size = 0;  // positions
  std::int64_t blocks = 0, blocks_used = 0, blocks_cached = 0, blocks_free = 0;
  std::int64_t cached_texts = 0;
  Histogram step_seconds, queue_seconds, first_token_seconds, request_seconds;
};

/// Continues texts side by side. Thread-safe.
///
/// A reply does not depend on the others in its batch, on how its prompt was cut, or on whose KV it
/// shares: it is the one that the same request gets alone, at temperature 0, and at others with the
/// same seed.
class Engine {
 public:
  /// Throws what Context's constructor throws, and invalid_argument for options that make no sense.
  Engine(std::shared_ptr<const Model> model, const EngineOptions& options);
  /// stop().
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Queues a request. Throws invalid_argument naming what cannot be (an empty prompt, one longer
  /// than the context, an id outside the vocabulary, a sampler's option, an empty stop text),
  /// QueueFull, or cancelled once the engine drains or has stopped.
  std::shared_ptr<Ticket> submit(Request request);
  std::shared_ptr<Ticket> submit(EmbeddingRequest request);
  /// All of them or none. What they have in common at their beginning is computed once.
  std::vector<std::shared_ptr<Ticket>> submit(std::vector<Request> requests);
  std::vector<std::shared_ptr<Ticket>> submit(std::vector<EmbeddingRequest> requests);

  /// Takes no more requests, and waits until all have ended, but no longer than `most`. Says
  /// whether they have.
  bool drain(std::chrono::milliseconds most);
  /// Takes no more requests, ends all there are with Error(cancelled), and returns when the step
  /// that goes on is over: the waits of a device are bounded, and so is this.
  void stop();

  EngineStats stats() const;
  const Model& model() const noexcept;
  /// With every 0 replaced by its value.
  const EngineOptions& options() const noexcept;
  Context::MemoryUse memory() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace heddle::llm
