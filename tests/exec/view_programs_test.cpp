// Random programs of views through Graph and Plan, and lazily on the asynchronous device.
#include "exec_test_support.h"
#include "support/view_program.h"

namespace heddle::test {
namespace {

/// A graph of a program on inputs named in0, in1, whose kept values are its outputs out0, ...
struct Compiled {
  ViewProgram program;
  Graph graph;
  NamedBytes bound;
  std::vector<std::pair<std::string, TensorSpec>> specs;  // of the inputs

  explicit Compiled(unsigned seed, const std::vector<Device*>& devices) : program(seed) {
    GraphBuilder builder;
    for (int i = 0; i < 2; ++i) {
      const std::string name = "in" + std::to_string(i);
      ViewProgram::Base base = program.make_base();
      bound[name] = base.bytes;
      const Array array = builder.input(name, base.spec);
      program.add(array, std::move(base));
      specs.emplace_back(name, array.spec());
    }
    for (int part = 0; part < 3; ++part) {
      const DeviceScope scope(*devices[(seed + static_cast<unsigned>(part)) % devices.size()]);
      program.grow(1 + static_cast<int>(seed % 8));
    }
    for (std::size_t i = 0; i < program.values().size(); ++i) {
      builder.output("out" + std::to_string(i), program.values()[i].array);
    }
    graph = builder.build();
  }

  std::vector<NamedTensor> inputs() const {
    std::vector<NamedTensor> tensors;
    for (const auto& [name, spec] : specs)
      tensors.push_back({name, HostTensor(spec, bound.at(name))});
    return tensors;
  }
};

void expect_row(const Executable& executable, const std::string& name, const Known& known) {
  if (known.spec.shape.empty() || known.spec.shape[0] == 0) return;
  const std::int64_t row = known.spec.shape[0] - 1;
  const OutputRequest request{name, row};
  const std::vector<std::byte> got = executable.outputs(std::span(&request, 1)).at(0).to_bytes();
  const std::vector<std::byte> wanted(known.bytes.end() - std::ssize(got), known.bytes.end());
  ASSERT_EQ(got.size() * static_cast<std::size_t>(row + 1), known.bytes.size());
  EXPECT_TRUE(got == wanted) << name << " row " << row;
}

void run_compiled(unsigned seed, const std::vector<Device*>& devices) {
  SCOPED_TRACE(seed);
  const Compiled made(seed, devices);
  SCOPED_TRACE(made.program.text());
  const Interpreted meant = interpret(made.graph, made.bound);
  std::vector<Device*> others = devices;
  std::erase(others, &cpu_device());
  const auto executable = compiled(made.graph, others);
  for (int run = 0; run < 2; ++run) {
    executable->run(made.inputs());
    for (std::size_t i = 0; i < made.program.values().size(); ++i) {
      const Known& known = made.program.values()[i];
      const std::string name = "out" + std::to_string(i);
      ASSERT_TRUE(meant.outputs.at(name) == known.bytes) << name;
      ASSERT_TRUE(executable->output(name).to_bytes() == known.bytes) << name << " run " << run;
      expect_row(*executable, name, known);
    }
  }
}

TEST(ViewPrograms, CompiledForTheCpu) {
  for (unsigned seed = 0; seed < 600 && !testing::Test::HasFailure(); ++seed) {
    run_compiled(seed, {&cpu_device()});
  }
}

TEST(ViewPrograms, CompiledForAnAsynchronousDevice) {
  for (const bool hidden : {false, true}) {
    AsyncOptions options;
    options.hides_local = hidden;
    options.delay = std::chrono::microseconds(0);
    AsyncDevice device(options);
    for (unsigned seed = 1000; seed < 1200 && !testing::Test::HasFailure(); ++seed) {
      run_compiled(seed, {&device});
      run_compiled(seed, {&device, &cpu_device()});
    }
    EXPECT_GT(device.kernels(), 100u);
  }
}

TEST(ViewPrograms, CompiledForADeviceThatLacksTheirKernels) {
  AsyncOptions options = accepting("few", {"contiguous", "concatenate", "bitwise_xor"});
  options.delay = std::chrono::microseconds(0);
  AsyncDevice device(options);
  for (unsigned seed = 2000; seed < 2200 && !testing::Test::HasFailure(); ++seed) {
    const Compiled made(seed, {&cpu_device()});
    SCOPED_TRACE(made.program.text());
    Graph graph = made.graph;
    for (GraphNode& node : graph.nodes) node.pin = nullptr;
    const auto executable = compiled(graph, {&device});
    executable->run(made.inputs());
    for (std::size_t i = 0; i < made.program.values().size(); ++i) {
      const std::string name = "out" + std::to_string(i);
      ASSERT_TRUE(executable->output(name).to_bytes() == made.program.values()[i].bytes) << name;
    }
  }
}

TEST(ViewPrograms, LazilyOnAnAsynchronousDevice) {
  for (const bool hidden : {false, true}) {
    AsyncOptions options;
    options.hides_local = hidden;
    options.delay = std::chrono::microseconds(0);
    AsyncDevice device(options);
    const DeviceScope scope(device);
    for (unsigned seed = 3000; seed < 3300 && !testing::Test::HasFailure(); ++seed) {
      SCOPED_TRACE(seed);
      ViewProgram program(seed);
      ViewProgram::Base base = program.make_base();
      const Array array = Array::from_bytes(base.spec, base.bytes);
      program.add(array, std::move(base));
      for (int part = 0; part < 3; ++part) {
        program.grow(1 + static_cast<int>(seed % 8));
        program.values().front().array.eval();
      }
      for (const Known& known : program.values()) {
        ASSERT_TRUE(known.array.to_bytes() == known.bytes) << program.text();
      }
    }
  }
}

}  // namespace
}  // namespace heddle::test
