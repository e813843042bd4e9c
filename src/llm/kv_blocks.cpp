#include "llm/kv_blocks.h"

#include "base/check.h"

namespace heddle::llm {

namespace {

std::size_t blocks_for(std::int64_t positions) {
  return static_cast<std::size_t>((positions + kBlockSize - 1) / kBlockSize);
}

}  // namespace

KvBlocks::KvBlocks(std::int64_t sequences, std::int64_t blocks_each, std::int64_t blocks)
    : blocks_each_(blocks_each),
      users_(static_cast<std::size_t>(blocks)),
      sequences_(static_cast<std::size_t>(sequences)) {
  for (auto block = static_cast<std::int32_t>(users_.size()); block-- > 0;) free_.push_back(block);
}

const KvBlocks::Sequence& KvBlocks::at(SequenceId sequence) const {
  const auto index = static_cast<std::size_t>(sequence);
  require(sequence >= 0 && index < sequences_.size() && sequences_[index],
          ErrorCode::invalid_argument, "there is no sequence {}", sequence);
  return *sequences_[index];
}

KvBlocks::Sequence& KvBlocks::at(SequenceId sequence) {
  return const_cast<Sequence&>(static_cast<const KvBlocks*>(this)->at(sequence));
}

SequenceId KvBlocks::place(Sequence sequence) {
  for (std::size_t i = 0; i < sequences_.size(); ++i) {
    if (sequences_[i]) continue;
    sequences_[i] = std::move(sequence);
    return static_cast<SequenceId>(i);
  }
  fail(ErrorCode::out_of_memory,
       "all {} sequences are in use; release one, or make the context with more (n_seq_max)",
       sequences_.size());
}

SequenceId KvBlocks::create() {
  return place({});
}

SequenceId KvBlocks::fork(SequenceId sequence) {
  const SequenceId copy = place(at(sequence));
  for (const std::int32_t block : at(copy).blocks) ++users_[static_cast<std::size_t>(block)];
  return copy;
}

void KvBlocks::release(SequenceId sequence) {
  truncate(sequence, 0);
  sequences_[static_cast<std::size_t>(sequence)].reset();
}

void KvBlocks::truncate(SequenceId sequence, std::int64_t length) {
  Sequence& s = at(sequence);
  require(0 <= length && length <= s.length, ErrorCode::invalid_argument,
          "sequence {} has {} positions; it cannot be cut to {}", sequence, s.length, length);
  while (s.blocks.size() > blocks_for(length)) {
    drop_block(s.blocks.back());
    s.blocks.pop_back();
  }
  s.length = length;
  s.lost = s.lost && length > 0;
}

void KvBlocks::forget() {
  for (std::optional<Sequence>& s : sequences_) {
    if (!s || s->length == 0) continue;
    for (const std::int32_t block : s->blocks) drop_block(block);
    s->blocks.clear();
    s->lost = true;
  }
}

bool KvBlocks::is_lost(SequenceId sequence) const {
  return at(sequence).lost;
}

void KvBlocks::check_there(SequenceId sequence) const {
  const Sequence& s = at(sequence);
  require(
      !s.lost, ErrorCode::device_lost,
      "sequence {}: the KV of its {} positions was lost, with a device or in a step that failed; "
      "truncate it to 0, or release it, and give its tokens again",
      sequence, s.length);
}

std::int64_t KvBlocks::length(SequenceId sequence) const {
  return at(sequence).length;
}

std::int32_t KvBlocks::take_block() {
  require(
      !free_.empty(), ErrorCode::out_of_memory,
      "all {} KV blocks of {} positions are in use; release or truncate a sequence, or make the "
      "context with more (n_kv)",
      users_.size(), kBlockSize);
  const std::int32_t block = free_.back();
  free_.pop_back();
  users_[static_cast<std::size_t>(block)] = 1;
  return block;
}

void KvBlocks::drop_block(std::int32_t block) {
  if (--users_[static_cast<std::size_t>(block)] == 0) free_.push_back(block);
}

bool KvBlocks::writes_shared(const Sequence& s, std::int64_t count) const {
  return count > 0 && s.length % kBlockSize != 0 &&
         users_[static_cast<std::size_t>(s.blocks.back())] > 1;
}

std::int64_t KvBlocks::needed(SequenceId sequence, std::int64_t count) const {
  const Sequence& s = at(sequence);
  const std::size_t more = blocks_for(s.length + count) - s.blocks.size();
  return static_cast<std::int64_t>(more) + (writes_shared(s, count) ? 1 : 0);
}

void KvBlocks::extend(SequenceId sequence, std::int64_t count,
                      const std::function<void(std::int64_t, std::int64_t)>& copy) {
  Sequence& s = at(sequence);
  require(s.length + count <= blocks_each_ * kBlockSize, ErrorCode::invalid_argument,
          "sequence {} has {} positions; {} more do not fit the {} of its blocks", sequence,
          s.length, count, blocks_each_ * kBlockSize);
  if (writes_shared(s, count)) {
    const std::int32_t own = take_block();
    try {
      copy(s.blocks.back(), own);
    } catch (...) {
      drop_block(own);
      throw;
    }
    drop_block(s.blocks.back());
    s.blocks.back() = own;
  }
  while (s.blocks.size() < blocks_for(s.length + count)) s.blocks.push_back(take_block());
  s.length += count;
}

std::int64_t KvBlocks::held_by(std::span<const SequenceId> sequences) const {
  std::vector<std::int32_t> others = users_;
  std::int64_t held = 0;
  for (const SequenceId sequence : sequences) {
    for (const std::int32_t block : at(sequence).blocks)
      held += --others[static_cast<std::size_t>(block)] == 0;
  }
  return held;
}

std::int32_t KvBlocks::row(SequenceId sequence, std::int64_t position) const {
  const std::int32_t block = at(sequence).blocks[static_cast<std::size_t>(position / kBlockSize)];
  return static_cast<std::int32_t>(block * kBlockSize + position % kBlockSize);
}

const std::vector<std::int32_t>& KvBlocks::blocks(SequenceId sequence) const {
  return at(sequence).blocks;
}

}  // namespace heddle::llm
