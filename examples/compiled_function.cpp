// A compiled function with a state: a running mean, kept between runs and updated in place.
#include <heddle/executable.h>
#include <heddle/ops.h>

#include <iostream>
#include <vector>

int main() {
  using namespace heddle;
  const TensorSpec spec{DType::f32, {4}};

  GraphBuilder builder;
  const Array sample = builder.input("sample", spec);
  const Array mean = builder.input("mean", spec);  // read from the state of the same name
  const Array next = mean + (sample - mean) * 0.1f;
  builder.output("mean", next);
  builder.feed(mean, next, FeedKind::whole);

  const auto executable = Executable::compile(builder.build());
  const std::vector<float> ones(4, 1.0f);
  for (int i = 0; i < 10; ++i) executable->run({{"sample", {ones, {4}}}});
  std::cout << executable->output("mean") << "\n";
}
