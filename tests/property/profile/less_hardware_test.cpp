#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <optional>
#include <tuple>

#include "forecast/candidate_runs.h"
#include "planners/damage/failures.h"
#include "planners/nccl/search/nccl_box.h"
#include "planners/planner.h"
#include "profile/nccl_choices.h"
#include "tests/property/profile/machines.h"
#include "tests/property/profile/unlike_boxes.h"

/// ESPALIER_LESS_HARDWARE: how many seeds; ESPALIER_LESS_HARDWARE_FROM: the first; ESPALIER_LESS_HARDWARE_SHOWN: every
/// answer that less hardware makes faster is shown, by how much, also where that has a reason.
namespace espalier::profile {
namespace {

std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// Those that machines.h has, and the clusters and generations after them.
const std::vector<test::Machine>& more_machines() {
  static const std::vector<test::Machine> all = [] {
    std::vector<test::Machine> machines = test::machines();
    for (const test::Machine& machine : std::initializer_list<test::Machine>{{"dgx-b200-cluster", "nccl-blackwell"},
                                                                             {"dgx-b200-cluster", "nccl-blackwell", 2},
                                                                             {"dgx-h200-cluster", "nccl-hopper"},
                                                                             {"dgx-b300-cluster", "nccl-blackwell", 2},
                                                                             {"dgx-b200", "nccl-blackwell"},
                                                                             {"dgx-h200-cluster", "nccl-hopper", 2},
                                                                             {"dgx-h200-cluster", "nccl-hopper", 8},
                                                                             {"dgx-a100-x16", "nccl-ampere", 2},
                                                                             {"dgx-h200", "nccl-hopper"},
                                                                             {"l40s-pcie", "nccl-ampere"},
                                                                             {"mi250-x2", "rccl-mi300x"},
                                                                             {"dgx1v-degraded", "nccl-volta"}}) {
      machines.push_back(machine);
    }
    return machines;
  }();
  return all;
}

/// What of a run is compared.
struct Known {
  double seconds = 0;
  Bytes chunk;
};

/// By algorithm and protocol; for "nccl" and "auto", as they choose.
using Times = std::map<std::string, Known>;

/// What less hardware may gain in the same chunks, as a part. Chunks come in whole numbers and equal parts, so that
/// fewer channels may fill their pipelines a little better. The rings of a broadcast begin at its root, wherever in
/// their order that is, and hand on whole chunks: other rings, as a damaged machine has, may meet less in queues on
/// their way from there, and thin ones hand on less at once (0.18 in 2,000 damages).
/// `unlike`: where boxes are unlike a damage moves which of them the slowest is, and a GPU that loses its NVLink or
/// PCIe, which NCCL then reaches by the processor, has no such way here: other rings and trees stand in.
double may_gain(CollectiveKind kind, bool unlike) { return has_root(kind) ? 0.15 : unlike ? 0.1 : 0.05; }

/// What is planned anew may have other trees of the same rate, which take fewer or longer steps.
constexpr double planned_anew = 0.1;

/// A question, whatever the network.
struct Asked {
  CollectiveKind kind;
  Bytes size;
  forecast::ProfiledRuns::Options how;

  [[nodiscard]] Result<planners::Candidates> candidates(const Topology& topology,
                                                        std::span<const planners::Planner> planners) const {
    planners::CandidateOptions options;
    options.for_choice = true;
    options.paths = how.profile.paths;
    std::optional<planners::NcclEra> era;
    if (how.profile.tuner) era = era_of(*how.profile.tuner);
    if (era) options.context.nccl = &*era;
    return planners::make_candidates(topology, test::on(topology, kind), planners, options);
  }

