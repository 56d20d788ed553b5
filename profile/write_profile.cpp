#include "profile/write_profile.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/format_units.h"
#include "profile/profile_values.h"

namespace espalier::profile {
namespace {

double part_of_ppm(std::int32_t ppm) { return static_cast<double>(ppm) / whole_ppm; }

std::string size_text(Bytes size) {
  constexpr std::int64_t kibi = 1024;
  return size.count % kibi == 0 ? fmt::format("{} KiB", size.count / kibi) : fmt::format("{}", size.count);
}

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("''") : std::string(1, c);
  return out + "'";
}

/// What stands between the braces of an algorithm with a protocol; what is as by default is left out.
std::string way_text(const ProtocolCosts& way) {
  std::vector<std::string> entries;
  const auto time = [&](std::string_view key, Picoseconds value) {
    if (value.count > 0) entries.push_back(fmt::format("{}: {}", key, format_value(ValueKind::time, value.seconds())));
  };
  const auto part = [&](std::string_view key, std::int32_t ppm) {
    if (ppm != whole_ppm) entries.push_back(fmt::format("{}: {:.4g}", key, part_of_ppm(ppm)));
  };
  const auto size = [&](std::string_view key, Bytes value) {
    if (value.count > 0) entries.push_back(fmt::format("{}: {}", key, size_text(value)));
  };
  constexpr std::uint32_t per_major = 1000;
  if (way.since > 0) entries.push_back(fmt::format("since: '{}.{}'", way.since / per_major, way.since % per_major));
  time("base", way.base);
  time("per_rank", way.per_rank);
  for (const LinkKind kind : all_link_kinds) time(to_string(kind), way.hop[static_cast<std::size_t>(kind)]);
  time("fabric_between", way.fabric_between);
  time("message", way.message);
  part("payload", way.payload_ppm);
  part("rate", way.rate_ppm);
  const auto added = [&](std::string_view key, std::int32_t ppm) {
    if (ppm > 0) entries.push_back(fmt::format("{}: {:.4g}", key, part_of_ppm(ppm)));
  };
  added("own", way.own_ppm);
  added("drain", way.drain_ppm);
  const auto is_limited = [](Bandwidth rate) { return rate.bytes_per_second > 0; };
  if (std::ranges::all_of(way.most, is_limited)) {
    std::vector<std::string> rates;
    for (const Bandwidth rate : way.most) {
      rates.push_back(format_value(ValueKind::rate, static_cast<double>(rate.bytes_per_second)));
    }
    entries.push_back(fmt::format("most: [{}]", fmt::join(rates, ", ")));
  }
  size("chunk", way.chunk);
  size("least_chunk", way.min_chunk);
  if (way.in_flight.size() == 1) entries.push_back(fmt::format("in_flight: {}", way.in_flight.front()));
  if (way.in_flight.size() > 1) entries.push_back(fmt::format("in_flight: [{}]", fmt::join(way.in_flight, ", ")));
  if (way.under_way > 1) entries.push_back(fmt::format("under_way: {}", way.under_way));
  size("per_channel", way.per_channel);
  return fmt::format("{}", fmt::join(entries, ", "));
}

std::string launch_text(const Launch& launch) {
  const auto time = [](Picoseconds value) { return format_value(ValueKind::time, value.seconds()); };
  if (launch == Launch{launch.call, {}, {}, {}, {}}) return time(launch.call);
  const std::string channels = launch.per_channel.count > 0 ? ", per_channel: " + time(launch.per_channel) : "";
  return fmt::format("{{call: {}, per_rank: {}, per_send: {}{}{}}}", time(launch.call), time(launch.per_rank),
                     time(launch.per_send), channels,
                     launch.overlap.count > 0 ? ", overlap: " + time(launch.overlap) : "");
}

std::string links_text(const std::array<std::int32_t, 3>& ppm) {
  return fmt::format("fabric: {:.4g}, pcie: {:.4g}, network: {:.4g}", part_of_ppm(ppm[0]), part_of_ppm(ppm[1]),
                     part_of_ppm(ppm[2]));
}

}  // namespace

std::string profile_yaml(const Profile& profile, std::span<const std::string> comments) {
  std::string text = "# yaml-language-server: $schema=profile.schema.json\n";
  for (const std::string& comment : comments) text += comment.empty() ? "#\n" : "# " + comment + "\n";
  text += fmt::format("espalier_profile: 1\nname: {}\n", quoted(profile.name));
  if (!profile.about.empty()) text += fmt::format("about: {}\n", quoted(profile.about));
  text += fmt::format("channels: {}\n", profile.channels);
  if (profile.processors > 0) text += fmt::format("processors: {}\n", profile.processors);
  std::vector<std::string> launches;
  for (const auto& [name, launch] : profile.launches) {
    launches.push_back(fmt::format("{}: {}", quoted(name), launch_text(launch)));
  }
  text += fmt::format("launch: {{{}}}\n", fmt::join(launches, ", "));
  const std::string switched =
      profile.switched_ppm > 0 ? fmt::format(", switched: {:.4g}", part_of_ppm(profile.switched_ppm)) : std::string();
  text += fmt::format("links: {{{}{}}}\n", links_text(profile.reached_ppm), switched);
  if (profile.paths != planners::Paths::software) text += fmt::format("paths: {}\n", to_string(profile.paths));
  if (profile.tuner) {
    text += fmt::format("tuner: {{generation: {}, {}}}\n", to_string(profile.tuner->generation),
                        links_text(profile.tuner->counted_ppm));
  }
  text += "algorithms:\n";
  for (const Shape shape : all_shapes) {
    bool is_first = true;
    for (const auto& [key, way] : profile.ways) {
      if (key.first != shape) continue;
      if (std::exchange(is_first, false)) text += fmt::format("  {}:\n", to_string(shape));
      text += fmt::format("    {}: {{{}}}\n", sim::to_string(key.second), way_text(way));
    }
  }
  return text;
}

}  // namespace espalier::profile
