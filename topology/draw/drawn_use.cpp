#include "topology/draw/drawn_use.h"

#include <algorithm>
#include <array>

namespace espalier {
namespace {

constexpr std::array<double, load_steps - 1> step_ends = {0, 0.25, 0.5, 0.75, 0.95};
constexpr std::array<std::string_view, load_steps> step_names = {"idle",       "up to 25 %", "up to 50 %",
                                                                 "up to 75 %", "up to 95 %", "over 95 %"};

}  // namespace

std::size_t load_step(double load) {
  const auto end = std::ranges::find_if(step_ends, [&](double last) { return load <= last; });
  return static_cast<std::size_t>(end - step_ends.begin());
}

std::string_view load_step_name(std::size_t step) { return step_names[step]; }

}  // namespace espalier
