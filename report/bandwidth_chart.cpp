#include "report/bandwidth_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/format_units.h"
#include "report/html_text.h"

namespace espalier::report {
namespace {

constexpr double left = 64, right = 30, top = 20, bottom = 46, width = 860, height = 380;
constexpr std::size_t markers = 6;
// Source: P. Tol, "Colour Schemes", SRON, 2021, "bright"; the page has them as custom properties of the same numbers.
constexpr std::size_t colours = 6;

/// The step between marks of an axis from 0 to `most`: 1, 2 or 5 times a power of ten, about five of them.
double mark_step(double most) {
  const double rough = most / 5;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

class BandwidthChart {
 public:
  explicit BandwidthChart(const PlanReport& report) : report_(report) {
    for (const Curve& curve : report.predicted) include(curve);
    if (report.measured) {
      for (const Curve& curve : report.measured->curves) include(curve);
    }
    bound_ = 0;
    if (report.bound.time_per_byte != 0) {
      bound_ = to_double(report.collective.busbw_factor()) / to_double(report.bound.time_per_byte);
    }
    most_ = 1.06 * std::max(most_, bound_);
  }

  std::string write() {
    if (greatest_ <= 0 || most_ <= 0) return {};
    text_ = fmt::format(
        "<svg class=\"chart\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"Bus bandwidth against message size; the "
        "table below has its numbers\">\n",
        width, height);
    add_axes();
    add_bound();
    for (const CrossoverAt& crossover : report_.crossovers) add_crossover(crossover);
    std::size_t number = 0;
    for (const Curve& curve : report_.predicted) add_curve(curve, number++, false);
    if (report_.measured) {
      for (const Curve& curve : report_.measured->curves) add_curve(curve, number++, true);
    }
    return text_ + "</svg>\n" + legend_ + "</ul>\n";
  }

 private:
  void include(const Curve& curve) {
    for (const CurvePoint& point : curve.points) {
      if (point.size.count <= 0) continue;
      least_ = least_ == 0 ? point.size.count : std::min(least_, point.size.count);
      greatest_ = std::max(greatest_, point.size.count);
      most_ = std::max(most_, bus_bandwidth(report_.collective, point.size, point.seconds));
    }
  }

  [[nodiscard]] double x_of(Bytes size) const {
    if (greatest_ == least_) return left + (width - left - right) / 2;
    const double part = std::log2(static_cast<double>(size.count) / static_cast<double>(least_)) /
                        std::log2(static_cast<double>(greatest_) / static_cast<double>(least_));
    return left + part * (width - left - right);
  }
  [[nodiscard]] double y_of(double busbw) const { return height - bottom - busbw / most_ * (height - top - bottom); }

  void add_axes() {
    const double step = mark_step(most_ / 1e9);
    for (double mark = 0; mark * 1e9 <= most_; mark += step) {
      const double y = y_of(mark * 1e9);
      text_ += fmt::format(
          "<path class=\"grid\" d=\"M{:.1f} {:.1f}H{:.1f}\"/><text x=\"{:.1f}\" y=\"{:.1f}\" "
          "text-anchor=\"end\">{:g}</text>\n",
          left, y, width - right, left - 8, y + 4, std::round(mark * 1e6) / 1e6);
    }
    const double powers = std::log2(static_cast<double>(greatest_) / static_cast<double>(least_));
    const auto every = static_cast<int>(std::max(1.0, std::ceil(powers / 10)));
    for (int power = static_cast<int>(std::ceil(std::log2(static_cast<double>(least_)))); power < 51; power += every) {
      const Bytes size{std::int64_t{1} << power};
      if (size.count > greatest_) break;
      const double x = x_of(size);
      text_ += fmt::format(
          "<path class=\"grid\" d=\"M{0:.1f} {1:.1f}V{2:.1f}\"/><text x=\"{0:.1f}\" y=\"{3:.1f}\" "
          "text-anchor=\"middle\">{4}</text>\n",
          x, top, height - bottom, height - bottom + 18, format_size(size));
    }
    text_ += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">message size</text><text x=\"{:.1f}\" y=\"12\">bus "
        "bandwidth (GB/s)</text>\n",
        (left + width - right) / 2, height - 8, 8.0);
  }

  void add_bound() {
    if (bound_ == 0) return;
    const double y = y_of(bound_);
    text_ += fmt::format(
        "<path class=\"bound\" d=\"M{:.1f} {:.1f}H{:.1f}\"/><text x=\"{:.1f}\" y=\"{:.1f}\">bound {:.2f} "
        "GB/s</text>\n",
        left, y, width - right, left + 6, y - 5, bound_ / 1e9);
  }

  void add_crossover(const CrossoverAt& crossover) {
    if (crossover.size.count < least_ || crossover.size.count > greatest_) return;
    const double x = x_of(crossover.size);
    text_ += fmt::format(
        "<path class=\"crossover\" d=\"M{:.1f} {:.1f}V{:.1f}\"><title>{}</title></path>\n", x, top, height - bottom,
        in_html(fmt::format("{} to {} at {}", crossover.from, crossover.to, size_text(crossover.size))));
  }

  void add_curve(const Curve& curve, std::size_t number, bool is_measured) {
    const std::string look = fmt::format("class=\"curve c{}{}\"", number % colours, is_measured ? " measured" : "");
    std::string path, points;
    for (const CurvePoint& point : curve.points) {
      if (point.size.count <= 0) continue;
      const double busbw = bus_bandwidth(report_.collective, point.size, point.seconds);
      const double x = x_of(point.size), y = y_of(busbw);
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x, y);
      const std::string by = point.by.empty() ? "" : " by " + point.by;
      points += fmt::format("<g {} transform=\"translate({:.1f} {:.1f})\">{}<title>{}</title></g>\n", look, x, y,
                            marker(number),
                            in_html(fmt::format("{}{} at {}: {:.2f} GB/s, {:.2f} us", curve.name, by,
                                                size_text(point.size), busbw / 1e9, point.seconds * 1e6)));
    }
    text_ += fmt::format("<path {} d=\"{}\"/>\n{}", look, path, points);
    legend_ += fmt::format(
        "<li><svg viewBox=\"0 0 40 14\" aria-hidden=\"true\"><path {0} d=\"M0 7H40\"/><g {0} transform=\"translate(20 "
        "7)\">{1}</g></svg>{2}</li>\n",
        look, marker(number), in_html(curve.name));
  }

  static std::string_view marker(std::size_t number) {
    constexpr std::array<std::string_view, markers> shapes = {
        "<circle r=\"4\"/>",           "<path d=\"M-4 -4H4V4H-4Z\"/>",
        "<path d=\"M0 -5L5 4H-5Z\"/>", "<path d=\"M0 -5L5 0L0 5L-5 0Z\"/>",
        "<path d=\"M0 5L5 -4H-5Z\"/>", "<path d=\"M-5 0H5M0 -5V5\"/>"};
    return shapes[number % markers];
  }

  const PlanReport& report_;
  std::int64_t least_ = 0, greatest_ = 0;  // sizes
  double most_ = 0, bound_ = 0;            // bytes per second
  std::string text_;
  std::string legend_ = "<ul class=\"legend\">\n";
};

}  // namespace

double bus_bandwidth(const Collective& collective, Bytes size, double seconds) {
  if (seconds <= 0) return 0;
  return static_cast<double>(size.count) / seconds * to_double(collective.busbw_factor());
}

std::string bandwidth_chart(const PlanReport& report) { return BandwidthChart(report).write(); }

}  // namespace espalier::report
