#include "llm/engine/batch.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/check.h"

namespace heddle::llm {

namespace {

Histogram histogram(std::vector<double> bounds) {
  Histogram h;
  h.counts.resize(bounds.size() + 1);
  h.bounds = std::move(bounds);
  return h;
}

}  // namespace

Error error_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return {ErrorCode::out_of_memory, "the engine ran out of memory"};
  } catch (const std::exception& error) {
    return {ErrorCode::backend, error.what()};
  } catch (...) {
    return {ErrorCode::backend, "something that is no exception was thrown"};
  }
}

void Histogram::add(double value) {
  const auto bound = std::ranges::lower_bound(bounds, value);
  ++counts[static_cast<std::size_t>(bound - bounds.begin())];
  ++count;
  sum += value;
}

Batch::Batch(Context& context, const EngineOptions& options)
    : context_(context),
      options_(options),
      team_(context.options().threads),
      cache_(context, static_cast<std::size_t>(options.max_cached)),
      pace_(options.step_seconds) {
  stats_.step_seconds = histogram({0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5});
  stats_.queue_seconds = stats_.first_token_seconds = stats_.request_seconds =
      histogram({0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300});
}

Batch::~Batch() = default;

// ---- Steps

void Batch::step() {
  std::vector<Share> all = shares();
  try {
    make_room(all);
  } catch (const Error& error) {
    return end_all(error);
  }
  const auto embeddings = std::stable_partition(
      all.begin(), all.end(), [](const Share& s) { return s.work->reply.has_value(); });
  if (embeddings != all.begin() && !run_texts({all.begin(), embeddings})) return;
  if (embeddings != all.end()) run_embeddings({embeddings, all.end()});
}

std::vector<StepItem> Batch::items_of(std::span<const Share> shares) const {
  std::vector<StepItem> items;
  for (const auto& [work, count] : shares) {
    const auto from = static_cast<std::size_t>(context_.length(work->sequence));
    const std::span tokens(work->tokens.data() + from, static_cast<std::size_t>(count));
    const bool is_whole = from + tokens.size() == work->tokens.size();
    items.push_back({.sequence = work->sequence,
                     .tokens = tokens,
                     .all_logits = work->pool.has_value(),
                     .wants_logits = work->pool || is_whole});
  }
  return items;
}

/// False if `run` threw, which has ended those who took part.
bool Batch::run_guarded(std::span<const Share> shares, const std::function<void()>& run) {
  try {
    if (options_.before_step) options_.before_step(stats_.steps + stats_.faults);
    const Clock::time_point start = Clock::now();
    run();
    ++stats_.steps;
    note(shares, seconds_between(start, Clock::now()));
    return true;
  } catch (...) {
    const Error error = error_of(std::current_exception());
    ++stats_.faults;
    stats_.last_fault = error.what();
    for (const Share& share : shares) {
      end(*share.work, error);
      remove(*share.work);
    }
    recover();
    return false;
  }
}

bool Batch::run_texts(std::span<const Share> shares) {
  const std::vector<StepItem> items = items_of(shares);
  std::vector<Work*> answered;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].wants_logits) answered.push_back(shares[i].work);
  }
  const auto n_vocab = static_cast<std::size_t>(context_.model().config().n_vocab);
  const bool is_done = run_guarded(shares, [&] {
    logits_.resize(answered.size() * n_vocab);
    context_.step_into(items, logits_);
  });
  if (is_done) advance(answered);
  return is_done;
}

void Batch::run_embeddings(std::span<const Share> shares) {
  const std::vector<StepItem> items = items_of(shares);
  const auto n_embd = static_cast<std::size_t>(context_.model().config().n_embd);
  std::vector<float> rows;
  if (!run_guarded(shares, [&] { rows = context_.hidden(items); })) return;
  std::span<const float> left = rows;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::size_t size = items[i].tokens.size() * n_embd;
    Work& work = *shares[i].work;
    work.pool->add(left.first(size), n_embd);
    left = left.subspan(size);
    if (pending(work) > 0) continue;
    try {
      Event event = finish_event(work, StopReason::end_token);
      event.finish->embedding = work.pool->take();
      ++stats_.completed;
      say_farewell(work, std::move(event));
    } catch (const Error& error) {
      end(work, error);
    }
    remove(work);
  }
}

void Batch::note(std::span<const Share> shares, double seconds) {
  std::int64_t prompt = 0, written = 0;
  for (const auto& [work, count] : shares) {
    // The step has counted its tokens already.
    const bool was_writing = work->answered && count == 1 && pending(*work) == 0;
    (was_writing ? written : prompt) += count;
  }
  stats_.prompt_tokens += static_cast<std::uint64_t>(prompt);
  stats_.step_seconds.add(seconds);
  pace_.note(prompt, written, seconds);
}

