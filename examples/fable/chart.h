// Loss curves as an SVG file that needs nothing else.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace fable {

struct Curve {
  std::string name, color;
  std::vector<std::pair<double, double>> points;  // (step, loss); losses are positive
};

/// With axes, a grid, a logarithmic scale for losses, and a legend. Curves may be empty.
std::string loss_chart(const std::string& title, const std::vector<Curve>& curves);

}  // namespace fable
