// Which bytes have been read and written since the last barrier (rule 13).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace heddle::vulkan {

class Hazards {
 public:
  struct Access {
    std::uint64_t begin, end;  // addresses
    bool writes;
  };
  /// Whether one of the accesses conflicts with one noted before: two at the same bytes, of which
  /// one writes.
  bool conflict(const std::vector<Access>& accesses) const {
    return std::ranges::any_of(accesses, [&](const Access& a) {
      return std::ranges::any_of(noted_, [&](const Access& b) {
        return (a.writes || b.writes) && a.begin < b.end && b.begin < a.end;
      });
    });
  }
  void note(const std::vector<Access>& accesses) {
    noted_.insert(noted_.end(), accesses.begin(), accesses.end());
  }
  void clear() { noted_.clear(); }

 private:
  std::vector<Access> noted_;
};

}  // namespace heddle::vulkan
