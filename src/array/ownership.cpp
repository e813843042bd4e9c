#include "array/ownership.h"

#include <atomic>

namespace heddle {

namespace {

std::atomic<int> scopes{0};

}  // namespace

NoDonation::NoDonation() noexcept {
  ++scopes;
}
NoDonation::~NoDonation() {
  --scopes;
}
bool NoDonation::active() noexcept {
  return scopes.load(std::memory_order_relaxed) > 0;
}

}  // namespace heddle
