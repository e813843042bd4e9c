// Random choices that are the same on every machine.
#pragma once

#include <cstdint>

namespace fable {

/// SplitMix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators").
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15u;
    std::uint64_t z = state_;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
  }

  /// From 0 ... count - 1; count is below 2^32, so that none is favoured by more than 2^-32.
  std::uint64_t below(std::uint64_t count) { return (next() >> 32) * count >> 32; }

  /// A generator for something of its own, such as the story of this number.
  static Random of(std::uint64_t seed, std::uint64_t purpose, std::uint64_t number) {
    std::uint64_t mixed = Random(seed).next() + purpose;
    mixed = Random(mixed).next() + number;
    return Random(Random(mixed).next());
  }

 private:
  std::uint64_t state_;
};

}  // namespace fable
