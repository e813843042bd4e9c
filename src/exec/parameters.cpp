#include "exec/parameters.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/system.h"
#include "exec/transfer.h"
#include "heddle/device.h"
#include "heddle/ops.h"

namespace heddle {

namespace {

// Every device takes allocations, and so imports, of this size (maxMemoryAllocationSize in Vulkan).
constexpr std::size_t kMostImported = std::size_t{1} << 30;
// Importing less is not worth a memory object, of which drivers may have as few as 4096.
constexpr std::size_t kLeastImported = std::size_t{64} << 10;
// Mapped weights of up to this size are copied where pages are to be released: a fault maps as much
// around it (Linux's fault_around_bytes).
constexpr std::size_t kMostCopied = std::size_t{64} << 10;
// Packed at once, so that few pages of a mapped file are there beside what they become.
constexpr std::size_t kMostPackedAtOnce = std::size_t{16} << 20;
// Weights with more between them than this, that nobody asked for, get buffers of their own.
constexpr std::size_t kMostBetween = std::size_t{1} << 20;

std::byte* begin_of(const View& view) {
  return view.host();
}
std::byte* end_of(const View& view) {
  return view.host() + span_bytes(view.operand);
}

std::byte* page_of(std::byte* at) {
  return at - std::bit_cast<std::uintptr_t>(at) % page_size();
}
std::byte* page_after(std::byte* at) {
  return page_of(at + page_size() - 1);
}

/// Whether the view is there, and its device not lost since.
bool is_usable(const View& view) {
  return view.buffer && !view.buffer->is_lost();
}

/// What `make` gives; where memory is lacking, the error says for which weight.
template <class Make>
View fitted(const std::string& name, const TensorSpec& spec, const Device& device,
            const Make& make) {
  try {
    return make();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory) throw;
    fail(ErrorCode::out_of_memory, "parameter '{}' ({}, {} bytes) does not fit on {}: {}", name,
         to_string(spec), byte_size(spec), device.name(), error.what());
  }
}

/// Rows [first, first + count) of a matrix, where `first` begins a panel if it is packed: plain and
/// in panels of 16, what comes before takes the same bytes.
View rows_of(const View& matrix, std::int64_t first, std::int64_t count) {
  const auto& [spec, layout] = matrix.operand;
  const TensorSpec part{spec.dtype, {count, spec.shape[1]}};
  const std::size_t before = static_cast<std::size_t>(first) * row_bytes(spec.dtype, spec.shape[1]);
  const bool plain = layout.kind == LayoutKind::strided;
  return {matrix.buffer, matrix.offset + before,
          plain ? OperandSpec::contiguous(part) : OperandSpec{part, layout}};
}

View upload(const View& from, Device& device) {
  const std::size_t bytes = span_bytes(from.operand);
  View copy{device.allocate(bytes), 0, from.operand};
  write_buffer(copy.buffer, 0, {from.host(), bytes});
  return copy;
}

}  // namespace

void Parameters::Impl::set(const std::string& name, View plain,
                           std::shared_ptr<const void> mapping) {
  const std::lock_guard lock(mutex);
  entries_[name] = Entry{.plain = std::move(plain), .mapping = std::move(mapping)};
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
  const auto has = [](const auto& views, const auto& key) {
    const auto found = views.find(key);
    return found != views.end() && is_usable(found->second);
  };
  if (operand.layout.kind != LayoutKind::strided) {
    return has(entry->packed, std::pair(&device, operand.layout.kind));
  }
  return &entry->plain.buffer->device() == &device || has(entry->copies, &device);
}

Parameters::Impl::Entry& Parameters::Impl::entry_of(const std::string& name,
                                                    const TensorSpec& spec) {
  const auto it = entries_.find(name);
  require(it != entries_.end(), ErrorCode::invalid_argument,
          "parameter '{}' is not set; the graph needs {}", name, to_string(spec));
  const TensorSpec& found = it->second.plain.spec();
  require(found == spec, ErrorCode::invalid_argument, "parameter '{}' is {}; the graph needs {}",
          name, to_string(found), to_string(spec));
  return it->second;
}

