// Rows of conformance tests that run on any device: on those that `subjects()` of the program
// names.
//
// A row is a TEST_P of a suite that is an OnDevice; HEDDLE_ON_DEVICES(Suite) makes it run. It asks
// `expect_on_device`, which runs an op on the device in turn and compares with the reference.
#pragma once

#include <string>
#include <vector>

#include "device/cpu_levels.h"

namespace heddle::test {

/// A device that rows run on, and what is known of it.
struct Subject {
  std::string name;   // letters, digits and underscores
  Device* (*find)();  // null where this machine has none
  /// Kernels take long to compile there: of alike cases only some are run.
  bool sampled = false;
  /// The units in the last place that results of several roundings may be off, as a multiple of the
  /// CPU's.
  double leeway = 1;
  /// Whether the device may have no kernel for the op. What it refuses else is a failure.
  bool (*may_refuse)(const Op& op, const std::vector<Tensor>& inputs) = nullptr;
};
void PrintTo(const Subject& subject, std::ostream* out);

/// The devices of this test program, which defines it. They are looked for as tests begin.
std::vector<Subject> subjects();

/// Runs each test on the parameter's device, or skips it where there is no such device.
class OnDevice : public testing::TestWithParam<Subject> {
 protected:
  void SetUp() override;
  void TearDown() override;
};
std::string test_name(const testing::TestParamInfo<Subject>& info);
#define HEDDLE_ON_DEVICES(Suite) \
  INSTANTIATE_TEST_SUITE_P(On, Suite, testing::ValuesIn(subjects()), heddle::test::test_name)

// ---- For tests that are running

const Subject& subject();
Device& device();
bool on_cpu();

/// Whether the device has no kernel for the op and need not have one.
bool is_left_out(const Op& op, const std::vector<Tensor>& inputs);
/// As expect_conformance, with the device's leeway. What it may refuse is left out.
void expect_on_device(const Op& op, const std::vector<Tensor>& inputs, Tolerance tolerance = {});
/// As expect_rows_alone.
void expect_rows_alone_on_device(const Op& op, const std::vector<Tensor>& inputs);
/// That running the op fails with `code`. On the CPU the error says all of `words`; other devices
/// find out as their work ends, and name the op alone.
void expect_failure_on_device(const Op& op, const std::vector<Tensor>& inputs, ErrorCode code,
                              const std::vector<std::string>& words = {});

/// At every level of instructions of the CPU; elsewhere once.
template <class F>
void at_every_level_on_device(const F& f) {
  if (on_cpu()) return at_every_level(f);
  f();
}

/// All of the cases, or where they are sampled at most `few`, other ones each time.
template <class Cases>
auto sample(const Cases& cases, std::size_t few = 1) {
  std::vector all(std::begin(cases), std::end(cases));
  if (!subject().sampled || all.size() <= few) return all;
  static std::size_t next = 0;
  decltype(all) some;
  for (std::size_t i = 0; i < few; ++i) some.push_back(all[next++ % all.size()]);
  return some;
}

}  // namespace heddle::test
