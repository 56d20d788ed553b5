#include "report/bandwidth_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/format_units.h"
#include "report/html_text.h"
#include "report/span_columns.h"
#include "report/svg_picture.h"
#include "schedule/parts.h"

namespace espalier::report {
namespace {

constexpr double left = 64, right = 30, top = 20, bottom = 46, width = 860;
constexpr double rates_height = 380, parts_height = 220;
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

/// What a chart has on its upright axis.
enum class Measure : std::uint8_t { rate, part_of_bound };

/// One chart: curves over message sizes, within a box that begins at the origin.
class BandwidthChart {
 public:
  BandwidthChart(const BandwidthCurves& curves, Measure measure)
      : curves_(curves), bounds_(bound_lines(curves)), measure_(measure) {
    height_ = measure == Measure::rate ? rates_height : parts_height;
    for (const Curve& curve : curves.predicted) include(curve);
    for (const Curve& curve : curves.measured) include(curve);
    if (measure == Measure::part_of_bound && !bounds_.empty()) most_ = std::max(most_, 1.0);
    for (const BoundLine& bound : bounds_) most_ = std::max(most_, measure == Measure::rate ? bound.rate : 1.0);
    most_ *= 1.06;
  }

  /// Nothing where no curve has a point, and for parts of a bound that is not there.
  [[nodiscard]] bool is_empty() const {
    return greatest_ <= 0 || most_ <= 0 || (measure_ == Measure::part_of_bound && bounds_.empty());
  }
  [[nodiscard]] double height() const { return height_; }

  std::string write() {
    add_axes();
    add_bounds();
    for (const CrossoverAt& crossover : curves_.crossovers) add_crossover(crossover);
    std::size_t number = 0;
    for (const Curve& curve : curves_.predicted) add_curve(curve, number++, false);
    for (const Curve& curve : curves_.measured) add_curve(curve, number++, true);
    return text_;
  }

  static std::string_view marker(std::size_t number) {
    constexpr std::array<std::string_view, markers> shapes = {"<path d=\"M4 0A4 4 0 1 1 -4 0A4 4 0 1 1 4 0Z\"/>",
                                                              "<path d=\"M-4 -4H4V4H-4Z\"/>",
                                                              "<path d=\"M0 -5L5 4H-5Z\"/>",
                                                              "<path d=\"M0 -5L5 0L0 5L-5 0Z\"/>",
                                                              "<path d=\"M0 5L5 -4H-5Z\"/>",
                                                              "<path d=\"M-5 0H5M0 -5V5\"/>"};
    return shapes[(number + number / colours) % markers];  // No two of the first 36 curves look alike.
  }
  static std::string look(std::size_t number, bool is_measured) {
    return fmt::format("class=\"curve c{}{}\"", number % colours, is_measured ? " measured" : "");
  }

 private:
  void include(const Curve& curve) {
    for (const CurvePoint& point : curve.points) {
      if (point.size.count <= 0) continue;
      least_ = least_ == 0 ? point.size.count : std::min(least_, point.size.count);
      greatest_ = std::max(greatest_, point.size.count);
      most_ = std::max(most_, value_of(curve, point));
    }
  }

  [[nodiscard]] double x_of(Bytes size) const {
    if (greatest_ == least_) return left + (width - left - right) / 2;
    const double part = std::log2(static_cast<double>(size.count) / static_cast<double>(least_)) /
                        std::log2(static_cast<double>(greatest_) / static_cast<double>(least_));
    return left + part * (width - left - right);
  }
  [[nodiscard]] double y_of(double value) const { return height_ - bottom - value / most_ * (height_ - top - bottom); }
  [[nodiscard]] double value_of(const Curve& curve, const CurvePoint& point) const {
    return measure_ == Measure::rate ? curves_.rate(point) : curves_.part_of_bound(curve, point);
  }

  void add_axes() {
    const double unit = measure_ == Measure::rate ? 1e9 : 0.01;
    const double step = mark_step(most_ / unit);
    for (double mark = 0; mark * unit <= most_; mark += step) {
      const double y = y_of(mark * unit);
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
          x, top, height_ - bottom, height_ - bottom + 18, format_size(size));
    }
    text_ += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">message size</text><text x=\"{:.1f}\" "
        "y=\"12\">{}</text>\n",
        (left + width - right) / 2, height_ - 8, 8.0,
        measure_ == Measure::rate ? curves_.measure + " (GB/s)" : "part of the bound (%)");
  }

