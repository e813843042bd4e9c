// The Vulkan device: memory, streams, recordings.
#include "heddle/array.h"
#include "heddle/ops.h"
#include "support/conformance.h"
#include "device/vulkan/vulkan_device.h"

namespace heddle::test {
namespace {

TEST_F(Vulkan, AddsTwoTensors) {
  Random random(1);
  expect_conformance(device(), Binary{BinaryKind::add},
                     {random_tensor(DType::f32, {3, 5}, random),
                      random_tensor(DType::f32, {3, 5}, random)});
}

}  // namespace
}  // namespace heddle::test