/// Picks the next token of each, from its row of the logits.
void Batch::advance(std::span<Work* const> works) {
  struct Outcome {
    Reply::Next next;
    std::exception_ptr failure;
  };
  std::vector<Outcome> outcomes(works.size());
  const auto n_vocab = static_cast<std::size_t>(context_.model().config().n_vocab);
  const auto pick = [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      Work& work = *works[i];
      const bool has_room = context_.length(work.sequence) < context_.options().n_ctx;
      try {
        outcomes[i].next =
            work.reply->next(std::span(logits_).subspan(i * n_vocab, n_vocab), has_room);
      } catch (...) {
        outcomes[i].failure = std::current_exception();
      }
    }
  };
  team_.parallel_for(static_cast<std::int64_t>(works.size()), 1, pick);
  for (std::size_t i = 0; i < works.size(); ++i)
    settle(*works[i], outcomes[i].next, outcomes[i].failure);
}

void Batch::settle(Work& work, Reply::Next& next, const std::exception_ptr& failure) {
  if (!work.answered) {
    work.answered = Clock::now();
    work.usage.prompt_seconds = seconds_between(*work.started, *work.answered);
    stats_.first_token_seconds.add(seconds_between(work.submitted, *work.answered));
  }
  if (failure) {
    end(work, error_of(failure));
    return remove(work);
  }
  stats_.generated_tokens +=
      static_cast<std::uint64_t>(work.reply->generated() - work.usage.generated_tokens);
  work.usage.generated_tokens = work.reply->generated();
  Event event;
  event.text = std::move(next.text);
  event.tokens = std::move(next.tokens);
  if (next.ended) {
    event.finish = finish_event(work, *next.ended).finish;
    ++stats_.completed;
    say_farewell(work, std::move(event));
    return remove(work);
  }
  work.tokens.push_back(*next.token);
  if (!event.text.empty() || !event.tokens.empty()) work.mailbox->put(std::move(event));
}

/// What texts hold may have gone with a device, or with a step that failed.
void Batch::recover() {
  const auto is_gone = [this](SequenceId sequence) {
    try {
      return context_.is_lost(sequence);
    } catch (...) {
      return true;  // the device does not come back, which the next step will say
    }
  };
  for (std::size_t i = running_.size(); i-- > 0;) {
    if (is_gone(running_[i]->sequence)) requeue(i);
  }
  cache_.drop_if(is_gone);
}

// ---- Ends

Event Batch::finish_event(Work& work, StopReason reason) {
  const Clock::time_point now = Clock::now();
  if (work.answered) work.usage.generate_seconds = seconds_between(*work.answered, now);
  if (!work.started) work.usage.queue_seconds = seconds_between(work.submitted, now);
  Event event;
  event.finish = {.reason = reason, .usage = work.usage, .embedding = {}};
  return event;
}

void Batch::end_as_cancelled(Work& work) {
  ++stats_.cancelled;
  say_farewell(work, finish_event(work, StopReason::cancelled));
}

void Batch::end(Work& work, const Error& error) {
  ++stats_.failed;
  Event event;
  event.error = std::make_shared<const Error>(error);
  say_farewell(work, std::move(event));
}

/// Gives back what it held, before anybody hears of its end.
void Batch::say_farewell(Work& work, Event event) {
  const bool is_sound = work.reply && work.sequence >= 0 && !event.error;
  if (is_sound) {
    cache_.keep(std::exchange(work.sequence, -1), std::move(work.tokens));
  } else {
    retire(work);
  }
  if (work.started) stats_.request_seconds.add(seconds_between(work.submitted, Clock::now()));
  farewells_.push_back({work.mailbox, std::move(event)});
}

void Batch::retire(Work& work) {
  if (work.sequence >= 0) context_.release(std::exchange(work.sequence, -1));
}

void Batch::remove(const Work& work) {
  std::erase_if(running_, [&](const std::unique_ptr<Work>& w) { return w.get() == &work; });
}

void Batch::end_cancelled() {
  for (std::size_t i = running_.size(); i-- > 0;) {
    if (!running_[i]->mailbox->is_cancelled()) continue;
    end_as_cancelled(*running_[i]);
    remove(*running_[i]);
  }
}

void Batch::end_all(const Error& error) {
  for (const auto& work : running_) end(*work, error);
  running_.clear();
}

std::vector<Farewell> Batch::take_farewells() {
  return std::exchange(farewells_, {});
}

std::vector<std::unique_ptr<Work>> Batch::take_requeued() {
  return std::exchange(requeued_, {});
}

EngineStats Batch::stats() const {
  EngineStats stats = stats_;
  const Context::KvUse use = context_.kv_use();
  stats.running = static_cast<std::int64_t>(running_.size());
  stats.block_size = use.block_size;
  stats.blocks = use.blocks;
  stats.blocks_free = use.free;
  stats.blocks_cached = context_.blocks_held_by(cache_.sequences());
  stats.blocks_used = use.blocks - use.free - stats.blocks_cached;
  stats.cached_texts = static_cast<std::int64_t>(cache_.size());
  return stats;
}

}  // namespace heddle::llm
