#include "text/grammar/parser.h"

#include <algorithm>
#include <unordered_map>

#include "base/check.h"

namespace heddle::text::grammar {
namespace {

using Kind = Automaton::Kind;

/// In a frame's links, instead of a node: the text ends there, or what comes is not known.
constexpr NodeId kTextEnds = ~NodeId{0}, kUnknownFollows = kTextEnds - 1;
constexpr FrameId kOpen = FrameId{1} << 31;  // counts open_, not frames_

/// Far more ways than grammars in use have: at once, and for a mask (some tenths of a second).
constexpr std::size_t kMostWays = 20'000, kMostWork = 3'000'000;
constexpr std::size_t kMostWords = std::size_t{1} << 24;  // of states and frames: 64 MiB
constexpr std::size_t kTidyWords = std::size_t{1} << 18;
constexpr std::uint64_t kFree = ~std::uint64_t{0};

}  // namespace

Parser::Parser(const Automaton& automaton)
    : automaton_(&automaton),
      classes_(automaton.byte_classes()),
      tidy_words_(kTidyWords),
      seen_(64, kFree) {}

void Parser::clear() {
  frames_.clear();
  states_.clear();
  flags_.clear();
  steps_.clear();
  afters_.clear();
}

StateId Parser::start() {
  const std::uint32_t link[] = {kTextEnds, 0};
  const FrameId frame = frames_.intern(link);
  begin();
  reach(automaton_->rule(0).start, frame);
  return finish();
}

StateId Parser::inside(NodeId node, PartId part) {
  const std::uint32_t link[] = {kUnknownFollows, 0};
  const std::uint32_t words[] = {0, node, part, frames_.intern(link)};
  return add_state(words);
}

StateId Parser::after(FrameId frame) {
  if (afters_.size() < frames_.size()) afters_.resize(frames_.size(), kUnknown);
  if (afters_[frame] != kUnknown) return afters_[frame];
  begin();
  leave(frame);
  const StateId state = finish();
  afters_.resize(frames_.size(), kUnknown);
  return afters_[frame] = state;
}

std::vector<Place> Parser::places(StateId state) const {
  const std::span<const std::uint32_t> words = states_[state];
  std::vector<Place> places;
  for (std::size_t i = 1; i < words.size(); i += 3)
    places.push_back({words[i], words[i + 1], words[i + 2]});
  return places;
}

StateId Parser::find_step(StateId state, std::uint8_t byte) {
  begin();
  const std::span<const std::uint32_t> words = states_[state];
  for (std::size_t i = 1; i < words.size(); i += 3) {
    const PartId part = automaton_->chars().next(words[i + 1], byte);
    if (part == kPartDone) {
      reach(automaton_->node(words[i]).next, words[i + 2]);
    } else if (part != kPartNone) {
      new_places_.push_back({words[i], part, words[i + 2]});
    }
  }
  const StateId next = finish();
  steps_[std::size_t{state} * classes_.count + classes_.of[byte]] = next;
  return next;
}

void Parser::begin() {
  new_flags_ = 0;
  new_places_.clear();
  work_.clear();
  open_.clear();
  open_index_.clear();
  seen_.assign(std::min<std::size_t>(seen_.size(), 1024), kFree);
  seen_count_ = 0;
}

/// Notes a node to be followed, once.
void Parser::reach(NodeId node, FrameId frame) {
  if (!automaton_->node(node).live) return;
  const std::uint64_t key = std::uint64_t{node} << 32 | frame;
  const std::size_t slot = locate(key);
  if (seen_[slot] == key) return;
  ++work_done_;
  require(++seen_count_ <= kMostWays && work_done_ <= kMostWork, ErrorCode::unsupported,
          "grammar: it can be read in too many ways here; make it less ambiguous");
  seen_[slot] = key;
  work_.push_back({node, frame});
  if (seen_count_ * 2 <= seen_.size()) return;
  std::vector<std::uint64_t> old(seen_.size() * 4, kFree);
  old.swap(seen_);
  for (const std::uint64_t k : old) {
    if (k != kFree) seen_[locate(k)] = k;
  }
}

std::size_t Parser::locate(std::uint64_t key) const noexcept {
  const std::uint64_t hash = key * 0x9E3779B97F4A7C15u;  // 2^64 / golden ratio
  std::size_t slot = (hash ^ hash >> 32) & (seen_.size() - 1);
  while (seen_[slot] != kFree && seen_[slot] != key) slot = (slot + 1) & (seen_.size() - 1);
  return slot;
}

void Parser::follow(NodeId id, FrameId frame) {
  const Automaton::Node& node = automaton_->node(id);
  switch (node.kind) {
    case Kind::chars:
      new_places_.push_back({id, node.arg, frame});
      return;
    case Kind::split:
      reach(node.next, frame);
      reach(node.arg, frame);
      return;
    case Kind::call:
      return call(id, frame);
    case Kind::end:
      // A rule that is complete before it has read anything has been passed over by its callers.
      if ((frame & kOpen) == 0) leave(frame);
      return;
  }
}

void Parser::call(NodeId id, FrameId frame) {
  const Automaton::Node& node = automaton_->node(id);
  const Automaton::CompiledRule& rule = automaton_->rule(node.arg);
  if (rule.nullable) reach(node.next, frame);
  OpenFrame& open = open_[open_frame(node.arg)];
  if (automaton_->is_end(node.next)) {
    open.inherited.push_back(frame);
  } else {
    open.links.insert(open.links.end(), {node.next, frame});
  }
}

std::uint32_t Parser::open_frame(RuleId rule) {
  const auto [at, is_new] = open_index_.emplace(rule, static_cast<std::uint32_t>(open_.size()));
  if (is_new) {
    open_.push_back({rule, {}, {}});
    reach(automaton_->rule(rule).start, kOpen | at->second);
  }
  return at->second;
}

void Parser::leave(FrameId frame) {
  const std::span<const std::uint32_t> links = frames_[frame];
  for (std::size_t i = 0; i < links.size(); i += 2) {
    if (links[i] == kTextEnds) {
      new_flags_ |= kAccepts;
    } else if (links[i] == kUnknownFollows) {
      new_flags_ |= kLeaves;
    } else {
      reach(links[i], links[i + 1]);
    }
  }
}

FrameId Parser::closed(FrameId frame) const {
  return (frame & kOpen) != 0 ? open_[frame & ~kOpen].closed : frame;
}

/// Gives open frames their numbers, callers first.
void Parser::close_frames() {
  std::vector<OpenFrame*> order;
  for (OpenFrame& frame : open_) order.push_back(&frame);
  std::sort(order.begin(), order.end(), [&](const OpenFrame* a, const OpenFrame* b) {
    return automaton_->rule(a->rule).rank < automaton_->rule(b->rule).rank;
  });
  std::vector<std::pair<NodeId, FrameId>> links;
  std::vector<std::uint32_t> words;
  std::size_t total = 0;
  for (OpenFrame* frame : order) {
    links.clear();
    for (std::size_t i = 0; i < frame->links.size(); i += 2)
      links.push_back({frame->links[i], closed(frame->links[i + 1])});
    for (const FrameId caller : frame->inherited) {
      const std::span<const std::uint32_t> more = frames_[closed(caller)];
      for (std::size_t i = 0; i < more.size(); i += 2) links.push_back({more[i], more[i + 1]});
    }
    std::sort(links.begin(), links.end());
    links.erase(std::unique(links.begin(), links.end()), links.end());
    total += links.size();
    work_done_ += links.size();
    require(total <= kMostWays, ErrorCode::unsupported,
            "grammar: it can be read in too many ways here; make it less ambiguous");
    words.clear();
    for (const auto& [node, parent] : links) words.insert(words.end(), {node, parent});
    frame->closed = frames_.intern(words);
  }
}

/// Follows what was reached; returns the state of all places where characters are read.
StateId Parser::finish() {
  while (!work_.empty()) {
    const auto [node, frame] = work_.back();
    work_.pop_back();
    follow(node, frame);
  }
  close_frames();
  if (new_places_.empty() && new_flags_ == 0) return kNoState;
  for (Place& place : new_places_) place.frame = closed(place.frame);
  std::sort(new_places_.begin(), new_places_.end());
  new_places_.erase(std::unique(new_places_.begin(), new_places_.end()), new_places_.end());
  std::vector<std::uint32_t> words{new_flags_};
  for (const Place& p : new_places_) words.insert(words.end(), {p.node, p.part, p.frame});
  return add_state(words);
}

StateId Parser::add_state(std::span<const std::uint32_t> words) {
  const StateId state = states_.intern(words);
  const std::size_t steps = states_.size() * classes_.count;
  if (steps_.size() < steps) {
    steps_.resize(steps, kUnknown);
    flags_.push_back(static_cast<std::uint8_t>(words.front() | (words.size() > 1 ? kReadsOn : 0)));
  }
  require(
      size_in_words() <= kMostWords, ErrorCode::unsupported,
      "the grammar can be read in too many ways: following them takes more than {} MiB; make it "
      "less ambiguous",
      kMostWords * sizeof(std::uint32_t) >> 20);
  return state;
}

StateId Parser::tidy(StateId state) {
  if (size_in_words() <= tidy_words_) return state;
  const std::vector<Place> kept = places(state);
  const std::uint32_t kept_flags = states_[state].front();
  const SpanTable old = std::move(frames_);
  clear();
  // A frame is entered after those it links to.
  std::unordered_map<FrameId, FrameId> moved;
  std::vector<FrameId> work;
  for (const Place& place : kept) work.push_back(place.frame);
  std::vector<std::uint32_t> words;
  while (!work.empty()) {
    const FrameId frame = work.back();
    const std::span<const std::uint32_t> links = old[frame];
    const std::size_t before = work.size();
    words.assign(links.begin(), links.end());
    for (std::size_t i = 0; i < words.size(); i += 2) {
      if (words[i] == kTextEnds || words[i] == kUnknownFollows) continue;
      const auto at = moved.find(words[i + 1]);
      if (at == moved.end()) {
        work.push_back(words[i + 1]);
      } else {
        words[i + 1] = at->second;
      }
    }
    if (work.size() > before) continue;
    work.pop_back();
    moved.emplace(frame, frames_.intern(words));
  }
  words.assign(1, kept_flags);
  std::vector<Place> places;
  for (const Place& p : kept) places.push_back({p.node, p.part, moved.at(p.frame)});
  std::sort(places.begin(), places.end());
  for (const Place& p : places) words.insert(words.end(), {p.node, p.part, p.frame});
  const StateId result = add_state(words);
  tidy_words_ = std::max(kTidyWords, 2 * size_in_words());
  return result;
}

}  // namespace heddle::text::grammar
