#include "compare/fit/fit_variables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/check.h"

namespace espalier::compare {
namespace {

constexpr double involved_share = 0.3;  // of a flat direction's largest component
constexpr double vanished_log = 3.5;    // exp(3.5) is 33: so far below its start a cost is none

/// Which kind is given up first.
int priority(ParameterKind kind) {
  switch (kind) {
    case ParameterKind::overhead: return 0;
    case ParameterKind::reduce_bandwidth: return 1;
    case ParameterKind::latency: return 2;
    case ParameterKind::bandwidth: return 3;
  }
  return 4;
}

}  // namespace

FitVariables::FitVariables(std::vector<Parameter> parameters)
    : parameters_(std::move(parameters)), states_(parameters_.size(), ParameterState::fitted) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].given > 0) {
      members_.push_back({i});
    } else {
      states_[i] = ParameterState::held;
    }
  }
}

std::size_t FitVariables::add_absent(std::vector<double>& point) {
  std::size_t added = 0;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].given > 0) continue;
    states_[i] = ParameterState::fitted;
    members_.push_back({i});
    point.push_back(0);
    ++added;
  }
  return added;
}

std::vector<double> FitVariables::values(std::span<const double> point) const {
  std::vector<double> values;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    values.push_back(states_[i] == ParameterState::vanished ? 0 : parameters_[i].given);
  }
  for (std::size_t k = 0; k < members_.size(); ++k) {
    for (const std::size_t i : members_[k]) values[i] = parameters_[i].start * std::exp(point[k]);
  }
  return values;
}

std::vector<std::size_t> FitVariables::moving() const {
  std::vector<std::size_t> all;
  for (const Members& members : members_) all.insert(all.end(), members.begin(), members.end());
  std::ranges::sort(all);
  return all;
}

std::vector<FittedParameter> FitVariables::fitted(std::span<const double> point,
                                                  std::span<const double> standard_errors) const {
  const std::vector<double> all = values(point);
  std::vector<FittedParameter> result;
  for (std::size_t i = 0; i < parameters_.size(); ++i) result.push_back({parameters_[i], states_[i], all[i], 0});
  for (std::size_t k = 0; k < members_.size(); ++k) {
    for (const std::size_t i : members_[k]) result[i].standard_error = standard_errors[k];
  }
  return result;
}

/// A cost that has fallen far below where it began, or a limit that has risen far above.
bool FitVariables::has_vanished(std::size_t coordinate, double at) const {
  if (is_absent(coordinate)) return false;
  switch (kind_of(coordinate)) {
    case ParameterKind::bandwidth: return false;
    case ParameterKind::latency:
    case ParameterKind::overhead: return at < -vanished_log;
    case ParameterKind::reduce_bandwidth: return at > vanished_log;
  }
  return false;
}

void FitVariables::drop(std::size_t coordinate, std::vector<double>& point) {
  members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(coordinate));
  point.erase(point.begin() + static_cast<std::ptrdiff_t>(coordinate));
}

std::string FitVariables::hold(std::size_t coordinate, bool vanishes, std::vector<double>& point) {
  const Members members = members_[coordinate];
  drop(coordinate, point);
  std::string action;
  for (const std::size_t i : members) {
    states_[i] = vanishes ? ParameterState::vanished : ParameterState::held;
    const double value = vanishes ? 0 : parameters_[i].given;
    action += fmt::format("{}{} is {} {}", action.empty() ? "" : ", ", parameters_[i].name(),
                          vanishes ? "fitted as" : "held at", format_parameter(parameters_[i].kind, value));
  }
  return action;
}

/// The first coordinate takes the parameters of the others, each at its given ratio.
std::string FitVariables::join(const std::vector<std::size_t>& coordinates, std::vector<double>& point) {
  Members joined;
  double sum = 0;
  for (const std::size_t k : coordinates) {
    joined.insert(joined.end(), members_[k].begin(), members_[k].end());
    sum += point[k];
  }
  std::ranges::sort(joined);
  for (std::size_t at = coordinates.size(); at-- > 1;) drop(coordinates[at], point);
  point[coordinates.front()] = sum / static_cast<double>(coordinates.size());
  members_[coordinates.front()] = joined;
  std::string names;
  for (const std::size_t i : joined) {
    states_[i] = ParameterState::joint;
    names += (names.empty() ? "" : ", ") + parameters_[i].name();
  }
  return names + " are fitted jointly, their ratio as given";
}

Ambiguity FitVariables::hold_unused(const std::vector<std::size_t>& coordinates, std::vector<double>& point) {
  Ambiguity result;
  for (std::size_t at = coordinates.size(); at-- > 0;) {
    const Members& members = members_[coordinates[at]];
    result.parameters.insert(result.parameters.end(), members.begin(), members.end());
    hold(coordinates[at], false, point);
  }
  std::ranges::sort(result.parameters);
  result.action = "no run depends on them; held as given";
  return result;
}

Ambiguity FitVariables::settle(const FlatDirection& direction, std::vector<double>& point) {
  const double largest = *std::ranges::max_element(direction.components);
  std::vector<std::size_t> involved;
  std::size_t vanishing = members_.size();
  for (std::size_t k = 0; k < members_.size(); ++k) {
    if (std::abs(direction.components[k]) < involved_share * largest) continue;
    involved.push_back(k);
    if (vanishing == members_.size() && has_vanished(k, point[k])) vanishing = k;
  }
  ESPALIER_CHECK(!involved.empty(), "a unit vector has a largest component");
  Ambiguity result;
  for (const std::size_t k : involved) {
    result.parameters.insert(result.parameters.end(), members_[k].begin(), members_[k].end());
  }
  std::ranges::sort(result.parameters);
  const bool one_kind =
      std::ranges::all_of(involved, [&](std::size_t k) { return kind_of(k) == kind_of(involved.front()); });
  if (vanishing != members_.size()) {
    result.action = hold(vanishing, true, point);
  } else if (one_kind && involved.size() > 1 &&
             std::ranges::none_of(involved, [&](std::size_t k) { return is_absent(k); }) &&
             kind_of(involved.front()) != ParameterKind::overhead) {
    result.action = join(involved, point);
  } else {
    const std::size_t given_up = *std::ranges::min_element(involved, [&](std::size_t x, std::size_t y) {
      const auto rank = [&](std::size_t k) {
        return std::tuple(!is_absent(k), priority(kind_of(k)), -std::abs(direction.components[k]));
      };
      return rank(x) < rank(y);
    });
    result.action = hold(given_up, false, point);
  }
  return result;
}

}  // namespace espalier::compare
