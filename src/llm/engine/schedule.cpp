// What a step takes: whose tokens, how many, and the memory for them.
#include <algorithm>

#include "base/check.h"
#include "llm/engine/batch.h"

namespace heddle::llm {

namespace {

/// Tokens that cost about as much as what it takes not to compute them: to copy the block that
/// others use, too, or to wait for another to compute them.
constexpr std::int64_t kWorthSharing = 8;

}  // namespace

std::int64_t Batch::pending(const Work& work) const {
  return static_cast<std::int64_t>(work.tokens.size()) - context_.length(work.sequence);
}

/// Its prompt is computed, but for the last token.
bool Batch::is_writing(const Work& work) const {
  return work.reply && pending(work) == 1;
}

// ---- Sharing

/// Who holds most of the KV that a request needs. It has to compute its last token itself.
TextCache::Match Batch::best_donor(const Work& work) {
  const std::span needed(work.tokens.data(), work.tokens.size() - 1);
  TextCache::Match best = cache_.find(needed);
  for (const auto& other : running_) {
    if (other.get() == &work || !other->reply) continue;
    const std::int64_t common =
        std::min(common_prefix(other->tokens, needed), context_.length(other->sequence));
    if (common > best.length) best = {other->sequence, common};
  }
  const std::int64_t block_size = context_.kv_use().block_size;
  if (best.length % block_size < kWorthSharing) best.length -= best.length % block_size;
  return best;
}

/// Lets the request go on from what others have computed; returns how many tokens that saves.
std::int64_t Batch::adopt_prefix(Work& work) {
  const std::int64_t length = context_.length(work.sequence);
  if (!work.reply || pending(work) == 1) return 0;
  const TextCache::Match donor = best_donor(work);
  if (donor.length <= length) return 0;
  context_.release(work.sequence);
  work.sequence = -1;
  work.sequence = context_.fork(donor.sequence);
  context_.truncate(work.sequence, donor.length);
  return donor.length - length;
}

/// Whether one that came earlier is computing much of what this one needs next.
bool Batch::waits_for_another(const Work& work) const {
  if (!work.reply) return false;
  const std::span needed(work.tokens.data(), work.tokens.size() - 1);
  for (const auto& other : running_) {
    if (other.get() == &work) return false;
    if (!other->reply) continue;
    const std::int64_t common = common_prefix(other->tokens, needed);
    if (context_.length(other->sequence) < common &&
        common - context_.length(work.sequence) >= kWorthSharing)
      return true;
  }
  return false;
}

// ---- Turns

/// Every text that is being written gets its token. Prompts share what is left evenly, so that a
/// short one does not wait for the end of a long one.
std::vector<Batch::Share> Batch::shares() {
  std::vector<Share> all;
  std::vector<Work*> prompts;
  for (const auto& work : running_) {
    const std::int64_t saved = adopt_prefix(*work);
    stats_.cached_tokens += static_cast<std::uint64_t>(saved);
    if (!work->answered) work->usage.cached_tokens += saved;
    if (is_writing(*work))
      all.push_back({work.get(), 1});
    else if (!waits_for_another(*work))
      prompts.push_back(work.get());
  }
  const auto writing = static_cast<std::int64_t>(all.size());
  const auto reading = static_cast<std::int64_t>(prompts.size());
  const std::int64_t pace = writing > 0 ? pace_.prompt_tokens() : pace_.prompt_tokens_alone();
  share_out(prompts, std::min(context_.options().chunk - writing, std::max(pace, reading)), all);
  return all;
}

void Batch::share_out(std::vector<Work*>& prompts, std::int64_t budget,
                      std::vector<Share>& shares) {
  // The shortest first: what it leaves over goes to the others.
  std::ranges::stable_sort(prompts, {}, [this](const Work* work) { return pending(*work); });
  auto left = static_cast<std::int64_t>(prompts.size());
  for (Work* work : prompts) {
    const std::int64_t count = std::min(pending(*work), (budget + left - 1) / left);
    if (count > 0) shares.push_back({work, count});
    budget -= count;
    --left;
  }
}

// ---- Memory

/// Blocks that a request takes before long: for all it has to compute, and to write on for a while.
std::int64_t Batch::blocks_soon(const Work& work) const {
  const std::int64_t room = context_.options().n_ctx - context_.length(work.sequence);
  const std::int64_t ahead = work.reply ? context_.kv_use().block_size : 0;
  return context_.blocks_to_add(work.sequence, std::min(room, pending(work) + ahead));
}

bool Batch::has_room_for(const Work& work) const {
  std::int64_t needed = blocks_soon(work);
  for (const auto& other : running_) needed += blocks_soon(*other);
  return needed <= context_.kv_use().free + context_.blocks_held_by(cache_.sequences());
}

bool Batch::admit(std::unique_ptr<Work>& work) {
  if (static_cast<std::int64_t>(running_.size()) == options_.n_parallel) return false;
  if (running_.empty()) recover();  // a device may have been lost since the last step
  work->sequence = context_.create();
  const std::int64_t saved = adopt_prefix(*work);
  if (!running_.empty() && !has_room_for(*work)) {
    retire(*work);
    return false;
  }
  stats_.cached_tokens += static_cast<std::uint64_t>(saved);
  if (!work->answered) work->usage.cached_tokens = saved;
  if (!work->started) {
    work->started = Clock::now();
    work->usage.queue_seconds = seconds_between(work->submitted, *work->started);
    stats_.queue_seconds.add(work->usage.queue_seconds);
  }
  const auto after = std::ranges::upper_bound(running_, work->order, {}, &Work::order);
  running_.insert(after, std::move(work));
  return true;
}

/// Frees what a step needs: finished texts go first, then the youngest of those in work, which are
/// computed again later. The oldest never has to.
void Batch::make_room(std::vector<Share>& shares) {
  for (;;) {
    std::int64_t needed = 0;
    for (const Share& s : shares) needed += context_.blocks_to_add(s.work->sequence, s.count);
    if (needed <= context_.kv_use().free) return;
    if (cache_.drop_oldest()) continue;
    require(running_.size() > 1, ErrorCode::out_of_memory,
            "{} KV blocks are needed, and {} of {} are free, with one text in work", needed,
            context_.kv_use().free, context_.kv_use().blocks);
    const Work* youngest = running_.back().get();
    std::erase_if(shares, [&](const Share& s) { return s.work == youngest; });
    requeue(running_.size() - 1);
    ++stats_.preemptions;
  }
}

void Batch::requeue(std::size_t index) {
  std::unique_ptr<Work> work = std::move(running_[index]);
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(index));
  context_.release(work->sequence);
  work->sequence = -1;
  if (work->pool) work->pool->clear();
  requeued_.push_back(std::move(work));
}

}  // namespace heddle::llm
