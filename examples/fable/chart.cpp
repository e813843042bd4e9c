#include "chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace fable {
namespace {

constexpr double kWidth = 860, kHeight = 480;
constexpr double kLeft = 70, kRight = 24, kTop = 56, kBottom = 56;  // margins

struct Range {
  double low = std::numeric_limits<double>::infinity(),
         high = -std::numeric_limits<double>::infinity();
  void add(double x) {
    low = std::min(low, x);
    high = std::max(high, x);
  }
};

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '&':
        result += "&amp;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

class Chart {
 public:
  explicit Chart(const std::vector<Curve>& curves) : curves_(curves) {
    for (const Curve& curve : curves) {
      for (const auto& [step, loss] : curve.points) {
        steps_.add(step);
        losses_.add(loss);
      }
    }
    if (!(steps_.low <= steps_.high)) steps_ = {0, 1}, losses_ = {1, 10};
    steps_.low = 0;
    if (steps_.high <= 0) steps_.high = 1;
    losses_ = {losses_.low / 1.1, losses_.high * 1.1};
  }

  std::string draw(const std::string& title) {
    out_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
        "height=\"{1}\" role=\"img\" font-family=\"sans-serif\" font-size=\"13\">\n"
        "<title>{2}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        kWidth, kHeight, escaped(title));
    text(kLeft, 26, "start", title, "font-size=\"16\" font-weight=\"bold\"");
    draw_losses();
    draw_steps();
    for (const Curve& curve : curves_) draw_curve(curve);
    draw_legend();
    return out_ + "</svg>\n";
  }

 private:
  double x_of(double step) const {
    return kLeft + (step - steps_.low) / (steps_.high - steps_.low) * (kWidth - kLeft - kRight);
  }
  double y_of(double loss) const {
    const double part = std::log(losses_.high / loss) / std::log(losses_.high / losses_.low);
    return kTop + part * (kHeight - kTop - kBottom);
  }

  void text(double x, double y, const char* anchor, const std::string& words,
            const std::string& more = "") {
    out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" {}>{}</text>\n", x, y,
                        anchor, more, escaped(words));
  }
  void line(double x1, double y1, double x2, double y2, const char* color) {
    out_ += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x1, y1,
        x2, y2, color);
  }

  void draw_losses() {
    for (int power = -6; power <= 6; ++power) {
      for (const int digit : {1, 2, 3, 5}) {
        const double loss = digit * std::pow(10.0, power);
        if (loss < losses_.low || loss > losses_.high) continue;
        line(kLeft, y_of(loss), kWidth - kRight, y_of(loss), "#e4e4e4");
        text(kLeft - 8, y_of(loss) + 4, "end", fmt::format("{:g}", loss));
      }
    }
    line(kLeft, kTop, kLeft, kHeight - kBottom, "#333");
    const double middle = (kTop + kHeight - kBottom) / 2;
    text(20, middle, "middle", "loss (nats a token)",
         fmt::format("transform=\"rotate(-90 20 {:.1f})\"", middle));
  }

  void draw_steps() {
    const double bottom = kHeight - kBottom;
    double distance = std::pow(10.0, std::floor(std::log10(steps_.high)));
    for (const double finer : {0.5, 0.2, 0.1}) {
      if (steps_.high / distance >= 5) break;
      distance = std::pow(10.0, std::floor(std::log10(steps_.high))) * finer;
    }
    for (double step = 0; step <= steps_.high * (1 + 1e-9); step += distance) {
      line(x_of(step), bottom, x_of(step), bottom + 5, "#333");
      text(x_of(step), bottom + 20, "middle", fmt::format("{:g}", step));
    }
    line(kLeft, bottom, kWidth - kRight, bottom, "#333");
    text((kLeft + kWidth - kRight) / 2, kHeight - 12, "middle", "steps");
  }

  void draw_curve(const Curve& curve) {
    if (curve.points.empty()) return;
    out_ += fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\" points=\"",
                        escaped(curve.color));
    for (const auto& [step, loss] : curve.points) {
      out_ += fmt::format("{:.1f},{:.1f} ", x_of(step), y_of(loss));
    }
    out_.back() = '"';
    out_ += "/>\n";
  }

  void draw_legend() {
    double y = kTop + 10;
    for (const Curve& curve : curves_) {
      out_ += fmt::format(
          "<line x1=\"{0:.1f}\" y1=\"{2:.1f}\" x2=\"{1:.1f}\" y2=\"{2:.1f}\" stroke=\"{3}\" "
          "stroke-width=\"3\"/>\n",
          kWidth - 270, kWidth - 240, y, escaped(curve.color));
      const std::string last =
          curve.points.empty() ? "" : fmt::format(", {:.4f} at last", curve.points.back().second);
      text(kWidth - 232, y + 4, "start", curve.name + last);
      y += 20;
    }
  }

  const std::vector<Curve>& curves_;
  Range steps_, losses_;
  std::string out_;
};

}  // namespace

std::string loss_chart(const std::string& title, const std::vector<Curve>& curves) {
  return Chart(curves).draw(title);
}

}  // namespace fable
