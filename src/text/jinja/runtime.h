// What one rendering has used so far, and may use.
#pragma once

#include <fmt/format.h>

#include <ctime>

#include "heddle/chat_template.h"
#include "text/jinja/value.h"

namespace heddle::text::jinja {

template <class... Args>
[[noreturn]] void fail_render(fmt::format_string<Args...> format, Args&&... args) {
  throw Failure(fmt::format(format, std::forward<Args>(args)...));
}

class Runtime {
 public:
  Runtime(const TemplateLimits& limits, const std::tm& now) : limits_(limits), now_(now) {}
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  const TemplateLimits& limits() const noexcept { return limits_; }
  const std::tm& now() const noexcept { return now_; }

  void step(std::int64_t count = 1);
  /// Counts text that is looked at.
  void scan(std::size_t bytes) { step(static_cast<std::int64_t>(bytes / 64) + 1); }
  /// Refuses a string of this size before it is made.
  void check_size(std::size_t bytes) const;
  /// Counts a string about to be made, of this size.
  void make(std::size_t bytes);

  Value string(Text text);
  Value string(std::string_view bytes, Origin origin = Origin::data);
  Value sequence(std::vector<Value> elements, SequenceKind kind = SequenceKind::list);
  Value dict(Dict dict);
  /// For objects that may hold themselves: they are cleared when the rendering ends.
  template <class T>
  std::shared_ptr<T> keep(std::shared_ptr<T> object) {
    step();
    kept_.push_back(object);
    return object;
  }

  /// One more level of recursion, until it goes out of scope.
  class Level {
   public:
    explicit Level(Runtime& run);
    ~Level() { --run_.level_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Runtime& run_;
  };

 private:
  int checked_nesting(int nesting) const;

  const TemplateLimits& limits_;
  const std::tm now_;
  std::int64_t steps_ = 0;
  std::size_t bytes_ = 0;
  int level_ = 0;
  std::vector<std::shared_ptr<Object>> kept_;
};

}  // namespace heddle::text::jinja