  /// Each with its name, at the other end of the line and below it where the one before is close.
  void add_bounds() {
    constexpr double closest = 16;
    double before = -closest;
    bool is_left = false;
    for (const BoundLine& bound : bounds_) {
      const double y = y_of(measure_ == Measure::rate ? bound.rate : 1);
      text_ += fmt::format("<path class=\"bound\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>\n", left, y, width - right);
      if (measure_ == Measure::part_of_bound) return;
      is_left = !is_left || std::abs(y - before) >= closest;
      before = y;
      text_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n",
                           is_left ? left + 6 : width - right - 6, is_left ? y - 5 : y + 14, is_left ? "start" : "end",
                           in_html(bound.text));
    }
  }

  void add_crossover(const CrossoverAt& crossover) {
    if (crossover.size.count < least_ || crossover.size.count > greatest_) return;
    const double x = x_of(crossover.size);
    text_ += fmt::format(
        "<path class=\"crossover\" d=\"M{:.1f} {:.1f}V{:.1f}\"><title>{}</title></path>\n", x, top, height_ - bottom,
        in_html(fmt::format("{} to {} at {}", crossover.from, crossover.to, size_text(crossover.size))));
  }

  void add_curve(const Curve& curve, std::size_t number, bool is_measured) {
    const std::string look = BandwidthChart::look(number, is_measured);
    std::string path, points;
    for (const CurvePoint& point : curve.points) {
      if (point.size.count <= 0 || !has_value(curve)) continue;
      const double x = x_of(point.size), y = y_of(value_of(curve, point));
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x, y);
      points += fmt::format("<g {} transform=\"translate({:.1f} {:.1f})\">{}<title>{}</title></g>\n", look, x, y,
                            marker(number), in_html(describe(curve, point)));
    }
    if (!path.empty()) text_ += fmt::format("<path {} d=\"{}\"/>\n{}", look, path, points);
  }

  [[nodiscard]] bool has_value(const Curve& curve) const { return measure_ == Measure::rate || curve.bound > 0; }

  [[nodiscard]] std::string describe(const Curve& curve, const CurvePoint& point) const {
    const std::string by = point.by.empty() ? "" : " by " + point.by;
    const double rate = curves_.rate(point);
    std::string text = fmt::format("{}{} at {}: {:.2f} GB/s, {:.2f} us", curve.name, by, size_text(point.size),
                                   rate / 1e9, point.seconds * 1e6);
    if (curve.bound > 0) text += fmt::format(", {:.1f} % of the bound", 100 * curves_.part_of_bound(curve, point));
    return text;
  }

  const BandwidthCurves& curves_;
  std::vector<BoundLine> bounds_;
  Measure measure_;
  double height_ = 0;
  std::int64_t least_ = 0, greatest_ = 0;  // sizes
  double most_ = 0;                        // of the measure
  std::string text_;
};

/// Both charts, one below the other, and how high they are together; empty where there is nothing to draw.
std::pair<std::string, double> draw_charts(const BandwidthCurves& curves) {
  BandwidthChart rates(curves, Measure::rate), parts(curves, Measure::part_of_bound);
  if (rates.is_empty()) return {};
  std::string text = rates.write();
  double height = rates.height();
  if (!parts.is_empty()) {
    text += fmt::format("<g transform=\"translate(0 {})\">\n{}</g>\n", height, parts.write());
    height += parts.height();
  }
  return {std::move(text), height};
}

/// What the page's script draws the curves from, in the order of the legend.
std::string curves_data(const BandwidthCurves& curves) {
  nlohmann::ordered_json data;
  data["measure"] = curves.measure;
  data["bounds"] = nlohmann::ordered_json::array();
  for (const BoundLine& bound : bound_lines(curves)) {
    data["bounds"].push_back({{"rate", bound.rate}, {"text", bound.text}});
  }
  data["curves"] = nlohmann::ordered_json::array();
  for (const auto* group : {&curves.predicted, &curves.measured}) {
    for (const Curve& curve : *group) {
      auto points = nlohmann::ordered_json::array();
      for (const CurvePoint& point : curve.points) {
        points.push_back(
            {point.size.count, point.seconds, curves.rate(point), point.by, 100 * curves.part_of_bound(curve, point)});
      }
      data["curves"].push_back({{"name", curve.name}, {"bound", curve.bound}, {"points", std::move(points)}});
    }
  }
  data["crossovers"] = nlohmann::ordered_json::array();
  for (const CrossoverAt& crossover : curves.crossovers) {
    data["crossovers"].push_back({{"from", crossover.from}, {"to", crossover.to}, {"size", crossover.size.count}});
  }
  return in_script(data);
}

/// Calls `use` with each curve's number, name and whether it was measured.
template <class Use>
void for_each_curve(const BandwidthCurves& curves, Use use) {
  std::size_t number = 0;
  for (const Curve& curve : curves.predicted) use(number++, curve.name, false);
  for (const Curve& curve : curves.measured) use(number++, curve.name, true);
}

}  // namespace

