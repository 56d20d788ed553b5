// NCCL graph XML, as NCCL_GRAPH_FILE is read: the order of GPUs in each ring. Elements and attributes: NCCL's
// src/graph/search.cc.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "schedule/formats/writers.h"
#include "schedule/formats/written_channels.h"
#include "topology/routes.h"

namespace espalier {
namespace {

using Ring = std::vector<Rank>;

constexpr std::int64_t max_channels = 32;  ///< Of NCCL.

tl::unexpected<Error> no_rings(std::string what, std::string help = "plan with -a ring") {
  return fail(ErrorCode::unsupported, "NCCL graph XML has rings, and " + std::move(what), std::move(help));
}

/// What one channel moves in one way, copying or adding: from which rank to which, and how much.
struct ChannelUse {
  std::vector<Rank> next, before;
  std::vector<std::int64_t> units;

  explicit ChannelUse(std::size_t ranks) : next(ranks), before(ranks), units(ranks, 0) {}

  /// Whether it still has one way from each rank and one to each.
  bool add(Rank from, Rank to, std::int64_t length) {
    if (!next[from.index()].is_none() && next[from.index()] != to) return false;
    if (!before[to.index()].is_none() && before[to.index()] != from) return false;
    next[from.index()] = to;
    before[to.index()] = from;
    units[from.index()] += length;
    return true;
  }

  /// The ranks in the order in which data passes them, rank 0 first; nothing when it does not pass all in one chain.
  [[nodiscard]] std::optional<Ring> ring() const {
    const auto first = std::ranges::find_if(before, [](Rank rank) { return rank.is_none(); });
    Ring ring{Rank(first == before.end() ? 0 : static_cast<std::size_t>(first - before.begin()))};
    while (ring.size() < next.size()) {
      const Rank to = next[ring.back().index()];
      if (to.is_none() || to == ring.front()) return std::nullopt;
      ring.push_back(to);
    }
    std::ranges::rotate(ring, std::ranges::min_element(ring));
    return ring;
  }
};

/// The rings of a plan with how much each carries.
Result<std::map<Ring, std::int64_t>> find_rings(const Schedule& schedule, std::size_t ranks) {
  std::map<std::pair<ChannelId, Action>, ChannelUse> uses;
  for (const Transfer& transfer : schedule.transfers) {
    const auto [use, is_new] = uses.try_emplace({transfer.channel(), transfer.action()}, ranks);
    std::int64_t length = 0;
    for (std::uint32_t i = 0; i < transfer.slice_count; ++i) {
      length += schedule.slices[transfer.first_slice.index() + i].length;
    }
    if (!use->second.add(schedule.src(transfer), schedule.dst(transfer), length)) {
      return no_rings("the plan has trees that branch");
    }
  }
  std::map<Ring, std::int64_t> rings;
  for (const auto& [channel, use] : uses) {
    auto ring = use.ring();
    if (!ring) return no_rings("the plan has chains that do not pass every rank");
    rings[*std::move(ring)] += std::ranges::max(use.units);
  }
  if (rings.empty()) return no_rings("the plan has none");
  return rings;
}

/// How many of NCCL's channels each ring gets: every channel carries the same, so of at most 32 the number with which
/// the ring that gets most too much gets least too much; the fewest where several are as good.
std::vector<std::int64_t> share_channels(const std::map<Ring, std::int64_t>& rings) {
  double total = 0;
  for (const auto& [ring, units] : rings) total += static_cast<double>(units);
  std::vector<std::int64_t> best;
  double least = 0;
  for (std::int64_t channels = 1; channels <= max_channels; ++channels) {
    std::vector<std::int64_t> counts;
    std::vector<std::pair<double, std::size_t>> rests;
    std::int64_t left = channels;
    for (const auto& [ring, units] : rings) {
      const double exact = static_cast<double>(units) / total * static_cast<double>(channels);
      counts.push_back(static_cast<std::int64_t>(exact + 1e-9));
      left -= counts.back();
      rests.emplace_back(static_cast<double>(counts.back()) - exact, rests.size());
    }
    std::ranges::sort(rests);
    for (std::size_t i = 0; left > 0; ++i, --left) ++counts[rests[i].second];
    double overload = 0;
    auto count = counts.begin();
    for (const auto& [ring, units] : rings) {
      const double share = static_cast<double>(*count++) / static_cast<double>(channels);
      overload = std::max(overload, share * total / static_cast<double>(units));
    }
    constexpr double better = 1e-6;
    if (!best.empty() && overload >= least - better) continue;
    best = std::move(counts);
    least = overload;
  }
  return best;
}

/// How often each link is used when every ring passes all of its pairs once.
Result<double> slowest_share(const std::vector<std::pair<Ring, std::int64_t>>& rings, const Topology& topology,
                             bool& is_nvlink) {
  std::vector<std::int64_t> uses(topology.link_count(), 0);
  std::map<std::pair<Rank, Rank>, std::uint32_t> passes;
  for (const auto& [ring, count] : rings) {
    for (std::size_t i = 0; i < ring.size(); ++i) {
      const Rank from = ring[i], to = ring[(i + 1) % ring.size()];
      for (std::int64_t k = 0; k < count; ++k) {
        const auto route = find_route(topology, from, to, {.variant = passes[{from, to}]++});
        if (!route)
          return no_rings(topology.rank_name(from) + " reaches " + topology.rank_name(to) + " through ranks only");
        for (const LinkId link : route->links) {
          ++uses[link.index()];
          const std::string& name = topology.link(link).link_class;
          is_nvlink = is_nvlink && (name.starts_with("nvlink") || name.starts_with("xgmi"));
        }
      }
    }
  }
  double least = 0;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    if (uses[i] == 0) continue;
    const double share =
        static_cast<double>(topology.link(LinkId(i)).bandwidth().bytes_per_second) / static_cast<double>(uses[i]) / 1e9;
    least = least == 0 ? share : std::min(least, share);
  }
  return least;
}

/// What is lost besides links and chunks: how much each ring carries, where channels of one size cannot say it.
std::vector<std::string> lost_by_rings(const Schedule& schedule,
                                       const std::vector<std::pair<Ring, std::int64_t>>& rings,
                                       const std::map<Ring, std::int64_t>& units, std::string_view format) {
  std::vector<std::string> lost = lost_by(schedule, format);
  double all_units = 0, all_channels = 0;
  for (const auto& [ring, channels] : rings) {
    all_units += static_cast<double>(units.at(ring));
    all_channels += static_cast<double>(channels);
  }
  double most = 0;
  for (const auto& [ring, channels] : rings) {
    const double planned = static_cast<double>(units.at(ring)) / all_units;
    most = std::max(most, std::abs(static_cast<double>(channels) / all_channels - planned) / planned);
  }
  constexpr double negligible = 0.001;
  if (most > negligible) {
    lost.push_back(
        fmt::format("channels carry equal shares: of {} the nearest leave a ring {:.1f} % off what it carries "
                    "in the plan",
                    max_channels, 100 * most));
  }
  return lost;
}

}  // namespace

