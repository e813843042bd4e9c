#include "array/batches.h"

#include <algorithm>
#include <utility>

#include "array/in_flight.h"
#include "base/check.h"

namespace heddle {

namespace {

// A batch goes out at whichever comes first. Larger ones save submissions, smaller ones start the
// device sooner and hold less memory.
constexpr std::size_t kBatchLaunches = 64;
constexpr std::size_t kBatchBytes = std::size_t{256} << 20;
constexpr std::size_t kSpareBuffers = 32;

[[noreturn]] void inherit(const Failure& failure) {
  throw InheritedError(failure.code, failure.message);
}

void wait_and_inherit(Completion& work) {
  try {
    work.wait();
  } catch (const Error& error) {
    throw InheritedError(error.code(), error.what());
  }
}

}  // namespace

Batch& Batches::of(Device& device, const Ref<Stream>& stream) {
  for (Batch& batch : batches_) {
    if (stream ? batch.stream == stream : batch.by_default && batch.device == &device) return batch;
  }
  if (!stream) {
    Batch& batch = of(device, device.default_stream());
    batch.by_default = true;
    return batch;
  }
  Batch& batch = batches_.emplace_back();
  batch.device = &device;
  batch.stream = stream;
  batch.on_cpu = &device == &cpu_device();
  return batch;
}

Batch* Batches::writing(const Buffer& buffer) noexcept {
  for (Batch& batch : batches_) {
    if (batch.open && batch.writes.contains(&buffer)) return &batch;
  }
  return nullptr;
}

// ---- Order

void Batches::open(Batch& batch) {
  if (batch.on_cpu || batch.open) return;
  if (failure_) inherit(*failure_);
  batch.open = true;
  try {
    // In order on its stream in any case; the wait carries the error of the batch before.
    order(batch, batch.last_end);
  } catch (...) {
    abandon(batch, failure_of(std::current_exception()));
    throw;
  }
}

/// Makes what the batch does next come after `work`, whose error it takes over. On the CPU the
/// caller waits, so that an error is one node's alone.
void Batches::order(Batch& batch, const Ref<Completion>& work) {
  if (!work) return;
  if (batch.on_cpu || work->done()) return wait_and_inherit(*work);
  open(batch);  // so that the wait goes out with it, whatever becomes of the node
  try {
    batch.stream->wait_for(work);
  } catch (...) {
    abandon(batch, failure_of(std::current_exception()));
    throw;
  }
}

void Batches::order_after_writes(Batch& batch, const Buffer& buffer) {
  for (Batch& other : batches_) {
    if (&other != &batch && other.open && other.writes.contains(&buffer)) submit_or_throw(other);
  }
  order(batch, buffer.last_write());
}

void Batches::order_after_uses(Batch& batch, const Buffer& buffer) {
  for (Batch& other : batches_) {
    const bool uses = other.writes.contains(&buffer) || other.reads.contains(&buffer);
    if (&other != &batch && other.open && uses) submit_or_throw(other);
  }
  for (const Ref<Completion>& use : buffer.last_uses()) order(batch, use);
}

void Batches::throw_known_error(const Buffer& buffer) {
  const Ref<Completion> write = buffer.last_write();
  if (write && write->done()) wait_and_inherit(*write);
}

/// What is read within the batch that wrote it, or by its only owner, needs no note; nor does what
/// the CPU has read by now.
void Batches::note_read(Batch& batch, const Ref<Buffer>& buffer, bool only_owner) {
  if (batch.on_cpu || only_owner || batch.writes.contains(buffer.get())) return;
  batch.reads.emplace(buffer.get(), buffer);
}

void Batches::note_write(Batch& batch, const Ref<Buffer>& buffer) {
  if (!batch.on_cpu) batch.writes.emplace(buffer.get(), buffer);
}

std::int64_t Batches::handles_on(const Buffer& buffer) const noexcept {
  std::int64_t handles = 0;
  for (const Batch& batch : batches_) {
    handles += batch.reads.contains(&buffer) + batch.writes.contains(&buffer);
  }
  return handles;
}

// ---- Memory

Ref<Buffer> Batches::take_spare(Batch& batch, std::size_t bytes) {
  const std::size_t most = bytes + bytes / 4;  // larger ones would be held for too little
  auto best = batch.spare.end();
  for (auto at = batch.spare.begin(); at != batch.spare.end(); ++at) {
    const std::size_t size = (*at)->size();
    if (size < bytes || size > most) continue;
    if (best == batch.spare.end() || size < (*best)->size()) best = at;
  }
  if (best == batch.spare.end()) return nullptr;
  Ref<Buffer> found = std::move(*best);
  batch.spare.erase(best);
  return found;
}

/// Later work of the stream comes after all that it did to the memory; what other streams do to it
/// must have ended.
void Batches::recycle(Batch& batch, Ref<Buffer> buffer) {
  if (batch.on_cpu || &buffer->device() != batch.device) return;
  if (buffer->use_count() >
      1 + batch.reads.contains(buffer.get()) + batch.writes.contains(buffer.get())) {
    return;
  }
  for (const Ref<Completion>& use : buffer->last_uses()) {
    if (use != batch.last_end && !use->done()) return;
  }
  if (batch.spare.size() == kSpareBuffers) batch.spare.erase(batch.spare.begin());
  batch.spare.push_back(std::move(buffer));
}

Ref<Buffer> Batches::allocate(Batch& batch, std::size_t bytes) {
  if (Ref<Buffer> spare = take_spare(batch, bytes)) return spare;
  return allocate(*batch.device, bytes, MemoryKind::local);
}

Ref<Buffer> Batches::allocate(Device& device, std::size_t bytes, MemoryKind kind) {
  bool gave_back = false;
  for (;;) {
    try {
      return device.allocate(bytes, kind);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::out_of_memory) throw;
      if (std::exchange(gave_back, true) && !in_flight::wait_for_oldest(device)) throw;
    }
    give_back(device);
  }
}

