#include "profile/read_profile.h"

#include <fmt/format.h>

#include <charconv>

#include "base/parse_units.h"
#include "base/suggest.h"
#include "profile/profile_codes.h"
#include "profile/profile_keys.h"
#include "sim/limits.h"
#include "topology/yaml/fields.h"
#include "topology/yaml/findings.h"
#include "topology/yaml/parameters.h"
#include "topology/yaml/read_codes.h"
#include "topology/yaml/source_files.h"

namespace espalier::profile {
namespace {

constexpr std::int64_t max_in_flight = 1024;

/// What the parts of the reader share.
class Reader {
 public:
  explicit Reader(Findings& findings) : findings_(findings) {}

  std::optional<Profile> read(Value root, std::string_view file_name) {
    if (is_of_another_form(root, "espalier_profile", findings_)) return std::nullopt;
    const Fields fields(root, "a profile", profile_keys::file, none_, findings_);
    if (!fields.is_map()) return std::nullopt;
    check_version(fields);
    Profile profile;
    profile.name = fields.text("name").value_or(std::string(file_name));
    profile.about = fields.text("about").value_or("");
    constexpr std::int64_t max_channels = 1024;
    profile.channels = static_cast<std::uint32_t>(fields.integer("channels", 1, max_channels).value_or(1));
    profile.processors = static_cast<std::uint32_t>(fields.integer("processors", 0, max_channels).value_or(0));
    read_launches(fields, profile);
    read_links(fields.find("links"), profile);
    read_paths(fields, profile);
    read_ways(fields, profile);
    read_tuner(fields.find("tuner"), profile);
    if (!findings_.empty()) return std::nullopt;
    return profile;
  }

 private:
  void check_version(const Fields& fields) {
    if (!fields.has("espalier_profile")) return fields.missing("espalier_profile", "begin with 'espalier_profile: 1'");
    const auto version = fields.text("espalier_profile");
    if (!version || *version == "1") return;
    error(fields.mark_of("espalier_profile"), profile_codes::wrong_version,
          fmt::format("version {} of the format is not known", version->substr(0, 60)), "this program reads version 1");
  }

  /// A map of names to times, or to what a call, a rank and a send take; the first one is the default.
  void read_launches(const Fields& fields, Profile& profile) {
    const Value launches = fields.find("launch");
    if (!launches) return profile.launches.emplace_back("default", Launch{}), void();
    if (!launches.is_map() || launches.size() == 0) {
      return error(launches.mark(), read_codes::wrong_type, "'launch' must be a map of names to times",
                   "such as 'launch: {process-per-gpu: 0 us, one-process: 24 us}'");
    }
    for (std::size_t i = 0; i < launches.size(); ++i) {
      profile.launches.emplace_back(launches.key(i).text(), read_launch(launches.value(i)));
    }
  }

  Launch read_launch(Value value) {
    if (value.is_map()) {
      const Fields fields(value, "a launch", profile_keys::launch, none_, findings_);
      const auto time = [&](std::string_view key) { return fields.latency(key).value_or(Picoseconds{}); };
      return {time("call"), time("per_rank"), time("per_send"), time("per_channel"), time("overlap")};
    }
    const auto time = parse_latency(value.text());
    if (time) return {*time, {}, {}, {}, {}};
    error(value.mark(), read_codes::bad_time, time.error().message, time.error().help);
    return {};
  }

  void read_links(Value value, Profile& profile) {
    if (!value) return;
    const Fields fields(value, "'links'", profile_keys::links, none_, findings_);
    if (!fields.is_map()) return;
    for (const LinkKind kind : all_link_kinds) {
      profile.reached_ppm[static_cast<std::size_t>(kind)] = fields.millionths(to_string(kind)).value_or(whole_ppm);
    }
    profile.switched_ppm = fields.millionths("switched").value_or(0);
  }

  void read_paths(const Fields& fields, Profile& profile) {
    const auto written = fields.text("paths");
    if (!written) return;
    const auto paths = parse_paths(*written);
    if (paths) {
      profile.paths = *paths;
    } else {
      error(fields.mark_of("paths"), profile_codes::bad_paths, paths.error().message, paths.error().help);
    }
  }

  void read_tuner(Value value, Profile& profile) {
    if (!value) return;
    const Fields fields(value, "'tuner'", profile_keys::tuner, none_, findings_);
    if (!fields.is_map()) return;
    TunerModel tuner;
    for (const LinkKind kind : all_link_kinds) {
      tuner.counted_ppm[static_cast<std::size_t>(kind)] = fields.millionths(to_string(kind)).value_or(whole_ppm);
    }
    const auto name = fields.text("generation");
    if (!name) return fields.missing("generation", "volta, ampere, hopper or blackwell");
    std::vector<std::string_view> names;
    for (const Generation generation : all_generations) {
      names.push_back(to_string(generation));
      if (*name != names.back()) continue;
      tuner.generation = generation;
      profile.tuner = tuner;
      return;
    }
    error(fields.mark_of("generation"), profile_codes::bad_generation,
          fmt::format("NCCL's tuner knows no generation '{}'", name->substr(0, 60)), suggest(*name, names));
  }

