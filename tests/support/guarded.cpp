#include "support/guarded.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

namespace heddle::test {

namespace {

/// Pages with an inaccessible one on either side.
class GuardedPages {
 public:
  explicit GuardedPages(std::size_t bytes)
      : page_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))),
        inner_((std::max<std::size_t>(bytes, 1) + page_ - 1) / page_ * page_) {
    void* all = ::mmap(nullptr, inner_ + 2 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) throw std::bad_alloc();
    all_ = static_cast<std::byte*>(all);
    ::mprotect(begin(), inner_, PROT_READ | PROT_WRITE);
  }
  ~GuardedPages() { ::munmap(all_, inner_ + 2 * page_); }
  GuardedPages(const GuardedPages&) = delete;
  GuardedPages& operator=(const GuardedPages&) = delete;

  std::byte* begin() const { return all_ + page_; }
  std::byte* end() const { return begin() + inner_; }
  void make_read_only() { ::mprotect(begin(), inner_, PROT_READ); }

 private:
  const std::size_t page_, inner_;
  std::byte* all_;
};

}  // namespace

Ref<Buffer> guarded_buffer(Device& device, std::span<const std::byte> bytes, Flush flush,
                           bool read_only) {
  if (bytes.empty()) return nullptr;
  auto pages = std::make_shared<GuardedPages>(bytes.size());
  const std::size_t alignment = device.alignment();
  const std::size_t room = (bytes.size() + alignment - 1) / alignment * alignment;
  std::byte* at = flush == Flush::front ? pages->begin() : pages->end() - room;
  std::memcpy(at, bytes.data(), bytes.size());
  if (read_only) pages->make_read_only();
  return device.import_host({at, bytes.size()}, pages);
}

}  // namespace heddle::test
