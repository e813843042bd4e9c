// One memory as the verifier sees it: what every byte holds, who wrote it and who has read it
// since.
#pragma once

#include <functional>
#include <map>

#include "exec/verify.h"

namespace heddle::verifier {

/// A step, and what it can be ordered by.
struct Moment {
  std::uint32_t device = 0;
  std::uint32_t submission = 0;  // of that device, counted across runs
  std::uint32_t epoch = 0;       // barriers that the device has passed, counted across runs
  Place place;
};

/// Runs that a value is good for: one, or all.
inline constexpr std::uint32_t kEveryRun = ~std::uint32_t{0};

struct Content {
  ValueId version;
  std::size_t base = 0;  // where in the memory the version's first byte is
  std::uint32_t run = 0;
  friend bool operator==(const Content&, const Content&) = default;
};

class Bytes {
 public:
  struct Segment {
    std::size_t end = 0;
    std::optional<Content> content;  // none: nothing, or a workspace's leavings
    std::optional<Moment> written;   // none: by the host, before the run
    std::vector<Moment> readers;     // the last of each device
  };

  explicit Bytes(std::size_t size);

  /// Calls `look(begin, segment)` for the pieces of [begin, end), which is within the size.
  void visit(std::size_t begin, std::size_t end,
             const std::function<void(std::size_t, Segment&)>& look);
  /// All of [begin, end) becomes `content`, with no readers yet.
  void write(std::size_t begin, std::size_t end, std::optional<Content> content,
             std::optional<Moment> by);
  void read(std::size_t begin, std::size_t end, const Moment& by);
  std::size_t size() const noexcept { return size_; }

 private:
  void cut(std::size_t at);
  std::size_t size_;
  std::map<std::size_t, Segment> segments_;  // by begin; no gaps
};

}  // namespace heddle::verifier
