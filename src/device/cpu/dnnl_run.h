// Running oneDNN's primitives on our threads.
#pragma once

#include <cstddef>
#include <oneapi/dnnl/dnnl.hpp>

// As omp.h has them; Debian's clang brings that header in a package of its own.
extern "C" int omp_get_max_threads();
extern "C" void omp_set_num_threads(int);

namespace heddle::cpu {

inline constexpr std::size_t kDnnlAlignment = 64;  // of memory that primitives work in

inline std::size_t dnnl_aligned(std::size_t bytes) {
  return (bytes + kDnnlAlignment - 1) / kDnnlAlignment * kDnnlAlignment;
}

/// oneDNN's build uses OpenMP. Our pool hands out the slices, so that each call must keep to its
/// thread; the caller's own setting comes back afterwards.
class OneOpenMpThread {
 public:
  OneOpenMpThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneOpenMpThread() { omp_set_num_threads(before_); }
  OneOpenMpThread(const OneOpenMpThread&) = delete;
  OneOpenMpThread& operator=(const OneOpenMpThread&) = delete;

 private:
  int before_;
};

inline dnnl::engine& dnnl_engine() {
  static dnnl::engine& cpu = *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return cpu;
}

inline dnnl::stream& dnnl_thread_stream() {
  thread_local dnnl::stream stream(dnnl_engine());
  return stream;
}

}  // namespace heddle::cpu