double bus_bandwidth(const Collective& collective, Bytes size, double seconds) {
  if (seconds <= 0) return 0;
  return static_cast<double>(size.count) / seconds * to_double(collective.busbw_factor());
}

double BandwidthCurves::part_of_bound(const Curve& curve, const CurvePoint& point) const {
  if (curve.bound <= 0) return 0;
  const Bytes counted = collective ? evenly_dealt(*collective, point.size, element_size) : point.size;
  return rate({counted, point.seconds, {}}) / curve.bound;
}

std::vector<BoundLine> bound_lines(const BandwidthCurves& curves) {
  std::vector<std::pair<double, std::string>> found;
  for (const auto* group : {&curves.predicted, &curves.measured}) {
    for (const Curve& curve : *group) {
      if (curve.bound <= 0) continue;
      const auto known = std::ranges::find(found, curve.bound, &std::pair<double, std::string>::first);
      if (known == found.end()) {
        found.emplace_back(curve.bound, curve.bound_of);
      } else if (!curve.bound_of.empty() &&
                 (", " + known->second + ", ").find(", " + curve.bound_of + ", ") == std::string::npos) {
        known->second += (known->second.empty() ? "" : ", ") + curve.bound_of;
      }
    }
  }
  std::vector<BoundLine> lines;
  for (const auto& [rate, of] : found) {
    lines.push_back({rate, fmt::format("bound {}{:.2f} GB/s", found.size() > 1 && !of.empty() ? "of " + of + " " : "",
                                       rate / 1e9)});
  }
  return lines;
}

BandwidthCurves curves_of(const PlanReport& report) {
  BandwidthCurves curves;
  curves.title = fmt::format("{} on {}", to_string(report.collective.kind), report.topology->name());
  curves.factor = to_double(report.collective.busbw_factor());
  curves.collective = report.collective;
  curves.element_size = report.element_size;
  curves.predicted = report.predicted;
  if (report.measured) curves.measured = report.measured->curves;
  if (report.bound.time_per_byte != 0) {
    for (auto* group : {&curves.predicted, &curves.measured}) {
      for (Curve& curve : *group) curve.bound = curves.factor / to_double(report.bound.time_per_byte);
    }
  }
  curves.crossovers = report.crossovers;
  return curves;
}

std::string bandwidth_chart(const BandwidthCurves& curves) {
  const auto [charts, height] = draw_charts(curves);
  if (charts.empty()) return {};
  std::string text = fmt::format(
      "<div class=\"curves\"><svg class=\"chart\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{} against message "
      "size{}; the "
      "table below has the numbers\">\n{}</svg>\n<ul class=\"legend\">\n",
      width, height, curves.measure, bound_lines(curves).empty() ? "" : ", and its part of the bound", charts);
  for_each_curve(curves, [&](std::size_t number, const std::string& name, bool is_measured) {
    text += fmt::format(
        "<li><svg viewBox=\"0 0 40 14\" aria-hidden=\"true\"><path {0} d=\"M0 7H40\"/><g {0} transform=\"translate(20 "
        "7)\">{1}</g></svg>{2}</li>\n",
        BandwidthChart::look(number, is_measured), BandwidthChart::marker(number), in_html(name));
  });
  return text + fmt::format("</ul>\n<script type=\"application/json\">{}</script></div>\n", curves_data(curves));
}

std::string bandwidth_picture(const BandwidthCurves& curves) {
  const auto [charts, height] = draw_charts(curves);
  if (charts.empty()) return {};
  constexpr double head = 36, line = 22;
  std::string legend;
  double x = left, y = head + height + 14;
  for_each_curve(curves, [&](std::size_t number, const std::string& name, bool is_measured) {
    const double entry = 70 + 7.0 * static_cast<double>(name.size());
    if (x > left && x + entry > width) {
      x = left;
      y += line;
    }
    legend += fmt::format(
        "<g transform=\"translate({:.1f} {:.1f})\"><path {} d=\"M0 0H40\"/><g {} transform=\"translate(20 "
        "0)\">{}</g><text "
        "x=\"48\" y=\"4\">{}</text></g>\n",
        x, y, BandwidthChart::look(number, is_measured), BandwidthChart::look(number, is_measured),
        BandwidthChart::marker(number), in_html(name));
    x += entry;
  });
  std::string text = begin_picture(width, y + 20, curves.title);
  text += fmt::format("<text class=\"head\" x=\"8\" y=\"24\">{}</text>\n<g transform=\"translate(0 {})\">\n{}</g>\n",
                      in_html(curves.title), head, charts);
  text += legend;
  return text + "</svg>\n";
}

}  // namespace espalier::report
