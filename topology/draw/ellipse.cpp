#include "topology/draw/ellipse.h"

#include <cmath>
#include <numbers>

#include "topology/draw/layout.h"

namespace espalier {

std::vector<std::pair<double, double>> on_ellipse(std::size_t count, double cell, double radius, double apart) {
  constexpr int steps = 2000;
  constexpr double line = drawn_node_height + 6;
  const auto at = [&](int step) {
    const double turn = 2 * std::numbers::pi * step / steps;
    return std::pair(radius * std::sin(turn), -ellipse_height * radius * std::cos(turn));
  };
  const auto is_clear = [&](const std::pair<double, double>& a, const std::pair<double, double>& b) {
    return std::abs(a.first - b.first) >= apart * cell || std::abs(a.second - b.second) >= apart * line;
  };
  std::vector<std::pair<double, double>> places = {count == 1 ? std::pair(0.0, 0.0) : at(0)};
  for (int step = 1; step < steps && places.size() < count; ++step) {
    if (is_clear(at(step), places.back()) && is_clear(at(step), places.front())) places.push_back(at(step));
  }
  if (places.size() < count || (count == 1 && apart > 1)) return {};
  return places;
}

}  // namespace espalier
