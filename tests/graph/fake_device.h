// A device that says it can run what a test lets it: for passes, which only ask.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heddle/device.h"

namespace heddle::test {

class FakeDevice : public Device {
 public:
  using Allows = std::function<bool(const Op&)>;
  explicit FakeDevice(std::string name, Allows allows)
      : name_(std::move(name)), allows_(std::move(allows)) {}

  std::string_view name() const noexcept override { return name_; }
  std::size_t alignment() const noexcept override { return 64; }

  Prepared prepare(const Op& op, std::span<const OperandSpec> inputs,
                   std::span<const OperandSpec> outputs) override {
    if (!allows_(op)) return {nullptr, "no kernel for it"};
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const bool packed = inputs[i].layout.kind != LayoutKind::strided;
      if (packed && !(reads_packed && reads_packed(op, i))) return {nullptr, "packed operand"};
      const bool strided = !packed && !is_contiguous(inputs[i]);
      if (strided && contiguous_only && !std::holds_alternative<Contiguous>(op)) {
        return {nullptr, "it takes contiguous operands only"};
      }
    }
    return {std::make_shared<Kernel>(whole_operand_traits(inputs, outputs)), {}};
  }
  std::optional<LayoutKind> preferred_layout(const Op& op, std::size_t operand,
                                             std::span<const TensorSpec> inputs) const override {
    return prefers ? prefers(op, operand) : Device::preferred_layout(op, operand, inputs);
  }

  Ref<Buffer> allocate(std::size_t bytes, MemoryKind kind) override {
    return cpu_device().allocate(bytes, kind);
  }
  Ref<Stream> default_stream() override { return cpu_device().default_stream(); }
  std::unique_ptr<Recording> record(std::span<const RecordedStep> steps) override {
    return cpu_device().record(steps);
  }
  std::unique_ptr<BindingTable> make_binding_table(std::size_t slots) override {
    return cpu_device().make_binding_table(slots);
  }

  bool contiguous_only = false;
  std::function<std::optional<LayoutKind>(const Op&, std::size_t operand)> prefers;
  std::function<bool(const Op&, std::size_t operand)> reads_packed;

 private:
  std::string name_;
  Allows allows_;
};

/// Ops by name ("add", "rms_norm", ...).
inline FakeDevice::Allows everything() {
  return [](const Op&) { return true; };
}
inline FakeDevice::Allows only(std::initializer_list<std::string_view> names) {
  return [allowed = std::vector<std::string>(names.begin(), names.end())](const Op& op) {
    return std::ranges::find(allowed, name(op)) != allowed.end();
  };
}
inline FakeDevice::Allows all_but(std::initializer_list<std::string_view> names) {
  return [inner = only(names)](const Op& op) { return !inner(op); };
}

}  // namespace heddle::test
