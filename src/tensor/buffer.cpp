#include "heddle/buffer.h"

#include <utility>

namespace heddle {

void Buffer::note_write(Ref<Completion> end) {
  // Dropped outside the lock: the last Ref of a completion may free a submission's buffers.
  std::vector<Ref<Completion>> reads;
  const std::lock_guard lock(mutex_);
  std::swap(reads, reads_);
  std::swap(write_, end);
  noted_.store(true, std::memory_order_release);
}

void Buffer::note_read(Ref<Completion> end) {
  std::vector<Ref<Completion>> ended;
  const std::lock_guard lock(mutex_);
  std::erase_if(reads_, [&](Ref<Completion>& read) {
    if (!read->done()) return false;
    ended.push_back(read);
    return true;
  });
  reads_.push_back(std::move(end));
  noted_.store(true, std::memory_order_release);
}

Ref<Completion> Buffer::last_write() const {
  if (!noted_.load(std::memory_order_acquire)) return nullptr;
  const std::lock_guard lock(mutex_);
  return write_;
}

std::vector<Ref<Completion>> Buffer::last_uses() const {
  if (!noted_.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(mutex_);
  std::vector<Ref<Completion>> uses = reads_;
  if (write_) uses.insert(uses.begin(), write_);
  return uses;
}

void Buffer::wait_for_writes() const {
  if (const Ref<Completion> write = last_write()) write->wait();
  check_alive();
}

void Buffer::wait_for_uses() const {
  for (const Ref<Completion>& use : last_uses()) use->wait();
  check_alive();
}

}  // namespace heddle
