#include "text/jinja/text.h"

#include <algorithm>

namespace heddle::text::jinja {

Text::Text(std::string bytes, Origin origin) : bytes_(std::move(bytes)) {
  if (!bytes_.empty()) runs_.push_back({bytes_.size(), origin});
}

void Text::append(std::string_view bytes, Origin origin) {
  if (bytes.empty()) return;
  bytes_ += bytes;
  if (!runs_.empty() && runs_.back().origin == origin)
    runs_.back().end = bytes_.size();
  else
    runs_.push_back({bytes_.size(), origin});
}

void Text::append(const Text& other, std::size_t begin, std::size_t end) {
  const auto ends_after = [](std::size_t at, const Run& run) { return at < run.end; };
  auto run = std::upper_bound(other.runs_.begin(), other.runs_.end(), begin, ends_after);
  while (begin < end) {
    const std::size_t stop = std::min(run->end, end);
    append(std::string_view(other.bytes_).substr(begin, stop - begin), run->origin);
    begin = stop;
    ++run;
  }
}

Text Text::slice(std::size_t begin, std::size_t end) const {
  Text part;
  part.append(*this, begin, end);
  return part;
}

Origin Text::origin_at(std::size_t byte) const {
  const auto ends_after = [](std::size_t at, const Run& run) { return at < run.end; };
  return std::upper_bound(runs_.begin(), runs_.end(), byte, ends_after)->origin;
}

}  // namespace heddle::text::jinja
