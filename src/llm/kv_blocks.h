// Which KV rows belong to which sequence: blocks of positions, counted and copied on write.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "heddle/llm.h"

namespace heddle::llm {

inline constexpr std::int64_t kBlockSize = 32;  // positions a block

/// Bookkeeping only: the rows themselves are in the KV states. Not thread-safe.
class KvBlocks {
 public:
  /// Room for `sequences` sequences of up to `blocks_each` blocks, and `blocks` in all.
  KvBlocks(std::int64_t sequences, std::int64_t blocks_each, std::int64_t blocks);

  SequenceId create();
  SequenceId fork(SequenceId sequence);
  void release(SequenceId sequence);
  void truncate(SequenceId sequence, std::int64_t length);
  std::int64_t length(SequenceId sequence) const;

  /// The rows are gone: what sequences had in them is lost, until they are cut to nothing.
  void forget();
  bool is_lost(SequenceId sequence) const;
  /// Throws device_lost if the sequence's positions are lost.
  void check_there(SequenceId sequence) const;

  /// Makes room for `count` more positions, and counts them. `copy(from, to)` is called for a
  /// shared block that would be written: all of its rows must be copied. Throws out_of_memory when
  /// no block is free; cut the sequence to what it was then.
  void extend(SequenceId sequence, std::int64_t count,
              const std::function<void(std::int64_t, std::int64_t)>& copy);

  /// The row that holds a position.
  std::int32_t row(SequenceId sequence, std::int64_t position) const;
  /// The sequence's blocks in order of position.
  const std::vector<std::int32_t>& blocks(SequenceId sequence) const;

  std::int64_t sequences() const noexcept { return static_cast<std::int64_t>(sequences_.size()); }
  std::int64_t blocks_each() const noexcept { return blocks_each_; }
  std::int64_t all_blocks() const noexcept { return static_cast<std::int64_t>(users_.size()); }
  std::int64_t free_blocks() const noexcept { return static_cast<std::int64_t>(free_.size()); }
  /// Free blocks that `extend` would take.
  std::int64_t needed(SequenceId sequence, std::int64_t count) const;
  /// Blocks that nobody but these sequences uses.
  std::int64_t held_by(std::span<const SequenceId> sequences) const;

 private:
  struct Sequence {
    std::vector<std::int32_t> blocks;
    std::int64_t length = 0;
    bool lost = false;
  };
  bool writes_shared(const Sequence& s, std::int64_t count) const;
  const Sequence& at(SequenceId sequence) const;
  Sequence& at(SequenceId sequence);
  SequenceId place(Sequence sequence);
  std::int32_t take_block();
  void drop_block(std::int32_t block);

  std::int64_t blocks_each_;
  std::vector<std::int32_t> users_;  // by block
  std::vector<std::int32_t> free_;
  std::vector<std::optional<Sequence>> sequences_;
};

}  // namespace heddle::llm
