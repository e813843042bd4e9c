// How well models foretell fables that none of them was trained on.
#pragma once

#include <filesystem>
#include <vector>

namespace fable {

struct HeldOutLoss {
  double nats = 0;          // of the stories and their ends, given what was asked for
  std::size_t bytes = 0;    // of the stories
  std::size_t tokens = 0;   // that the model made of them, ends counted
  double grammar_nats = 0;  // what is left to chance in the stories

  double per_byte() const { return nats / static_cast<double>(bytes); }
};

/// Of `stories` fables of a seed: on request, in ChatML, every second one; the others as plain
/// text, from their second word on, half of them behind the end of another text. Throws io for what
/// is no model.
HeldOutLoss held_out_loss(const std::filesystem::path& model, std::uint64_t seed, int stories);

}  // namespace fable
