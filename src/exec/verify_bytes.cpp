#include "exec/verify_bytes.h"

#include <algorithm>

namespace heddle::verifier {

Bytes::Bytes(std::size_t size) : size_(size) {
  if (size > 0) segments_[0].end = size;
}

void Bytes::cut(std::size_t at) {
  if (at == 0 || at >= size_) return;
  const auto it = std::prev(segments_.upper_bound(at));
  if (it->first == at) return;
  Segment tail = it->second;
  it->second.end = at;
  segments_.emplace(at, std::move(tail));
}

void Bytes::visit(std::size_t begin, std::size_t end,
                  const std::function<void(std::size_t, Segment&)>& look) {
  if (begin >= end) return;
  cut(begin);
  cut(end);
  for (auto it = segments_.find(begin); it != segments_.end() && it->first < end; ++it)
    look(it->first, it->second);
}

void Bytes::write(std::size_t begin, std::size_t end, std::optional<Content> content,
                  std::optional<Moment> by) {
  if (begin >= end) return;
  cut(begin);
  cut(end);
  const auto first = segments_.find(begin);
  segments_.erase(std::next(first), segments_.lower_bound(end));
  first->second = {end, std::move(content), std::move(by), {}};
}

void Bytes::read(std::size_t begin, std::size_t end, const Moment& by) {
  visit(begin, end, [&](std::size_t, Segment& segment) {
    const auto same =
        std::find_if(segment.readers.begin(), segment.readers.end(),
                     [&](const Moment& reader) { return reader.device == by.device; });
    if (same == segment.readers.end()) {
      segment.readers.push_back(by);
    } else {
      *same = by;
    }
  });
}

}  // namespace heddle::verifier
