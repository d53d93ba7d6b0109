#pragma once
#include <string>
#include <utility>
#include <vector>

namespace alpa {

/// Lines over logarithmic axes.
struct LinePlot {
  struct Line {
    std::string name;
    std::vector<std::pair<double, double>> points;  ///< more than 0
  };
  std::string title, x_name, y_name;
  std::vector<double> x_marks;  ///< at the axis
  std::vector<Line> lines;      ///< one at least has points
};

/// An SVG image of plots below each other, each with its legend.
std::string svg_of(const std::vector<LinePlot>&);

}  // namespace alpa