/// Lets go of memory that this evaluation could do without.
void Batches::give_back(Device& device) noexcept {
  for (Batch& batch : batches_) {
    if (batch.device != &device) continue;
    submit(batch);
    batch.spare.clear();
    batch.scratch = nullptr;
  }
}

// ---- Submission

void Batches::join(Batch& batch, const Ref<Node>& node) {
  batch.nodes.push_back(node);
  for (std::uint32_t i = 0; i < node->output_count(); ++i) {
    batch.bytes += span_bytes(node->result(i).operand);
  }
  if (batch.launches >= kBatchLaunches || batch.bytes >= kBatchBytes) submit(batch);
}

void Batches::release(Array input) noexcept {
  const Node& node = *input.node();
  constexpr std::int64_t kHereAndInBatch = 2;
  if (node.state() != Node::State::running || node.use_count() != kHereAndInBatch) return;
  for (Batch& batch : batches_) {
    const auto found = std::ranges::find(batch.nodes, input.node());
    if (found == batch.nodes.end()) continue;
    std::swap(*found, batch.nodes.back());
    batch.nodes.pop_back();
    return;
  }
}

void Batches::note_end(const Batch& batch, const Ref<Completion>& end) {
  for (const auto& [key, buffer] : batch.writes) buffer->note_write(end);
  for (const auto& [key, buffer] : batch.reads) buffer->note_read(end);
}

std::shared_ptr<const Failure> Batches::submit(Batch& batch) noexcept {
  if (!batch.open) return nullptr;
  try {
    in_flight::make_room(*batch.stream);
    const Ref<Completion> end = batch.stream->submit();
    if (end->done()) {
      end->wait();
    } else {
      note_end(batch, end);
      in_flight::add(*batch.stream, end);
      batch.last_end = end;
    }
  } catch (...) {
    if (!failure_) failure_ = failure_of(std::current_exception());
  }
  if (failure_) {
    abandon(batch, failure_);
  } else {
    for (const Ref<Node>& node : batch.nodes) node->publish();
    reset(batch);
  }
  return failure_;
}

void Batches::abandon(Batch& batch, std::shared_ptr<const Failure> failure) noexcept {
  if (batch.on_cpu) return;
  for (const Ref<Node>& node : batch.nodes) node->fail(failure);
  reset(batch);
  batch.spare.clear();
  if (!failure_) failure_ = std::move(failure);
}

void Batches::reset(Batch& batch) noexcept {
  batch.open = false;
  batch.launches = batch.bytes = 0;
  batch.nodes.clear();
  batch.reads.clear();
  batch.writes.clear();
}

void Batches::submit_or_throw(Batch& batch) {
  if (const auto failure = submit(batch)) inherit(*failure);
}

void Batches::submit_all() noexcept {
  for (Batch& batch : batches_) submit(batch);
}

}  // namespace heddle
