// A graph that uses all that can go wrong on a device, for tests in which something does.
#pragma once

#include "exec_test_support.h"

namespace heddle::test {

/// CPU, device, CPU, device: with a state on each, a feed, and a weight packed on the device.
inline Graph pipeline() {
  GraphBuilder builder;
  const Array x = builder.input("x", f32({4, 32})), rows = builder.input("rows", i32({4}));
  const Array fed = builder.input("fed", f32({4, 32}));
  const Array w = builder.parameter("w", f32({32, 32}));
  Array there = builder.state("there", f32({6, 32})), here = builder.state("here", f32({6, 32}));
  const Array a = linear(tanh(x + fed), w);
  here = write_rows(here, tanh(a), rows);
  there = write_rows(there, silu(take(here, rows, 0)), rows);
  const Array y = tanh(silu(a)) + x;
  builder.output("y", y);
  builder.update("there", there);
  builder.update("here", here);
  builder.feed(fed, y, FeedKind::whole);
  return builder.build();
}

/// The pipeline on an asynchronous device that hides its memory, and what its runs should leave.
class Pipeline : public testing::Test {
 protected:
  Pipeline() : device_(options()) {
    std::mt19937 random(11);
    x_ = random_floats(random, 4 * 32);
    weights_ = random_floats(random, 32 * 32);
    parameters_->set("w", Array(weights_, {32, 32}));
    bound_ = {{"x", bytes_of(x_)},          {"rows", bytes_of(rows_)},
              {"w", bytes_of(weights_)},    {"fed", Bytes(4 * 32 * 4)},
              {"there", Bytes(6 * 32 * 4)}, {"here", Bytes(6 * 32 * 4)}};
    expected_ = interpret(graph_, bound_, 2);
  }

  static AsyncOptions options() {
    AsyncOptions options =
        accepting("async", {"silu", "linear", "repack", "write_rows", "gather_rows"});
    options.hides_local = true;
    options.packs = true;
    options.delay = std::chrono::microseconds(0);
    return options;
  }

  std::shared_ptr<Executable> make() { return compiled(graph_, {&device_}, parameters_); }

  void run(Executable& executable) {
    executable.run({given("x", x_, {4, 32}), given("rows", rows_, {4})});
  }
  void expect_run(Executable& executable, int runs_before) {
    run(executable);
    expect_near(executable.output("y").to_bytes(), expected_[runs_before].outputs.at("y"), "y");
    for (const char* name : {"there", "here"}) {
      expect_near(executable.state(name)->read().to_bytes(), expected_[runs_before].states.at(name),
                  name);
    }
  }
  static void reset(Executable& executable) {
    for (const char* name : {"there", "here", "fed"}) executable.state(name)->reset();
  }

  AsyncDevice device_;
  const Graph graph_ = pipeline();
  Ref<Parameters> parameters_ = make_ref<Parameters>();
  std::vector<float> x_, weights_;
  const std::vector<std::int32_t> rows_{4, 0, 2, 5};
  NamedBytes bound_;
  std::vector<Interpreted> expected_;
};

}  // namespace heddle::test
