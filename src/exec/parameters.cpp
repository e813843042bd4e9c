#include "exec/parameters.h"

#include "base/check.h"
#include "exec/transfer.h"
#include "heddle/device.h"
#include "heddle/ops.h"

namespace heddle {

namespace {

/// The bytes of `from` in memory of `device`: imported where it can read them in place.
View bring_to(Device& device, const View& from) {
  if (&from.buffer->device() == &device) return from;
  const std::size_t bytes = span_bytes(from.operand);
  auto owner = std::make_shared<Ref<Buffer>>(from.buffer);
  if (Ref<Buffer> imported = device.import_host({from.host(), bytes}, std::move(owner))) {
    return {std::move(imported), 0, from.operand};
  }
  View copy{device.allocate(bytes), 0, from.operand};
  write_buffer(copy.buffer, 0, {from.host(), bytes});
  return copy;
}

}  // namespace

void Parameters::Impl::set(const std::string& name, View plain) {
  const std::lock_guard lock(mutex);
  entries_[name] = Entry{std::move(plain), {}, {}};
  ++revision;
}

const Parameters::Impl::Entry* Parameters::Impl::find(std::string_view name) const {
  const auto it = entries_.find(name);
  return it == entries_.end() ? nullptr : &it->second;
}

bool Parameters::Impl::holds(std::string_view name, const OperandSpec& operand,
                             Device& device) const {
  const std::lock_guard lock(mutex);
  const Entry* entry = find(name);
  if (!entry) return false;
  if (operand.layout.kind != LayoutKind::strided) {
    return entry->packed.contains({&device, operand.layout.kind});
  }
  return &entry->plain.buffer->device() == &device || entry->copies.contains(&device);
}

View Parameters::Impl::plain_locked(const std::string& name, const TensorSpec& spec,
                                    Device& device) {
  const auto it = entries_.find(name);
  require(it != entries_.end(), ErrorCode::invalid_argument,
          "parameter '{}' is not set; the graph needs {}", name, to_string(spec));
  Entry& entry = it->second;
  require(entry.plain.spec() == spec, ErrorCode::invalid_argument,
          "parameter '{}' is {}; the graph needs {}", name, to_string(entry.plain.spec()),
          to_string(spec));
  const auto copy = entry.copies.find(&device);
  if (copy != entry.copies.end()) return copy->second;
  const View brought = bring_to(device, entry.plain);
  return entry.copies[&device] = brought;
}

View Parameters::Impl::plain(const std::string& name, const TensorSpec& spec, Device& device) {
  const std::lock_guard lock(mutex);
  return plain_locked(name, spec, device);
}

View Parameters::Impl::packed(const std::string& name, const OperandSpec& operand, Device& device,
                              const Pack& pack) {
  const std::lock_guard lock(mutex);
  const View plain = plain_locked(name, operand.spec, device);
  auto& forms = entries_.find(name)->second.packed;
  const auto known = forms.find({&device, operand.layout.kind});
  if (known != forms.end()) return known->second;
  View packed{device.allocate(span_bytes(operand)), 0, operand};
  pack(plain, packed);
  return forms[{&device, operand.layout.kind}] = packed;
}

Parameters::Parameters() : impl_(std::make_unique<Impl>()) {}
Parameters::~Parameters() = default;

void Parameters::set(const std::string& name, const Array& value) {
  View view = contiguous(value).view();
  view.buffer->wait_for_writes();
  if (!view.buffer->host()) {
    const std::size_t bytes = byte_size(value.spec());
    View host{allocate_host(bytes), 0, OperandSpec::contiguous(value.spec())};
    read_buffer(view.buffer, view.offset, {host.host(), bytes});
    view = host;
  }
  impl_->set(name, std::move(view));
}

void Parameters::set_mapped(const std::string& name, TensorSpec spec,
                            std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  require(bytes.size() == byte_size(spec), ErrorCode::invalid_argument,
          "parameter '{}': {} takes {} bytes, not {}", name, to_string(spec), byte_size(spec),
          bytes.size());
  const std::span<std::byte> memory{const_cast<std::byte*>(bytes.data()),
                                    bytes.size()};  // only read
  impl_->set(name, {cpu_device().import_host(memory, std::move(owner)), 0,
                    OperandSpec::contiguous(std::move(spec))});
}

TensorSpec Parameters::spec(std::string_view name) const {
  const std::lock_guard lock(impl_->mutex);
  const Impl::Entry* entry = impl_->find(name);
  require(entry != nullptr, ErrorCode::invalid_argument, "parameter '{}' is not set", name);
  return entry->plain.spec();
}

bool Parameters::contains(std::string_view name) const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->find(name) != nullptr;
}

}  // namespace heddle