  void read_ways(const Fields& fields, Profile& profile) {
    const Value algorithms = fields.find("algorithms");
    if (!algorithms) return fields.missing("algorithms", "such as 'algorithms: {ring: {simple: {base: 8 us}}}'");
    const Fields by_shape(algorithms, "'algorithms'", profile_keys::algorithms, none_, findings_);
    if (!by_shape.is_map()) return;
    for (const Shape shape : all_shapes) {
      const Value protocols = by_shape.find(to_string(shape));
      if (!protocols) continue;
      const Fields by_protocol(protocols, "an algorithm", profile_keys::protocols, none_, findings_);
      if (!by_protocol.is_map()) continue;
      for (const std::string_view name : profile_keys::protocols) {
        if (const Value way = by_protocol.find(name)) {
          profile.ways[{shape, *sim::parse_protocol(name)}] = read_way(way);
        }
      }
    }
    if (profile.ways.empty()) {
      error(algorithms.mark(), profile_codes::no_algorithm, "the profile has no algorithm",
            "write at least 'ring: {simple: {base: 8 us}}'");
    }
  }

  ProtocolCosts read_way(Value value) {
    ProtocolCosts way;
    const Fields fields(value, "the costs of an algorithm", profile_keys::way, none_, findings_);
    if (!fields.is_map()) return way;
    way.base = fields.latency("base").value_or(Picoseconds{});
    for (const LinkKind kind : all_link_kinds) {
      way.hop[static_cast<std::size_t>(kind)] = fields.latency(to_string(kind)).value_or(Picoseconds{});
    }
    way.fabric_between = fields.latency("fabric_between").value_or(Picoseconds{});
    way.per_rank = fields.latency("per_rank").value_or(Picoseconds{});
    if (const auto since = fields.text("since")) {
      const auto version = version_number(*since);
      if (version) {
        way.since = *version;
      } else {
        error(fields.mark_of("since"), profile_codes::bad_version, version.error().message,
              "quote it, such as since: '2.27'");
      }
    }
    way.message = fields.latency("message").value_or(Picoseconds{});
    way.payload_ppm = fields.millionths("payload").value_or(whole_ppm);
    if (way.payload_ppm < sim::min_payload_ppm) {
      error(fields.mark_of("payload"), read_codes::bad_efficiency, "'payload' is less than 1 % of what is on the wire",
            "write the part of the bytes on links that is data, such as 0.5");
    }
    way.rate_ppm = fields.millionths("rate").value_or(whole_ppm);
    way.own_ppm = fields.millionths("own").value_or(0);
    way.drain_ppm = fields.millionths("drain").value_or(0);
    way.chunk = read_size(fields, "chunk");
    way.min_chunk = read_size(fields, "least_chunk");
    way.per_channel = read_size(fields, "per_channel");
    way.under_way = static_cast<std::uint32_t>(fields.integer("under_way", 1, max_in_flight).value_or(1));
    read_in_flight(fields, way);
    read_most(fields.find("most"), way);
    return way;
  }

  /// A number, or a list of numbers: one for each halving.
  void read_in_flight(const Fields& fields, ProtocolCosts& way) {
    constexpr std::int64_t most = max_in_flight;
    const Value written = fields.find("in_flight");
    if (!written) return;
    if (!written.is_list()) {
      way.in_flight = {static_cast<std::uint32_t>(fields.integer("in_flight", 1, most).value_or(1))};
      return;
    }
    for (std::size_t i = 0; i < written.size(); ++i) {
      const std::string text(written.item(i).text());
      std::uint32_t count = 0;
      const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), count);
      if (status != std::errc() || end != text.data() + text.size() || count < 1 || count > most) {
        return error(written.item(i).mark(), read_codes::bad_integer,
                     fmt::format("'in_flight' has whole numbers from 1 to {}, not '{}'", most, text.substr(0, 60)),
                     "write 'in_flight: 8', or one number for each halving, such as 'in_flight: [64, 8, 2]'");
      }
      way.in_flight.push_back(count);
    }
  }

  void read_most(Value list, ProtocolCosts& way) {
    if (!list) return;
    if (!list.is_list() || list.size() != way.most.size()) {
      return error(list.mark(), read_codes::wrong_type, "'most' must be a list of three rates",
                   "for one, two and more machines, such as 'most: [141 GB/s, 45 GB/s, 35 GB/s]'");
    }
    for (std::size_t i = 0; i < way.most.size(); ++i) {
      const auto rate = parse_bandwidth(list.item(i).text());
      if (rate) {
        way.most[i] = *rate;
      } else {
        error(list.item(i).mark(), read_codes::bad_bandwidth, rate.error().message, rate.error().help);
      }
    }
  }

  Bytes read_size(const Fields& fields, std::string_view key) {
    const auto written = fields.text(key);
    if (!written) return {};
    const auto size = parse_size(*written);
    if (size && size->count > 0) return *size;
    error(fields.mark_of(key), profile_codes::bad_size,
          size ? fmt::format("'{}' is nothing", key) : size.error().message, "write a size such as 128 KiB");
    return {};
  }

  void error(const Mark& mark, std::string_view code, std::string message, std::string help) {
    findings_.error(mark, {code, std::move(message), std::move(help)});
  }

  Findings& findings_;
  const Environment none_;
};

ProfileReading read(Findings& findings, const SourceFiles::File& file) {
  ProfileReading result;
  if (file.document) {
    const std::string stem = std::filesystem::path(findings.source_name(file.source)).stem().string();
    result.profile = Reader(findings).read(file.document->root(), stem);
  }
  result.diagnostics = findings.take();
  return result;
}

}  // namespace

ProfileReading read_profile_file(const std::filesystem::path& path) {
  Findings findings;
  SourceFiles files(std::nullopt, findings);
  return read(findings, files.add_file(path));
}

ProfileReading read_profile_text(std::string_view text, const std::string& name_for_messages) {
  Findings findings;
  SourceFiles files(std::nullopt, findings);
  return read(findings, files.add_text(std::string(text), name_for_messages, "text"));
}

}  // namespace espalier::profile
