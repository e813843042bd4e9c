// Sets of characters as machines that read their UTF-8 byte by byte.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "text/grammar/char_set.h"

namespace heddle::text::grammar {

/// Where in a character a reader is: a state of some set's machine.
using PartId = std::uint32_t;
inline constexpr PartId kPartDone = ~PartId{0};     // the character is complete, and in the set
inline constexpr PartId kPartNone = kPartDone - 1;  // it cannot be in the set

class CharBytes {
 public:
  /// The state before the first byte of a character of `chars`, which is not empty.
  PartId add(const CharSet& chars);
  PartId next(PartId part, std::uint8_t byte) const noexcept;

  std::size_t size() const noexcept { return parts_.size(); }
  /// Bytes that every machine treats alike have one number. Numbers have no gaps.
  struct ByteClasses {
    std::array<std::uint8_t, 256> of;
    std::uint32_t count;
  };
  ByteClasses byte_classes() const;

 private:
  struct Edge {
    std::uint8_t first, last;
    PartId next;
  };
  using Part = std::vector<Edge>;

  PartId any_continuation(int bytes_left);
  PartId continuation(std::span<const CharRange> ranges, int bytes_left);
  static void append(Part& part, std::uint32_t byte, PartId next);
  PartId intern(Part part);

  std::vector<Part> parts_;
  std::map<std::vector<std::uint64_t>, PartId> by_edges_;
  std::map<CharSet, PartId> by_set_;
  std::array<PartId, 4> any_{kPartNone, kPartNone, kPartNone, kPartNone};  // by bytes left
};

}  // namespace heddle::text::grammar
