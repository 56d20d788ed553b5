#include "cli/reports/nccl_tuner_output.h"

#include <fmt/format.h>

#include <array>
#include <set>

#include "planners/tuning/nccl_likeness.h"

namespace espalier::cli {
namespace {

using NamePair = std::pair<std::string_view, std::string_view>;

/// As the example tuner of NCCL spells them.
constexpr std::array<NamePair, 5> tuner_algorithms = {
    {{"Ring", "ring"}, {"Tree", "tree"}, {"NVLS", "nvls"}, {"CollNet", "collnet_direct"}, {"PAT", "pat"}}};

std::string_view tuner_collective(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce: return "allreduce";
    case CollectiveKind::reduce_scatter: return "reducescatter";
    case CollectiveKind::all_gather: return "allgather";
    case CollectiveKind::broadcast: return "broadcast";
    case CollectiveKind::reduce: return "reduce";
    default: return {};
  }
}

std::size_t count_hosts(const Topology& topology) {
  std::set<std::string_view> hosts;
  for (std::size_t rank = 0; rank < topology.rank_count(); ++rank) {
    hosts.insert(topology.node(topology.node_of(Rank(rank))).host);
  }
  return hosts.size();
}

}  // namespace

Result<void> check_nccl_tuner(CollectiveKind kind) {
  if (!tuner_collective(kind).empty()) return {};
  return fail(ErrorCode::invalid_input, fmt::format("--nccl-tuner: NCCL's tuner has no {}", to_string(kind)),
              "it has all_reduce, all_gather, reduce_scatter, broadcast and reduce");
}

std::string nccl_tuner_csv(const Tuning& tuning) {
  std::string text = fmt::format(
      "# {} on {}: the algorithm of NCCL that is most like the fastest plan of each region. Protocols are not "
      "compared.\n"
      "# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff\n",
      to_string(tuning.collective.kind), tuning.topology->name());
  for (std::size_t i = 0; i < tuning.regions.size(); ++i) {
    const planners::Region& region = tuning.regions[i];
    const auto likeness = planners::nearest_nccl(region.taken->schedule, *tuning.topology);
    const std::int64_t first = region.sizes.front().size.count;
    // Neighbours that are like the same algorithm are one row.
    while (i + 1 < tuning.regions.size() &&
           planners::nearest_nccl(tuning.regions[i + 1].taken->schedule, *tuning.topology).algorithm ==
               likeness.algorithm) {
      ++i;
    }
    const bool is_last = i + 1 == tuning.regions.size();
    const std::int64_t last =
        is_last ? tuning.regions[i].sizes.back().size.count : tuning.regions[i + 1].sizes.front().size.count - 1;
    const auto* const known = std::ranges::find(tuner_algorithms, likeness.algorithm, &NamePair::first);
    if (known == tuner_algorithms.end()) {
      text += fmt::format("# from {} to {} bytes {}: {}\n", first, last, region.taken->planner, likeness.why);
      continue;
    }
    text += fmt::format("{},{},{},{},simple,-1,{},{},-1,-1\n", tuner_collective(tuning.collective.kind), first, last,
                        known->second, count_hosts(*tuning.topology), tuning.collective.rank_count);
  }
  return text;
}

}  // namespace espalier::cli