View Parameters::Impl::plain(const std::string& name, const TensorSpec& spec, Device& device) {
  const std::lock_guard lock(mutex);
  Entry& entry = entry_of(name, spec);
  if (&entry.plain.buffer->device() == &device) {
    if (entry.mapping && release && byte_size(spec) <= kMostCopied) leave_mapping(entry);
    return entry.plain;
  }
  if (const View* copy = without_copying(entry, device)) return *copy;
  const View copy = fitted(name, spec, device, [&] { return upload(entry.plain, device); });
  return entry.copies[&device] = copy;
}

void Parameters::Impl::leave_mapping(Entry& entry) {
  const std::size_t bytes = byte_size(entry.plain.spec());
  const View mapped = entry.plain;
  entry.plain = {allocate_host(bytes), 0, mapped.operand};
  if (bytes > 0) std::memcpy(entry.plain.host(), mapped.host(), bytes);
  entry.mapping = nullptr;
  entry.left = {mapped.host(), bytes};
  has_left_ = true;
}

void Parameters::Impl::release_left() {
  const std::lock_guard lock(mutex);
  if (!std::exchange(has_left_, false) || !release) return;
  std::vector<std::span<const std::byte>> left;
  for (const auto& [name, entry] : entries_) {
    if (!entry.left.empty()) left.push_back(entry.left);
  }
  std::ranges::sort(left, {}, [](const auto& bytes) { return bytes.data(); });
  for (std::size_t i = 0; i < left.size();) {
    const std::byte *const begin = left[i].data(), *end = begin + left[i].size();
    while (++i < left.size() && left[i].data() <= end + page_size()) {
      end = std::max(end, left[i].data() + left[i].size());
    }
    release({begin, end});
  }
}

View Parameters::Impl::packed(const std::string& name, const OperandSpec& operand, Device& device,
                              const Pack& pack) {
  const std::lock_guard lock(mutex);
  Entry& entry = entry_of(name, operand.spec);
  View& form = entry.packed[{&device, operand.layout.kind}];
  if (is_usable(form)) return form;
  form = {};
  form = fitted(name, operand.spec, device, [&] {
    const bool here = &entry.plain.buffer->device() == &device;
    const View* copy = here ? &entry.plain : without_copying(entry, device);
    const View plain = copy ? *copy : upload(entry.plain, device);
    View result{device.allocate(span_bytes(operand)), 0, operand};
    if (here && entry.mapping && release) {
      pack_in_pieces(plain, result, pack);
      entry.left = {plain.host(), span_bytes(plain.operand)};
      has_left_ = true;
    } else {
      pack(plain, result);
    }
    return result;
  });
  return form;
}

void Parameters::Impl::pack_in_pieces(const View& plain, const View& packed,
                                      const Pack& pack) const {
  constexpr std::int64_t kPanel = 16;
  const TensorSpec& spec = packed.spec();
  const auto row = static_cast<std::int64_t>(row_bytes(spec.dtype, spec.shape[1]));
  const std::int64_t panels =
      static_cast<std::int64_t>(kMostPackedAtOnce) / std::max<std::int64_t>(1, row * kPanel);
  const std::int64_t step = std::max<std::int64_t>(1, panels) * kPanel;
  for (std::int64_t first = 0; first < spec.shape[0]; first += step) {
    const std::int64_t count = std::min(step, spec.shape[0] - first);
    const View piece = rows_of(plain, first, count);
    pack(piece, rows_of(packed, first, count));
    release({piece.host(), span_bytes(piece.operand)});
  }
}

std::function<void(const LoadProgress&)> Parameters::Impl::progress() const {
  const std::lock_guard lock(mutex);
  return progress_;
}

void Parameters::Impl::set_progress(std::function<void(const LoadProgress&)> progress) {
  const std::lock_guard lock(mutex);
  progress_ = std::move(progress);
}

// ---- Without copies

