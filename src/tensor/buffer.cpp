#include "heddle/buffer.h"

#include <utility>

#include "heddle/error.h"

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
  std::vector<Ref<Completion>> uses;
  if (write_) uses.push_back(write_);
  // A read that failed left the memory as it was: once it has ended, it is nobody's matter.
  for (const Ref<Completion>& read : reads_) {
    if (!read->done()) uses.push_back(read);
  }
  return uses;
}

void Buffer::wait_for_writes() const {
  if (const Ref<Completion> write = last_write()) write->wait();
  check_alive();
}

void Buffer::wait_for_uses() const {
  const Ref<Completion> write = last_write();
  for (const Ref<Completion>& use : last_uses()) {
    try {
      use->wait();
    } catch (const Error&) {
      if (use == write || !use->done()) throw;
    }
  }
  check_alive();
}

}  // namespace heddle
