#include "heddle/state.h"

#include "base/check.h"
#include "exec/state_use.h"
#include "exec/transfer.h"

namespace heddle {

namespace {

std::size_t bytes_of_one_row(const TensorSpec& spec) {
  TensorSpec row = spec;
  row.shape[0] = 1;
  return byte_size(row);
}

Ref<Buffer> zeros_on(Device& device, const TensorSpec& spec) {
  const std::size_t bytes = byte_size(spec);
  Ref<Buffer> buffer = device.allocate(bytes);
  clear_buffer(buffer, 0, bytes);
  return buffer;
}

/// Whether the work ended in an error; waits for it.
bool failed(const Ref<Completion>& end) {
  try {
    end->wait();
    return false;
  } catch (const Error& e) {
    if (e.code() == ErrorCode::timeout) throw;
    return true;
  }
}

}  // namespace

State::State(Device& device, TensorSpec spec, OnFailure on_failure)
    : device_(device),
      on_failure_(on_failure),
      spec_(std::move(spec)),
      buffer_(zeros_on(device_, spec_)) {}

TensorSpec State::spec() const {
  const std::lock_guard lock(mutex_);
  return spec_;
}

std::uint64_t State::generation() const {
  const std::lock_guard lock(mutex_);
  return generation_;
}

bool State::is_lost() const {
  const std::lock_guard lock(mutex_);
  return buffer_->is_lost();
}

void State::check_usable() const {
  if (buffer_->is_lost()) {
    fail(ErrorCode::device_lost,
         "state {}: it went with {} when that was lost; reset() or seed() it", to_string(spec_),
         device_.name());
  }
  if (failure_) failure_->raise();
}

void State::settle() const {
  check_usable();
  if (on_failure_ == OnFailure::fail) return buffer_->wait_for_writes();
  if (const auto write = buffer_->last_write(); write && failed(write))
    buffer_->note_write(completed());
}

void State::replace(Ref<Buffer> buffer) {
  buffer_ = std::move(buffer);
  failure_ = nullptr;
  ++generation_;
}

void State::seed(const Array& value) {
  const std::lock_guard lock(mutex_);
  require(value.spec() == spec_, ErrorCode::invalid_argument,
          "state seed: the state is {}, the value {}", to_string(spec_), to_string(value.spec()));
  const std::vector<std::byte> bytes = value.to_bytes();
  Ref<Buffer> buffer = device_.allocate(bytes.size());
  write_buffer(buffer, 0, bytes);
  replace(std::move(buffer));
}

void State::reset() {
  const std::lock_guard lock(mutex_);
  replace(zeros_on(device_, spec_));
}

void State::grow(std::int64_t rows) {
  const std::lock_guard lock(mutex_);
  require(!spec_.shape.empty() && rows >= spec_.shape[0], ErrorCode::invalid_argument,
          "state grow: the state is {}, which cannot shrink to {} rows", to_string(spec_), rows);
  settle();
  TensorSpec grown = spec_;
  grown.shape[0] = rows;
  Ref<Buffer> buffer = zeros_on(device_, grown);
  copy_buffer(buffer_, 0, buffer, 0, byte_size(spec_));
  spec_ = grown;
  replace(std::move(buffer));
}

void State::copy_rows(std::int64_t from, std::int64_t to, std::int64_t count) {
  const std::lock_guard lock(mutex_);
  const std::int64_t rows = spec_.shape.empty() ? 0 : spec_.shape[0];
  require(0 <= from && 0 <= to && 0 <= count && from + count <= rows && to + count <= rows &&
              (from + count <= to || to + count <= from),
          ErrorCode::invalid_argument, "state copy_rows: {} rows from {} to {} of {}", count, from,
          to, to_string(spec_));
  settle();
  const std::size_t row = bytes_of_one_row(spec_);
  copy_buffer(buffer_, static_cast<std::size_t>(from) * row, buffer_,
              static_cast<std::size_t>(to) * row, static_cast<std::size_t>(count) * row);
}

Array State::read() const {
  const TensorSpec whole = spec();
  if (!whole.shape.empty()) return read_rows(0, whole.shape[0]);
  const std::lock_guard lock(mutex_);
  settle();
  std::vector<std::byte> bytes(byte_size(whole));
  read_buffer(buffer_, 0, bytes);
  return Array::from_bytes(whole, bytes);
}

Array State::read_rows(std::int64_t begin, std::int64_t end) const {
  const std::lock_guard lock(mutex_);
  require(!spec_.shape.empty() && 0 <= begin && begin <= end && end <= spec_.shape[0],
          ErrorCode::invalid_argument, "state read: rows {} to {} of {}", begin, end,
          to_string(spec_));
  settle();
  TensorSpec rows = spec_;
  rows.shape[0] = end - begin;
  std::vector<std::byte> bytes(byte_size(rows));
  read_buffer(buffer_, static_cast<std::size_t>(begin) * bytes_of_one_row(spec_), bytes);
  return Array::from_bytes(std::move(rows), bytes);
}

StateUse::StateUse(Ref<State> state) : state_(std::move(state)), lock_(state_->mutex_) {
  state_->check_usable();
}

/// With OnFailure::keep what becomes of the rest of the run is no matter, but for its errors, which
/// are its own: so work that hangs on another device does not hold up the state.
void StateUse::note(const Ref<Completion>& run, const Ref<Completion>& own, bool write) {
  const Ref<Completion>& end = keeps_on_failure() ? own : run;
  if (!end) return;
  write ? buffer()->note_write(end) : buffer()->note_read(end);
}

void StateUse::fail(std::shared_ptr<const Failure> failure) {
  if (!keeps_on_failure()) state_->failure_ = std::move(failure);
}

}  // namespace heddle
