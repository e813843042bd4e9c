// The requests in work, and the steps that carry them on.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/team.h"
#include "llm/engine/pace.h"
#include "llm/engine/text_cache.h"
#include "llm/engine/work.h"

namespace heddle::llm {

/// Belongs to the engine's thread. Requests that ended, or gave up their place, wait here until
/// they are taken.
class Batch {
 public:
  Batch(Context& context, const EngineOptions& options);
  ~Batch();

  /// Takes the request in, if there is a place and memory for it beside the others; leaves it where
  /// it is if not. Alone, it always fits.
  bool admit(std::unique_ptr<Work>& work);
  void end_cancelled();
  /// One step of all of them, as far as memory and the pace allow. What fails in it ends those that
  /// were part of it, and nobody else.
  void step();
  void end_all(const Error& error);

  bool empty() const noexcept { return running_.empty(); }
  std::size_t size() const noexcept { return running_.size(); }
  /// Counts so far, and what KV memory holds now.
  EngineStats stats() const;
  std::vector<Farewell> take_farewells();
  /// Those that have to wait again, the youngest first.
  std::vector<std::unique_ptr<Work>> take_requeued();
  /// Ends a request that is not in the batch: as cancelled, or for an error.
  void end_as_cancelled(Work& work);
  void end(Work& work, const Error& error);

 private:
  /// A request's part in a step: the next `count` of its tokens.
  struct Share {
    Work* work;
    std::int64_t count;
  };
  std::int64_t pending(const Work& work) const;
  bool is_writing(const Work& work) const;

  // What a step takes.
  std::vector<Share> shares();
  bool waits_for_another(const Work& work) const;
  void share_out(std::vector<Work*>& prompts, std::int64_t budget, std::vector<Share>& shares);
  std::int64_t adopt_prefix(Work& work);
  TextCache::Match best_donor(const Work& work);
  bool has_room_for(const Work& work) const;
  std::int64_t blocks_soon(const Work& work) const;
  void make_room(std::vector<Share>& shares);
  void requeue(std::size_t index);

  // What it does.
  bool run_texts(std::span<const Share> shares);  // false if it failed
  void run_embeddings(std::span<const Share> shares);
  std::vector<StepItem> items_of(std::span<const Share> shares) const;
  bool run_guarded(std::span<const Share> shares, const std::function<void()>& run);
  void advance(std::span<Work* const> works);
  void settle(Work& work, Reply::Next& next, const std::exception_ptr& failure);
  void note(std::span<const Share> shares, double seconds);
  void recover();

  // What becomes of them.
  Event finish_event(Work& work, StopReason reason);
  void say_farewell(Work& work, Event event);
  void retire(Work& work);
  void remove(const Work& work);

  Context& context_;
  const EngineOptions& options_;
  Team team_;
  TextCache cache_;
  Pace pace_;
  std::vector<std::unique_ptr<Work>> running_;  // by order of arrival
  std::vector<std::unique_ptr<Work>> requeued_;
  std::vector<Farewell> farewells_;
  std::vector<float> logits_;
  EngineStats stats_;
};

}  // namespace heddle::llm
