#pragma once

// Tested by: tests/unit/profile/profile_test.cpp

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "planners/used_paths.h"
#include "sim/core/endpoints.h"
#include "topology/link_kind.h"

namespace espalier::profile {

/// Kinds of algorithm whose costs differ.
enum class Shape : std::uint8_t { ring, tree, nvls, nvls_tree, collnet_direct, collnet_chain, pat, pxn, p2p };
inline constexpr std::array all_shapes = {
    Shape::ring,          Shape::tree, Shape::nvls, Shape::nvls_tree, Shape::collnet_direct,
    Shape::collnet_chain, Shape::pat,  Shape::pxn,  Shape::p2p};
/// "ring", "tree", "nvls", "nvls_tree", "collnet_direct", "collnet_chain", "pat", "pxn", "p2p".
std::string_view to_string(Shape shape);

inline constexpr std::int32_t whole_ppm = 1'000'000;

/// What an algorithm costs with one protocol.
struct ProtocolCosts {
  Picoseconds base;                      ///< Once per call.
  Picoseconds per_rank;                  ///< Once per call for every rank that takes part.
  std::array<Picoseconds, 3> hop;        ///< From one rank to the next, by LinkKind of the way between them.
  Picoseconds fabric_between;            ///< Of several machines, in the place of the fabric's hop; 0: as on one.
  std::int32_t payload_ppm = whole_ppm;  ///< Payload per byte on links.
  std::int32_t rate_ppm = whole_ppm;     ///< The part of what links reach that it reaches.
  std::int32_t own_ppm = 0;              ///< What a rank's own part takes of it, in transfers of as much (on_ranks).
  std::int32_t drain_ppm = 0;            ///< What a rank takes after its last chunk, in parts of a chunk's time.
  std::array<Bandwidth, 3> most;         ///< Payload that a rank moves at most, on one, two, more machines; 0: any.
  Picoseconds message;                   ///< What a chunk keeps a rank's processor busy, at both ends.
  Bytes chunk;                           ///< The most that a channel hands on at once; zero: any.
  Bytes min_chunk;                       ///< Chunks are halved down to this ...
  std::vector<std::uint32_t> in_flight;  ///< ... until a channel has so many; for each halving, the last for the rest.
  std::uint32_t under_way = 1;           ///< Hops between machines that a send's chunks make at once.
  Bytes per_channel;                     ///< Of a part of the data that a channel carries at least; zero: all channels.
  std::uint32_t since = 0;               ///< The first version that has it (version_number); 0: all.
};

/// Generations of GPU that NCCL's tuner tells apart.
enum class Generation : std::uint8_t { volta, ampere, hopper, blackwell };
inline constexpr std::array all_generations = {Generation::volta, Generation::ampere, Generation::hopper,
                                               Generation::blackwell};
/// "volta", "ampere", "hopper", "blackwell".
std::string_view to_string(Generation generation);

/// What starting a call takes before its ranks take part.
struct Launch {
  Picoseconds call;         ///< Once.
  Picoseconds per_rank;     ///< For each rank of a machine: one process that launches a kernel on each GPU.
  Picoseconds per_send;     ///< For each send of each of them, where ranks send straight to each other.
  Picoseconds per_channel;  ///< For each channel that each of them starts, elsewhere.
  Picoseconds overlap;      ///< What GPUs do of the call, or of the one before, meanwhile: so much is hidden.

  /// Of a machine of so many ranks, each of which sends so often and starts so many channels. At most what
  /// a simulation may take.
  [[nodiscard]] Picoseconds time(std::size_t ranks, std::size_t sends, std::size_t channels) const {
    const auto times = [](std::size_t count, __int128 cost) { return static_cast<__int128>(count) * cost; };
    const __int128 of_rank = per_rank.count + times(sends, per_send.count) + times(channels, per_channel.count);
    constexpr __int128 most = std::int64_t{1} << 61;
    return {static_cast<std::int64_t>(std::min(most, call.count + times(ranks, of_rank)))};
  }
  /// With what GPUs take for a call, once all of its ranks are there.
  [[nodiscard]] static Picoseconds hide(Picoseconds launch, Picoseconds gpus, Picoseconds overlap) {
    return std::max(gpus, launch + std::max(Picoseconds{}, gpus - overlap));
  }
  friend bool operator==(const Launch&, const Launch&) = default;
};

/// What NCCL's tuner picks algorithms by (nccl_tuner.h).
struct TunerModel {
  Generation generation = Generation::ampere;
  std::array<std::int32_t, 3> counted_ppm{whole_ppm, whole_ppm, whole_ppm};  ///< Of nominal rates, by LinkKind.
  std::uint32_t version = 2030;  ///< Whose constants it has (version_number).
};

/// "software", "any"; the reverse. Errors: invalid_input, naming both.
std::string_view to_string(planners::Paths paths);
Result<planners::Paths> parse_paths(std::string_view text);

/// "2.27" and "2.27.5" as 2027: major and minor version in one number. Errors: invalid_input.
Result<std::uint32_t> version_number(std::string_view text);
/// The reverse: "2.27".
std::string version_text(std::uint32_t number);

/// What software adds to what links alone would take: everything that `simulate` otherwise leaves out.
/// docs/profiles.md says how each value counts.
struct Profile {
  std::string name;
  std::string about;
  std::uint32_t channels = 1;                            ///< Of a rank: what chunks are counted by.
  std::uint32_t processors = 0;                          ///< Of a host, shared by its ranks; 0: one per rank.
  std::vector<std::pair<std::string, Launch>> launches;  ///< Ways to start a call; the first is the default.
  std::array<std::int32_t, 3> reached_ppm{whole_ppm, whole_ppm, whole_ppm};  ///< Of nominal rates, by LinkKind.
  std::int32_t switched_ppm = 0;  ///< Of the fabric's links at a switch; 0: as all others of the fabric.
  std::map<std::pair<Shape, sim::Protocol>, ProtocolCosts> ways;  ///< At least one.
  planners::Paths paths = planners::Paths::software;              ///< Which paths schedules may take.
  std::optional<TunerModel> tuner;                                ///< Absent: the software picks by what the ways say.

  /// Errors: invalid_input, naming those there are.
  [[nodiscard]] Result<Launch> launch(std::string_view name) const;

  /// Leaves the ways that a version has, and its tuner's constants. Errors: invalid_input when it has none.
  Result<void> restrict_to(std::uint32_t version);
};

}  // namespace espalier::profile