Result<ExportedFile> write_nccl_graph(const Schedule& schedule, const Topology& topology) {
  constexpr std::string_view format = "NCCL graph XML";
  if (auto refused = refuse_relays(schedule, topology, format); !refused) return tl::unexpected(refused.error());
  if (auto refused = refuse_inputs(schedule, format); !refused) return tl::unexpected(refused.error());
  const std::size_t ranks = topology.rank_count();
  std::set<std::string> hosts;
  for (std::size_t i = 0; i < ranks; ++i) hosts.insert(topology.node(topology.node_of(Rank(i))).host);
  if (hosts.size() > 1) {
    return no_rings(
        fmt::format("{} has {} hosts: it does not say how machines follow each other", topology.name(), hosts.size()),
        "plan for one of them (--ranks)");
  }
  const auto found = find_rings(schedule, ranks);
  if (!found) return tl::unexpected(found.error());
  std::vector<std::pair<Ring, std::int64_t>> rings;
  std::int64_t channels = 0;
  const std::vector<std::int64_t> counts = share_channels(*found);
  for (const auto& [ring, units] : *found) {
    const std::int64_t count = counts[rings.size()];
    rings.emplace_back(ring, count);
    channels += count;
  }
  bool is_nvlink = true;
  const auto speed = slowest_share(rings, topology, is_nvlink);
  if (!speed) return tl::unexpected(speed.error());
  const char* const type = is_nvlink ? "NVL" : "SYS";
  std::string text = fmt::format(
      "<graphs version=\"1\">\n  <graph id=\"0\" pattern=\"4\" crossnic=\"0\" nchannels=\"{}\" speedintra=\"{:g}\" "
      "speedinter=\"{:g}\" latencyinter=\"0\" typeintra=\"{}\" typeinter=\"PIX\" samechannels=\"0\">\n",
      channels, *speed, *speed, type);
  for (const auto& [ring, count] : rings) {
    for (std::int64_t k = 0; k < count; ++k) {
      text += "    <channel>\n";
      for (const Rank rank : ring) text += fmt::format("      <gpu dev=\"{:#x}\"/>\n", rank.index());
      text += "    </channel>\n";
    }
  }
  text += "  </graph>\n</graphs>\n";
  return ExportedFile{"", std::move(text), lost_by_rings(schedule, rings, *found, format)};
}

}  // namespace espalier
