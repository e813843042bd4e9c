// namespace(...): the one thing that a template can change.
#pragma once

#include <unordered_map>

#include "text/jinja/runtime.h"

namespace heddle::text::jinja {

class Namespace : public Object {
 public:
  std::string shown() const override { return "<Namespace>"; }
  std::optional<Value> attribute(Runtime&, const Text& name) override {
    const auto found = values_.find(name.bytes());
    return found == values_.end() ? std::nullopt : std::optional(found->second);
  }
  void set(const std::string& name, Value value) { values_[name] = std::move(value); }
  void clear() override { values_.clear(); }

 private:
  std::unordered_map<std::string, Value> values_;
};

}  // namespace heddle::text::jinja
