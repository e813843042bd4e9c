// A string that remembers which of its bytes the template wrote and which came as data.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::text::jinja {

enum class Origin : bool { data, from_template };

class Text {
 public:
  struct Run {
    std::size_t end;
    Origin origin;
  };

  Text() = default;
  Text(std::string bytes, Origin origin);

  const std::string& bytes() const noexcept { return bytes_; }
  std::size_t size() const noexcept { return bytes_.size(); }
  bool empty() const noexcept { return bytes_.empty(); }
  const std::vector<Run>& runs() const noexcept { return runs_; }

  void append(std::string_view bytes, Origin origin);
  void append(const Text& other) { append(other, 0, other.size()); }
  /// Bytes [begin, end) of `other`.
  void append(const Text& other, std::size_t begin, std::size_t end);
  Text slice(std::size_t begin, std::size_t end) const;
  Origin origin_at(std::size_t byte) const;

  /// Calls `visit(std::string_view, Origin)` for each run of one origin.
  template <class Visit>
  void each_run(Visit visit) const {
    std::size_t begin = 0;
    for (const Run& run : runs_) {
      visit(std::string_view(bytes_).substr(begin, run.end - begin), run.origin);
      begin = run.end;
    }
  }

 private:
  std::string bytes_;
  std::vector<Run> runs_;  // by end; neighbours differ in origin
};

}  // namespace heddle::text::jinja
