#include "tests/commands/line_plot.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace alpa {
namespace {

constexpr int kPlotWidth = 720, kPlotHeight = 300, kPlotLeft = 80, kPlotRight = 190, kPlotTop = 40,
              kPlotBottom = 45;
constexpr const char* kColors[] = {"#1f77b4", "#ff7f0e", "#2ca02c", "#d62728",
                                   "#9467bd", "#8c564b", "#000000", "#7f7f7f"};

struct LogAxis {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  int from = 0, to = 0;  ///< pixels

  void take(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  double at(double value) const {
    return high > low ? from + (to - from) * std::log(value / low) / std::log(high / low) : from;
  }
};

/// 1, 2 and 5 times powers of ten within the axis.
std::vector<double> marks_of(const LogAxis& axis) {
  std::vector<double> marks;
  for (double power = std::pow(10, std::floor(std::log10(axis.low))); power <= axis.high; power *= 10)
    for (const double mark : {power, 2 * power, 5 * power})
      if (mark >= axis.low && mark <= axis.high) marks.push_back(mark);
  return marks;
}

std::string svg_text(double x, double y, const std::string& text, const char* anchor = "middle") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, text);
}

std::string svg_of(const LinePlot& plot, int top) {
  LogAxis x{.from = kPlotLeft, .to = kPlotWidth - kPlotRight},
      y{.from = top + kPlotHeight - kPlotBottom, .to = top + kPlotTop};
  for (const LinePlot::Line& line : plot.lines)
    for (const auto& [px, py] : line.points) x.take(px), y.take(py);
  y.low /= 1.1, y.high *= 1.1;
  std::string text = svg_text((x.from + x.to) / 2.0, top + kPlotTop - 14, plot.title) +
                     svg_text((x.from + x.to) / 2.0, y.from + 34, plot.x_name) +
                     svg_text(x.from, top + kPlotTop - 14, plot.y_name);
  const auto grid = [&](double x1, double y1, double x2, double y2) {
    text += fmt::format("<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\" stroke=\"#ddd\"/>\n", x1, y1, x2, y2);
  };
  for (const double mark : plot.x_marks) {
    grid(x.at(mark), y.from, x.at(mark), y.to);
    text += svg_text(x.at(mark), y.from + 16, fmt::format("{:g}", mark));
  }
  for (const double mark : marks_of(y)) {
    grid(x.from, y.at(mark), x.to, y.at(mark));
    text += svg_text(x.from - 6, y.at(mark) + 4, fmt::format("{:g}", mark), "end");
  }
  for (std::size_t l = 0; l < plot.lines.size(); ++l) {
    const char* color = kColors[l % std::size(kColors)];
    std::string path;
    for (const auto& [px, py] : plot.lines[l].points)
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x.at(px), y.at(py));
    text += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n", path, color);
    for (const auto& [px, py] : plot.lines[l].points)
      text += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", x.at(px), y.at(py),
                          color);
    const double row = top + kPlotTop + 20.0 * static_cast<double>(l);
    text +=
        fmt::format("<path d=\"M{0} {1}h20\" stroke=\"{2}\" stroke-width=\"2\"/>\n", x.to + 20, row, color) +
        svg_text(x.to + 46, row + 4, plot.lines[l].name, "start");
  }
  return text;
}

}  // namespace

std::string svg_of(const std::vector<LinePlot>& plots) {
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" "
      "fill=\"#fff\"/>\n",
      kPlotWidth, kPlotHeight * plots.size());
  int top = 0;
  for (const LinePlot& plot : plots) {
    text += svg_of(plot, top);
    top += kPlotHeight;
  }
  return text + "</svg>\n";
}

}  // namespace alpa
