// That the oracle sees what differs.
#include "numpy_oracle.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include "heddle/error.h"

namespace heddle::test {
namespace {

TEST(NumpyOracle, SeesWhatDiffers) {
  if (!numpy_is_there()) GTEST_SKIP() << "skipped: python3 with numpy is not there";
  EXPECT_NONFATAL_FAILURE(expect_numpy_agrees({NUMPY("f32[1]", "a + 1e-5", a)}), "but NumPy's is");
  EXPECT_NONFATAL_FAILURE(expect_numpy_agrees({NUMPY("complex64[1]", "a.conj()", a)}),
                          "but NumPy's is");
  EXPECT_NONFATAL_FAILURE(expect_numpy_agrees({NUMPY("i32[1]", "a + 1", a)}), "Expected equality");
  EXPECT_NONFATAL_FAILURE(expect_numpy_agrees({NUMPY("f32[3]", "nothing", a)}), "NumPy says");
  EXPECT_NONFATAL_FAILURE(expect_numpy_agrees({NUMPY("f32[3]", "a", reshape(a, {2}))}), "threw");
  EXPECT_FATAL_FAILURE(expect_numpy_agrees({NUMPY("f32[1]", "a > 9", a)}), "NumPy's is bool");
  EXPECT_FATAL_FAILURE(expect_numpy_agrees({NUMPY("f32[3]", "a[None]", a)}), "f32[3]");
}

}  // namespace
}  // namespace heddle::test
