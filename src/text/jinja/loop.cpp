#include "text/jinja/loop.h"

namespace heddle::text::jinja {

namespace {

class LoopMethod : public Object {
 public:
  LoopMethod(std::shared_ptr<Loop> loop, bool cycles) : loop_(std::move(loop)), cycles_(cycles) {
    nesting = loop_->nesting;
  }
  std::string shown() const override { return "<method of loop>"; }
  bool callable() const override { return true; }
  Value call(Runtime& run, const Arguments& arguments) override {
    return cycles_ ? loop_->cycle(arguments.positional) : loop_->changed(run, arguments.positional);
  }

 private:
  std::shared_ptr<Loop> loop_;
  bool cycles_;
};

}  // namespace

std::string Loop::shown() const {
  return fmt::format("<LoopContext {}/{}>", index_ + 1, elements_.size());
}

Value Loop::call(Runtime&, const Arguments& arguments) {
  if (!again_) fail_render("the loop must have the 'recursive' marker");
  if (arguments.positional.size() != 1 || !arguments.named.empty())
    fail_render("loop() takes one argument");
  return again_(arguments.positional[0]);
}

std::optional<Value> Loop::neighbour(std::string_view name) const {
  const bool next = name == "nextitem";
  if (next ? index_ + 1 < elements_.size() : index_ > 0)
    return elements_[next ? index_ + 1 : index_ - 1];
  return Value::undefined(next ? "there is no next item" : "there is no previous item");
}

std::optional<Value> Loop::attribute(Runtime&, const Text& text) {
  const std::string& name = text.bytes();
  const auto count = [](std::size_t n) { return Value::integer(static_cast<std::int64_t>(n)); };
  if (name == "index") return count(index_ + 1);
  if (name == "index0") return count(index_);
  if (name == "revindex") return count(elements_.size() - index_);
  if (name == "revindex0") return count(elements_.size() - index_ - 1);
  if (name == "length") return count(elements_.size());
  if (name == "first") return Value::boolean(index_ == 0);
  if (name == "last") return Value::boolean(index_ + 1 == elements_.size());
  if (name == "depth") return Value::integer(depth_);
  if (name == "depth0") return Value::integer(depth_ - 1);
  if (name == "previtem" || name == "nextitem") return neighbour(name);
  if (name == "cycle" || name == "changed")
    return Value::object(std::make_shared<LoopMethod>(
        std::static_pointer_cast<Loop>(shared_from_this()), name == "cycle"));
  return std::nullopt;
}

Value Loop::cycle(const std::vector<Value>& values) const {
  if (values.empty()) fail_render("no items for cycling given");
  return values[index_ % values.size()];
}

Value Loop::changed(Runtime& run, const std::vector<Value>& values) {
  Value seen = run.sequence(values, SequenceKind::tuple);
  if (equal(run, last_seen_, seen)) return Value::boolean(false);
  last_seen_ = std::move(seen);
  run.keep(shared_from_this());
  return Value::boolean(true);
}

}  // namespace heddle::text::jinja
