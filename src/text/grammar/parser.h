// Reading by a grammar, byte by byte, along all ways at once.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/grammar/automaton.h"
#include "text/grammar/span_table.h"

namespace heddle::text::grammar {

/// A set of places in the grammar where a text can be, each with what is to come after its rule.
/// Numbers are a Parser's own.
using StateId = std::uint32_t;
inline constexpr StateId kNoState = ~StateId{0};  // no text of the grammar begins like this

/// A frame: a rule in progress that began at one place of the text, as the set of what goes on
/// after it: nodes, each in a frame of its own. Ways that call one rule at one place share its
/// frame, so that their number does not grow with the number of ways (a graph-structured stack).
using FrameId = std::uint32_t;

struct Place {
  NodeId node;  // reads characters
  PartId part;  // how far into one
  FrameId frame;
  auto operator<=>(const Place&) const = default;
};

/// Makes states as they are needed and keeps them, with the way from one to the next, like the
/// states of an automaton that nobody could write down whole. Copyable; not thread-safe.
class Parser {
 public:
  explicit Parser(const Automaton& automaton);

  /// Before the first byte of a text.
  StateId start();
  /// At one place, with nothing known of what comes after its rule: `leaves` says when that would
  /// begin.
  StateId inside(NodeId node, PartId part);
  /// After the rule of a frame.
  StateId after(FrameId frame);

  /// Begins a piece of work: a token read, a mask made. One that follows too many ways throws
  /// unsupported, so that no grammar can keep a thread for long.
  void begin_work() noexcept { work_done_ = 0; }
  /// kNoState if the byte cannot come.
  StateId step(StateId state, std::uint8_t byte) {
    const std::size_t at = std::size_t{state} * classes_.count + classes_.of[byte];
    const StateId known = steps_[at];
    return known != kUnknown ? known : find_step(state, byte);
  }

  /// Whether the text may end here.
  bool accepts(StateId state) const noexcept { return (flags(state) & kAccepts) != 0; }
  /// Whether the rule that `inside` began in may be complete here.
  bool leaves(StateId state) const noexcept { return (flags(state) & kLeaves) != 0; }
  /// Whether it may go on.
  bool reads_on(StateId state) const noexcept { return (flags(state) & kReadsOn) != 0; }
  std::vector<Place> places(StateId state) const;

  /// Forgets everything but `state` if there is much to forget; returns its new number.
  StateId tidy(StateId state);
  void clear();
  /// Memory that states and frames take, in words of four bytes.
  std::size_t size_in_words() const noexcept {
    return frames_.words() + states_.words() + steps_.size();
  }

 private:
  static constexpr StateId kUnknown = kNoState - 1;
  static constexpr std::uint8_t kAccepts = 1, kLeaves = 2, kReadsOn = 4;

  /// A rule that was called in the step in progress; callers may still be added.
  struct OpenFrame {
    RuleId rule;
    std::vector<std::uint32_t> links;  // (node, frame) pairs
    std::vector<FrameId> inherited;    // frames of callers that have nothing left to do
    FrameId closed = 0;
  };

  std::uint8_t flags(StateId state) const noexcept { return flags_[state]; }
  StateId find_step(StateId state, std::uint8_t byte);
  void begin();
  void reach(NodeId node, FrameId frame);
  void follow(NodeId node, FrameId frame);
  std::size_t locate(std::uint64_t key) const noexcept;  // in seen_
  void call(NodeId node, FrameId frame);
  std::uint32_t open_frame(RuleId rule);
  void leave(FrameId frame);
  StateId finish();
  void close_frames();
  FrameId closed(FrameId frame) const;
  StateId add_state(std::span<const std::uint32_t> words);

  const Automaton* automaton_;
  CharBytes::ByteClasses classes_;
  SpanTable frames_;                 // sorted (node, frame) pairs
  SpanTable states_;                 // flags, sorted places
  std::vector<std::uint8_t> flags_;  // of each state
  std::vector<StateId> steps_;       // of each state by class of byte
  std::vector<StateId> afters_;      // of each frame
  std::size_t tidy_words_;

  // The step in progress.
  std::uint32_t new_flags_ = 0;
  std::vector<Place> new_places_;
  std::vector<std::pair<NodeId, FrameId>> work_;
  std::vector<std::uint64_t> seen_;  // open addressing: node and frame
  std::size_t seen_count_ = 0;
  std::size_t work_done_ = 0;  // ways followed
  std::vector<OpenFrame> open_;
  std::unordered_map<RuleId, std::uint32_t> open_index_;
};

}  // namespace heddle::text::grammar
