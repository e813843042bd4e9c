// A line through points, found by going down the gradient of its squared error, one compiled step
// at a time.
#include <heddle/compile.h>
#include <heddle/random.h>

#include <iostream>

using namespace heddle;

struct Line {
  Array slope = 0.0f, offset = 0.0f;
  auto leaves() const { return std::tie(slope, offset); }
};

Array squared_error(const Line& line, const Array& x, const Array& y) {
  return mean(square(line.slope * x + line.offset - y));
}

int main() {
  const Array x = random::uniform({256}, DType::f32, random::key(1));
  const Array y = 3.0f * x - 1.0f + 0.1f * random::normal({256}, DType::f32, random::key(2));

  Line line;
  const ArraysFunction step = compile(
      [&](const std::vector<Array>& points) {
        const auto [error, slopes] = value_and_grad(squared_error, line, points[0], points[1]);
        line.slope = line.slope - 0.5f * slopes.slope;
        line.offset = line.offset - 0.5f * slopes.offset;
        return std::vector<Array>{error};
      },
      false, {&line.slope, &line.offset});

  Array error = 0.0f;
  for (int i = 0; i < 200; ++i) error = step({x, y})[0];
  std::cout << line.slope << " x + " << line.offset << ", squared error " << error << "\n";
}