  /// One of NCCL's algorithms with a protocol, in chunks of this size or its own; nothing where it has no costs.
  [[nodiscard]] std::optional<Known> run(const Topology& topology, const planners::Candidates& candidates,
                                         const std::string& algorithm, std::optional<sim::Protocol> protocol,
                                         std::optional<Bytes> chunk) const {
    forecast::ProfiledRuns::Options options = how;
    options.protocol = protocol;
    options.pacing.chunk = chunk;
    const auto ran = forecast::ProfiledRuns(topology, candidates, options).run(algorithm, size);
    if (!ran) return std::nullopt;
    return Known{ran->report.elapsed.seconds(), ran->report.chunk};
  }
};

constexpr std::array protocols = {sim::Protocol::ll, sim::Protocol::ll128, sim::Protocol::simple};

/// How long NCCL's own schedules take; `chunks`: by way, in the place of NCCL's own chunks.
Times times_of_nccl(const Topology& topology, const Asked& asked, const Times& chunks) {
  Times times;
  const auto candidates = asked.candidates(topology, planners::nccl_planners());
  if (!candidates) return times;
  const bool has_pxn = candidates->find("nccl/pxn") != nullptr;
  for (const auto& candidate : candidates->made) {
    if (has_pxn && candidate.planner == "nccl/p2p") continue;  // NCCL takes PXN where there is any.
    for (const sim::Protocol protocol : protocols) {
      const std::string name = candidate.planner + "/" + std::string(sim::to_string(protocol));
      const auto chunk = chunks.find(name);
      if (!chunks.empty() && chunk == chunks.end()) continue;
      const auto fixed = chunks.empty() ? std::nullopt : std::optional(chunk->second.chunk);
      if (const auto known = asked.run(topology, *candidates, candidate.planner, protocol, fixed)) times[name] = *known;
    }
  }
  return times;
}

Times time_of_auto(const Topology& topology, const Asked& asked) {
  Times times;
  const auto candidates = asked.candidates(topology, planners::all_planners());
  if (!candidates) return times;
  if (const auto known = asked.run(topology, *candidates, "auto", std::nullopt, std::nullopt)) times["auto"] = *known;
  return times;
}

/// By way, the part of the time before that is gained after.
std::map<std::string, double> gains(const Times& before, const Times& after) {
  std::map<std::string, double> found;
  for (const auto& [way, known] : after) {
    const auto was = before.find(way);
    if (was != before.end()) found[way] = 1 - known.seconds / was->second.seconds;
  }
  return found;
}

struct Damaged {
  Topology whole;
  Topology rest;
  std::string what;
};

/// A network without one part of some class, or without one to three parts.
std::optional<Damaged> any_damaged(Random& random, Topology whole) {
  if (random.below(2) == 0) {
    const auto failures = planners::single_failures(whole);
    const planners::Failure& failure = test::one_of(random, failures);
    auto rest = without(whole, failure.parts, failure.name);
    if (!rest) return std::nullopt;
    return Damaged{std::move(whole), *std::move(rest), " --without " + failure.name};
  }
  const std::vector<Cable> cables = find_cables(whole);
  const Parts parts = test::parts_of(test::any_damage(random, whole, cables), cables);
  auto rest = without(whole, parts, "some");
  if (!rest) return std::nullopt;
  std::string what;
  for (const NodeId node : parts.nodes) what += " --without " + whole.node(node).id;
  for (const LinkId link : parts.links) what += " --without " + whole.link_name(link);
  return Damaged{std::move(whole), *std::move(rest), what};
}

constexpr std::array all_sizes = {Bytes{8 << 10},  Bytes{64 << 10}, Bytes{256 << 10}, Bytes{1 << 20}, Bytes{4 << 20},
                                  Bytes{16 << 20}, Bytes{64 << 20}, Bytes{256 << 20}, Bytes{1 << 30}};
constexpr std::array all_kinds = {CollectiveKind::all_reduce,     CollectiveKind::all_gather,
                                  CollectiveKind::reduce_scatter, CollectiveKind::broadcast,
                                  CollectiveKind::reduce,         CollectiveKind::all_to_all};

/// How many ways were compared; `with_auto`: the best schedule, too.
std::size_t compare(const Damaged& damaged, const Asked& asked, const std::string& what, bool with_auto, bool unlike) {
  const bool is_shown = std::getenv("ESPALIER_LESS_HARDWARE_SHOWN") != nullptr;
  std::size_t compared = 0;
  const Times after = times_of_nccl(damaged.rest, asked, {});
  const Times before = times_of_nccl(damaged.whole, asked, {});
  // Of fewer channels each has more to carry, so NCCL may take larger chunks (docs/profiles.md, "Chunks").
  const Times in_the_same_chunks = times_of_nccl(damaged.whole, asked, after);
  for (const auto& [way, gain] : gains(in_the_same_chunks, after)) {
    const double with_its_own = gains(before, after)[way];
    ++compared;
    const double unexplained = std::min(gain, with_its_own);
    if (is_shown && unexplained > 0.002) {
      std::cout << what << way << " gains " << with_its_own << ", in the same chunks " << gain << "\n" << std::flush;
    }
    EXPECT_LE(unexplained, may_gain(asked.kind, unlike)) << what << way;
  }
  if (!with_auto) return compared;
  for (const auto& [way, gain] : gains(time_of_auto(damaged.whole, asked), time_of_auto(damaged.rest, asked))) {
    if (is_shown && gain > 0.002) std::cout << what << way << " gains " << gain << "\n" << std::flush;
    EXPECT_LE(gain, planned_anew) << what << way;
  }
  return compared;
}

/// `network`: a name, a whole network and what software there is.
template <class Network>
void compare_all(std::uint64_t few, bool unlike, const Network& network) {
  const std::uint64_t first = number_of("ESPALIER_LESS_HARDWARE_FROM", 1000);
  const std::uint64_t seeds = number_of("ESPALIER_LESS_HARDWARE", few);
  std::size_t compared = 0;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    Random random(seed);
    auto [name, whole, how] = network(random);
    const auto damaged = any_damaged(random, std::move(whole));
    if (!damaged) continue;
    const Asked asked{test::one_of(random, all_kinds), test::one_of(random, all_sizes), how};
    const std::string what = "seed " + std::to_string(seed) + ": " + name + " " + std::string(to_string(asked.kind)) +
                             " " + std::to_string(asked.size.count) + damaged->what + " ";
    compared += compare(*damaged, asked, what, random.below(3) == 0, unlike);
  }
  EXPECT_GT(compared, seeds);
}

TEST(Damage, LessHardwareIsNeverFaster) {
  compare_all(48, false, [](Random& random) {
    const test::Machine& machine = test::one_of(random, more_machines());
    return std::tuple(machine.name, test::read_machine(machine), test::options_of(machine));
  });
}

TEST(Damage, LessHardwareIsNeverFasterAmongUnlikeBoxes) {
  compare_all(24, true, [](Random& random) {
    Topology whole = test::unlike_boxes(random);
    return std::tuple(std::string("unlike boxes"), std::move(whole),
                      test::options_of({"", random.below(2) == 0 ? "nccl-ampere" : "nccl-hopper"}));
  });
}

}  // namespace
}  // namespace espalier::profile
