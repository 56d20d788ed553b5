#include "profile/profile_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace espalier::profile {
namespace {

constexpr double pico = 1e-12;

/// Visits every number that may be fitted, by name, kind, and a reference to where it is kept.
template <class AnyProfile, class Time, class Rate, class Part>
void visit(AnyProfile& profile, const Time& time, const Rate& rate, const Part& part) {
  for (auto& [name, launch] : profile.launches) {
    time("launch: " + name, launch.call);
    time("launch: " + name + " per rank", launch.per_rank);
    time("launch: " + name + " per send", launch.per_send);
    time("launch: " + name + " per channel", launch.per_channel);
    time("launch: " + name + " overlap", launch.overlap);
  }
  for (const LinkKind kind : all_link_kinds) {
    part(fmt::format("links: {}", to_string(kind)), profile.reached_ppm[static_cast<std::size_t>(kind)]);
  }
  part("links: switched", profile.switched_ppm);
  for (auto& [key, way] : profile.ways) {
    const std::string of = fmt::format("{} {}: ", to_string(key.first), sim::to_string(key.second));
    time(of + "base", way.base);
    time(of + "per_rank", way.per_rank);
    time(of + "message", way.message);
    for (const LinkKind kind : all_link_kinds) {
      time(of + std::string(to_string(kind)), way.hop[static_cast<std::size_t>(kind)]);
    }
    part(of + "rate", way.rate_ppm);
    part(of + "own", way.own_ppm);
    part(of + "drain", way.drain_ppm);
    constexpr std::array machines = {"one machine", "two machines", "more machines"};
    for (std::size_t i = 0; i < way.most.size(); ++i) rate(of + "most, " + machines[i], way.most[i]);
  }
}

}  // namespace

std::vector<ProfileValue> values_of(const Profile& profile) {
  std::vector<ProfileValue> values;
  const auto add = [&](std::string name, ValueKind kind, double value) {
    if (value > 0) values.push_back({std::move(name), kind, value});
  };
  visit(
      profile, [&](std::string name, Picoseconds time) { add(std::move(name), ValueKind::time, time.seconds()); },
      [&](std::string name, Bandwidth rate) {
        add(std::move(name), ValueKind::rate, static_cast<double>(rate.bytes_per_second));
      },
      [&](std::string name, std::int32_t ppm) {
        add(std::move(name), ValueKind::part, static_cast<double>(ppm) / whole_ppm);
      });
  return values;
}

Profile with_values(const Profile& profile, std::span<const double> values) {
  Profile changed = profile;
  std::size_t at = 0;
  const auto next = [&](double old) {
    if (!(old > 0)) return old;
    ESPALIER_CHECK(at < values.size(), "a value for each");
    return values[at++];
  };
  visit(
      changed, [&](const std::string&, Picoseconds& time) { time = {std::llround(next(time.seconds()) / pico)}; },
      [&](const std::string&, Bandwidth& rate) {
        rate = {std::llround(next(static_cast<double>(rate.bytes_per_second)))};
      },
      [&](const std::string&, std::int32_t& ppm) {
        if (ppm == 0) return;
        const double part = next(static_cast<double>(ppm) / whole_ppm);
        ppm = std::clamp(static_cast<std::int32_t>(std::lround(std::min(part, 1.0) * whole_ppm)), 1, whole_ppm);
      });
  ESPALIER_CHECK(at == values.size(), "no value too many");
  return changed;
}

std::string format_value(ValueKind kind, double value) {
  switch (kind) {
    case ValueKind::time: return fmt::format("{:.3g} us", value * 1e6);
    case ValueKind::rate: return fmt::format("{:.4g} GB/s", value / 1e9);
    case ValueKind::part: return fmt::format("{:.3g}", value);
  }
  return "";
}

}  // namespace espalier::profile
