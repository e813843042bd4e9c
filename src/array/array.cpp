#include "heddle/array.h"

#include <cstring>
#include <utility>

#include "array/launch.h"
#include "array/ops_common.h"
#include "array/scopes.h"
#include "array/tracer.h"
#include "op/infer.h"

namespace heddle {

namespace {

thread_local Device* current_device = nullptr;
thread_local const Ref<Stream>* current_stream = nullptr;  // of that device; null for its default

BuiltUnder built_here() {
  return {current_device, current_stream ? *current_stream : nullptr, TracerScope::current(),
          CallSite::now()};
}

Ref<Node> make_node(Op&& op, Node::Inputs&& inputs) {
  InlineVector<TensorSpec, 3> specs;
  specs.reserve(inputs.size());
  for (const Array& input : inputs) specs.push_back(input.spec());
  const Specs outputs = infer_specs(op, {specs.begin(), specs.size()});
  return make_ref<Node>(std::move(op), std::move(inputs),
                        std::span(outputs.begin(), outputs.size()), built_here());
}

Node::Inputs inputs_of(std::vector<Array> arrays) {
  Node::Inputs inputs;
  inputs.reserve(arrays.size());
  for (Array& array : arrays) inputs.push_back(std::move(array));
  return inputs;
}

}  // namespace

std::string to_string(const std::source_location& where) {
  return fmt::format("[{}:{}]", where.file_name(), where.line());
}

// ---- Handles

Array::Array(Ref<Node> node, std::uint32_t output) noexcept
    : node_(std::move(node)), output_(output) {}
Array::Array(const Array&) noexcept = default;
Array::Array(Array&&) noexcept = default;
Array& Array::operator=(const Array&) noexcept = default;
Array& Array::operator=(Array&&) noexcept = default;
Array::~Array() = default;

Array Array::from_bytes(TensorSpec spec, std::span<const std::byte> bytes) {
  const std::size_t needed = within("from_bytes", [&] { return byte_size(spec); });
  require(bytes.size() == needed, ErrorCode::invalid_argument,
          "from_bytes: {} takes {} bytes, {} were given", spec, needed, bytes.size());
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
  return node_->spec(output_);
}

std::int64_t Array::shape(std::int64_t axis) const {
  return shape()[normalize_axis(axis, ndim(), "shape")];
}

// ---- Values

void Array::eval() const {
  heddle::eval(std::span(this, 1));
}

void Array::check() const {
  heddle::check(std::span(this, 1));
}

bool Array::is_available() const noexcept {
  if (!node_->has_value()) return false;
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

void Array::check_dtype(DType wanted, const char* function) const {
  require(wanted == dtype(), ErrorCode::invalid_argument,
          "{}: the array is {}, its values cannot be read as {}; use astype", function, spec(),
          wanted);
}

void Array::copy_item(DType wanted, void* value) const {
  check_dtype(wanted, "item");
  require(size() == 1, ErrorCode::invalid_argument,
          "item: the array is {} and not a single element", spec());
  copy_to({static_cast<std::byte*>(value), nbytes()});
}

// ---- Making nodes

Device* device_in_scope() noexcept {
  return current_device;
}

DeviceScope::DeviceScope(Device& device)
    : device_(std::exchange(current_device, &device)),
      stream_(std::exchange(current_stream, nullptr)) {}
DeviceScope::~DeviceScope() {
  current_device = device_;
  current_stream = stream_;
}

StreamScope::StreamScope(Ref<Stream> stream)
    : own_(std::move(stream)), device_(current_device), stream_(current_stream) {
  require(own_ != nullptr, ErrorCode::invalid_argument, "StreamScope: there is no stream");
  current_device = &own_->device();
  current_stream = &own_;
}
StreamScope::~StreamScope() {
  current_device = device_;
  current_stream = stream_;
}

Array make_array(Op&& op, Node::Inputs&& inputs) {
  Ref<Node> node = make_node(std::move(op), std::move(inputs));
  require(node->output_count() == 1, ErrorCode::invalid_argument,
          "apply: {} has {} outputs; use apply_multi", name(node->op()), node->output_count());
  return Array(std::move(node), 0);
}

Array apply(Op op, std::vector<Array> inputs) {
  return make_array(std::move(op), inputs_of(std::move(inputs)));
}

std::vector<Array> apply_multi(Op op, std::vector<Array> inputs) {
  const Ref<Node> node = make_node(std::move(op), inputs_of(std::move(inputs)));
  std::vector<Array> results;
  results.reserve(node->output_count());
  for (std::uint32_t i = 0; i < node->output_count(); ++i) results.emplace_back(node, i);
  return results;
}

}  // namespace heddle
