// Random bits, as JAX defines them: threefry of the counters 0, 1, ... of all words, cut in half,
// with a zero behind an odd number of them.
#include "support/reference_random.h"

#include <array>
#include <bit>
#include <cstring>

namespace heddle::test {

namespace {

using Word = std::uint32_t;

/// The 20 rounds, written out from the paper's tables.
std::array<Word, 2> hash(Word key0, Word key1, Word x0, Word x1) {
  const Word keys[] = {key0, key1, 0x1bd11bda ^ key0 ^ key1};
  const int turns[] = {13, 15, 26, 6, 17, 29, 16, 24};
  x0 += keys[0];
  x1 += keys[1];
  for (unsigned round = 0; round < 20; ++round) {
    x0 += x1;
    x1 = std::rotl(x1, turns[round % 8]);
    x1 ^= x0;
    if (round % 4 != 3) continue;
    const unsigned injection = round / 4 + 1;
    x0 += keys[injection % 3];
    x1 += keys[(injection + 1) % 3] + injection;
  }
  return {x0, x1};
}

std::vector<Word> stream(Word key0, Word key1, std::size_t words) {
  std::vector<Word> counters(words + words % 2, 0);
  for (std::size_t i = 0; i < words; ++i) counters[i] = static_cast<Word>(i);
  const std::size_t half = counters.size() / 2;
  for (std::size_t i = 0; i < half; ++i) {
    const auto hashed = hash(key0, key1, counters[i], counters[half + i]);
    counters[i] = hashed[0];
    counters[half + i] = hashed[1];
  }
  counters.resize(words);
  return counters;
}

}  // namespace

std::vector<Values> reference_random(const Op& op, const std::vector<Values>& inputs) {
  const auto* bits = std::get_if<RandomBits>(&op);
  if (!bits) return {};
  const Values& keys = inputs[0];
  Values out(infer(op, std::span(&keys.spec, 1))[0]);
  const auto width = static_cast<std::size_t>(bits->width);
  const auto count = static_cast<std::size_t>(elements(bits->shape));
  for (std::size_t k = 0; 2 * k < keys.real.size(); ++k) {
    const std::vector<Word> words =
        stream(static_cast<Word>(keys.real[2 * k]), static_cast<Word>(keys.real[2 * k + 1]),
               (count * width + 3) / 4);
    for (std::size_t i = 0; i < count; ++i) {
      std::uint64_t value = 0;
      std::memcpy(&value, reinterpret_cast<const char*>(words.data()) + i * width, width);
      out.real[k * count + i] = static_cast<Number>(value);
    }
  }
  return {out};
}

}  // namespace heddle::test
