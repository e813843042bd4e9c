# Everything heddle links. Debian's package names are in scripts/packages.txt.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(dnnl REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8>=10.40)
pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy)
find_library(HEDDLE_KISSFFT kissfft-float REQUIRED)
# The reference LAPACK and BLAS, as archives: what Debian's alternatives put behind the shared
# libraries may have threads of its own, and other bits on other machines.
find_library(HEDDLE_LAPACK liblapack.a PATH_SUFFIXES lapack REQUIRED)
find_library(HEDDLE_BLAS libblas.a PATH_SUFFIXES blas REQUIRED)
find_library(HEDDLE_FORTRAN libgfortran.so.5 REQUIRED)  # their runtime
pkg_check_modules(HWY_CONTRIB REQUIRED IMPORTED_TARGET libhwy-contrib)
find_package(CLI11 REQUIRED)
find_package(Boost 1.74 REQUIRED)  # headers only: Asio and Beast, for the server
pkg_check_modules(LIBEDIT IMPORTED_TARGET libedit)  # for heddle chat, which also does without
if(HEDDLE_TESTS)
  find_package(GTest REQUIRED)
  find_package(rapidcheck REQUIRED)
endif()
if(HEDDLE_BENCH)
  find_package(benchmark QUIET)
endif()
