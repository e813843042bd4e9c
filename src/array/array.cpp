#include "heddle/array.h"

#include <array>
#include <cstring>
#include <utility>

#include "array/launch.h"
#include "array/node.h"
#include "base/check.h"
#include "tensor/format.h"

namespace heddle {

namespace {

thread_local Device* current_device = nullptr;

Ref<Node> make_node(Op op, std::vector<Array> inputs) {
  constexpr std::size_t kFew = 4;  // as many inputs as most ops have
  std::vector<TensorSpec> outputs;
  if (inputs.size() <= kFew) {
    std::array<TensorSpec, kFew> specs;
    for (std::size_t i = 0; i < inputs.size(); ++i) specs[i] = inputs[i].spec();
    outputs = infer(op, std::span(specs).first(inputs.size()));
  } else {
    std::vector<TensorSpec> specs;
    specs.reserve(inputs.size());
    for (const Array& input : inputs) specs.push_back(input.spec());
    outputs = infer(op, specs);
  }
  return make_ref<Node>(std::move(op), std::move(inputs), std::move(outputs), current_device);
}

}  // namespace

// ---- Handles

Array::Array(Ref<Node> node, std::uint32_t output) noexcept
    : node_(std::move(node)), output_(output) {}
Array::Array(const Array&) noexcept = default;
Array::Array(Array&&) noexcept = default;
Array& Array::operator=(const Array&) noexcept = default;
Array& Array::operator=(Array&&) noexcept = default;
Array::~Array() = default;

Array Array::from_bytes(TensorSpec spec, std::span<const std::byte> bytes) {
  const std::size_t needed = byte_size(spec);
  require(bytes.size() == needed, ErrorCode::invalid_argument,
          "Array: {} takes {} bytes, {} were given", spec, needed, bytes.size());
  Ref<Buffer> buffer = allocate_host(needed);
  if (needed > 0) std::memcpy(buffer->host(), bytes.data(), needed);
  return from_view({std::move(buffer), 0, OperandSpec::contiguous(std::move(spec))});
}

Array Array::from_view(View view) {
  require(view.buffer != nullptr, ErrorCode::invalid_argument, "from_view: there is no buffer");
  const std::size_t needed = span_bytes(view.operand);
  const std::size_t size = view.buffer->size();
  require(view.offset <= size && needed <= size - view.offset, ErrorCode::invalid_argument,
          "from_view: {} needs {} bytes from offset {} on, of a buffer of {}", view.operand, needed,
          view.offset, size);
  // The constant's own handle on the buffer is what keeps evaluation from writing to it.
  Constant constant{view.spec(), view.buffer};
  return Array(make_ref<Node>(std::move(constant), std::move(view)), 0);
}

const TensorSpec& Array::spec() const noexcept {
  return node_->outputs()[output_];
}

std::int64_t Array::shape(std::int64_t axis) const {
  return shape()[normalize_axis(axis, ndim(), "shape")];
}

// ---- Values

void Array::eval() const {
  heddle::eval(std::span(this, 1));
}

bool Array::is_available() const noexcept {
  if (node_->state() != Node::State::done) return false;
  const Ref<Completion> write = node_->result(output_).buffer->last_write();
  return !write || write->done();
}

View Array::view() const {
  eval();
  return node_->result(output_);
}

void Array::copy_to(std::span<std::byte> out) const {
  require(out.size() == nbytes(), ErrorCode::invalid_argument,
          "copy_to: {} takes {} bytes, there is room for {}", spec(), nbytes(), out.size());
  eval();
  Launcher launcher;
  const View view = launcher.read_on_host(node_->result(output_));
  if (!out.empty()) std::memcpy(out.data(), view.host(), out.size());
}

std::vector<std::byte> Array::to_bytes() const {
  std::vector<std::byte> bytes(nbytes());
  copy_to(bytes);
  return bytes;
}

void Array::check_dtype(DType wanted) const {
  require(wanted == dtype(), ErrorCode::invalid_argument,
          "the array is {}, its values cannot be read as {}; use astype", spec(), wanted);
}

void Array::copy_item(DType wanted, void* value) const {
  check_dtype(wanted);
  require(size() == 1, ErrorCode::invalid_argument,
          "item: the array is {} and not a single element", spec());
  copy_to({static_cast<std::byte*>(value), nbytes()});
}

// ---- Making nodes

DeviceScope::DeviceScope(Device& device) : previous_(current_device) {
  current_device = &device;
}
DeviceScope::~DeviceScope() {
  current_device = previous_;
}

Array apply(Op op, std::vector<Array> inputs) {
  Ref<Node> node = make_node(std::move(op), std::move(inputs));
  require(node->outputs().size() == 1, ErrorCode::invalid_argument,
          "apply: {} has {} outputs; use apply_multi", name(node->op()), node->outputs().size());
  return Array(std::move(node), 0);
}

std::vector<Array> apply_multi(Op op, std::vector<Array> inputs) {
  const Ref<Node> node = make_node(std::move(op), std::move(inputs));
  const auto count = static_cast<std::uint32_t>(node->outputs().size());
  std::vector<Array> results;
  results.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) results.emplace_back(node, i);
  return results;
}

}  // namespace heddle
