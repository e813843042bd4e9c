#include "device/on_device.h"

namespace heddle::test {

std::vector<Subject> subjects() {
  return {{"cpu", [] { return &cpu_device(); }}};
}

}  // namespace heddle::test
