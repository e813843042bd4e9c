// The `loop` of a for statement.
#pragma once

#include <algorithm>
#include <functional>

#include "text/jinja/runtime.h"

namespace heddle::text::jinja {

class Loop : public Object {
 public:
  Loop(std::vector<Value> elements, int depth) : elements_(std::move(elements)), depth_(depth) {
    for (const Value& element : elements_) nesting = std::max(nesting, element.nesting() + 1);
  }

  std::string shown() const override;
  bool callable() const override { return true; }
  /// loop(elements), in a recursive loop.
  Value call(Runtime& run, const Arguments& arguments) override;
  std::optional<Value> attribute(Runtime& run, const Text& name) override;
  void clear() override {
    elements_.clear();
    last_seen_ = Value();
  }

  std::size_t size() const { return elements_.size(); }
  const Value& element() const { return elements_[index_]; }
  void move_to(std::size_t index) { index_ = index; }

  /// What runs the loop again, one deeper.
  void set_again(std::function<Value(const Value& elements)> again) { again_ = std::move(again); }

  Value cycle(const std::vector<Value>& values) const;
  Value changed(Runtime& run, const std::vector<Value>& values);

 private:
  std::optional<Value> neighbour(std::string_view name) const;

  std::vector<Value> elements_;
  const int depth_;
  std::size_t index_ = 0;
  std::function<Value(const Value& elements)> again_;
  Value last_seen_;  // what `changed` was given last: a tuple, or none
};

}  // namespace heddle::text::jinja