void Parameters::Impl::import_together(std::span<const std::string> names, Device& device) {
  const std::lock_guard lock(mutex);
  for (const Window& window : windows_of(to_import(names, device))) {
    if (window.entries.size() > 1) import(window, device);
  }
}

const View* Parameters::Impl::without_copying(Entry& entry, Device& device) {
  View& copy = entry.copies[&device];
  if (is_usable(copy)) return &copy;
  copy = {};  // what was lost makes room
  const Window alone{begin_of(entry.plain), end_of(entry.plain), {&entry}};
  return import(alone, device) ? &copy : nullptr;
}

std::vector<Parameters::Impl::Entry*> Parameters::Impl::to_import(
    std::span<const std::string> names, Device& device) {
  std::vector<Entry*> entries;
  for (const std::string& name : names) {
    const auto found = entries_.find(name);
    if (found == entries_.end()) continue;
    Entry& entry = found->second;
    const auto copy = entry.copies.find(&device);
    const bool there = &entry.plain.buffer->device() == &device ||
                       (copy != entry.copies.end() && is_usable(copy->second));
    if (!there) entries.push_back(&entry);
  }
  return entries;
}

std::vector<Parameters::Impl::Window> Parameters::Impl::windows_of(std::vector<Entry*> entries) {
  const auto begin = [](const Entry* entry) { return begin_of(entry->plain); };
  std::ranges::sort(entries, std::less<>(), begin);
  std::vector<Window> windows;
  for (Entry* entry : entries) {
    std::byte* const end = end_of(entry->plain);
    if (!windows.empty() && entry->mapping) {
      Window& last = windows.back();
      const bool near = begin(entry) <= last.end + kMostBetween;
      if (near && last.entries.back()->mapping == entry->mapping &&
          page_after(end) <= page_of(last.begin) + kMostImported) {
        last.end = std::max(last.end, end);
        last.entries.push_back(entry);
        continue;
      }
    }
    windows.push_back({begin(entry), end, {entry}});
  }
  return windows;
}

/// False if the device cannot, or it is not worth it.
bool Parameters::Impl::import(const Window& window, Device& device) {
  if (static_cast<std::size_t>(window.end - window.begin) < kLeastImported) return false;
  std::byte *const first = page_of(window.begin), *const last = page_after(window.end);
  const Entry& any = *window.entries.front();
  std::shared_ptr<const void> owner =
      any.mapping ? any.mapping : std::make_shared<Ref<Buffer>>(any.plain.buffer);
  const Ref<Buffer> buffer = device.import_host({first, last}, std::move(owner));
  if (!buffer) return false;
  for (Entry* entry : window.entries) {
    const auto offset = static_cast<std::size_t>(begin_of(entry->plain) - first);
    entry->copies[&device] = {buffer, offset, entry->plain.operand};
  }
  return true;
}

// ---- What users see

Parameters::Parameters() : impl_(std::make_unique<Impl>()) {}
Parameters::~Parameters() = default;

void Parameters::set(const std::string& name, const Array& value) {
  View view = contiguous(value).view();
  view.buffer->wait_for_writes();
  if (&view.buffer->device() != &cpu_device()) {  // a device that is lost takes its memory along
    const std::size_t bytes = byte_size(value.spec());
    View host{allocate_host(bytes), 0, OperandSpec::contiguous(value.spec())};
    read_buffer(view.buffer, view.offset, {host.host(), bytes});
    view = host;
  }
  impl_->set(name, std::move(view), nullptr);
}

void Parameters::set_mapped(const std::string& name, TensorSpec spec,
                            std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  require(bytes.size() == byte_size(spec), ErrorCode::invalid_argument,
          "parameter '{}': {} takes {} bytes, not {}", name, to_string(spec), byte_size(spec),
          bytes.size());
  const std::span<std::byte> memory{const_cast<std::byte*>(bytes.data()),
                                    bytes.size()};  // only read
  impl_->set(name,
             {cpu_device().import_host(memory, owner), 0, OperandSpec::contiguous(std::move(spec))},
             owner);
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
