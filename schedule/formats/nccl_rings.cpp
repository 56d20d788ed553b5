// NCCL graph XML, what NCCL_GRAPH_DUMP_FILE writes: the channels that NCCL found on a machine. Elements and attributes:
// NCCL's src/graph/search.cc. Graph 0 has the rings.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "schedule/formats/formats.h"
#include "schedule/formats/nccl_log.h"
#include "schedule/trees/tree_schedule.h"
#include "topology/import/xml_file.h"
#include "topology/routes.h"

namespace espalier {
namespace {

using pugi::xml_node;

constexpr std::size_t max_rings = 256;
constexpr std::string_view ring_pattern = "4";

class NcclRingsReader {
 public:
  NcclRingsReader(const XmlFile& xml, const std::string& file, const Topology& topology)
      : xml_(xml), file_(file), topology_(topology) {}

  /// Rings as orders of ranks.
  Result<std::vector<std::vector<Rank>>> read() {
    if (std::string_view(xml_.root().name()) != "graphs") {
      return xml_.fail_at(xml_.root(), "a NCCL graph file is a <graphs>", "leave --collective out for MSCCL XML");
    }
    for (const xml_node graph : xml_.root().children("graph")) {
      if (graph.attribute("pattern").value() != ring_pattern) continue;
      for (const xml_node channel : graph.children("channel")) {
        if (auto added = add_ring(channel); !added) return tl::unexpected(added.error());
      }
    }
    if (rings_.empty())
      return xml_.fail_at(xml_.root(), "there are no rings in it: no graph of pattern 4", "dump all graphs of NCCL");
    return number_ranks();
  }

 private:
  Result<void> add_ring(xml_node channel) {
    if (channel.child("net")) {
      auto refused =
          xml_.fail_at(channel, "it leaves the machine by a NIC", "NCCL does not write how machines follow each other");
      refused.value().code = ErrorCode::unsupported;
      return refused;
    }
    if (rings_.size() == max_rings)
      return xml_.fail_at(channel, fmt::format("there are more than {} rings", max_rings), "use fewer");
    std::vector<std::int64_t>& ring = rings_.emplace_back();
    for (const xml_node gpu : channel.children("gpu")) {
      const auto number = read_device(gpu);
      if (!number) return tl::unexpected(number.error());
      if (std::ranges::find(ring, *number) != ring.end())
        return xml_.fail_at(gpu, "the GPU is in the ring already", "correct it");
      ring.push_back(*number);
      if (ring.size() > topology_.rank_count()) break;
    }
    if (ring.size() == topology_.rank_count()) return {};
    return xml_.fail_at(
        channel,
        fmt::format("the ring has {} GPUs, and {} has {} ranks", ring.size(), topology_.name(), topology_.rank_count()),
        "name the machine that it was found on, or choose its ranks with --ranks");
  }

  /// NCCL reads numbers of devices as hexadecimal, with or without 0x.
  Result<std::int64_t> read_device(xml_node gpu) const {
    std::string_view digits = gpu.attribute("dev").value();
    if (digits.starts_with("0x")) digits.remove_prefix(2);
    std::int64_t value = 0;
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    constexpr std::int64_t most = 65'535;
    if (parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size() && value >= 0 && value <= most)
      return value;
    return xml_.fail_at(gpu, "its dev is no number", "write dev=\"0x1\"");
  }

  /// Devices in their order are the ranks in theirs: a job may have some of a machine's GPUs only.
  Result<std::vector<std::vector<Rank>>> number_ranks() const {
    std::vector<std::int64_t> devices = rings_.front();
    std::ranges::sort(devices);
    std::vector<std::vector<Rank>> orders;
    for (const auto& ring : rings_) {
      std::vector<Rank>& order = orders.emplace_back();
      for (const std::int64_t device : ring) {
        const auto place = std::ranges::lower_bound(devices, device);
        if (place == devices.end() || *place != device) {
          return fail(ErrorCode::invalid_input, fmt::format("{}: its rings are of unlike GPUs", file_),
                      "dump one communicator");
        }
        order.emplace_back(static_cast<std::size_t>(place - devices.begin()));
      }
    }
    return orders;
  }

  const XmlFile& xml_;
  const std::string& file_;
  const Topology& topology_;
  std::vector<std::vector<std::int64_t>> rings_;
};

/// Rings as trees: for each rank the path all around from it, and the one all around to it.
class RingForest {
 public:
  RingForest(const Topology& topology, const std::string& file) : topology_(topology), file_(file) {}

  Result<Forest> make(const std::vector<std::vector<Rank>>& rings, bool with_in_trees, bool with_out_trees) {
    Forest forest;
    for (const std::vector<Rank>& ring : rings) {
      auto links = links_of(ring);
      if (!links) return tl::unexpected(links.error());
      const std::size_t ranks = ring.size();
      for (std::size_t first = 0; first < ranks; ++first) {
        Arborescence out{.root = ring[first], .weight = 1, .edges = {}}, in = out;
        for (std::size_t step = 0; step + 1 < ranks; ++step) {
          const std::size_t at = (first + step) % ranks, back = (first + ranks - 1 - step) % ranks;
          out.edges.push_back({ring[at], ring[(at + 1) % ranks], (*links)[at]});
          in.edges.push_back({ring[(back + 1) % ranks], ring[back], (*links)[back]});
        }
        if (with_out_trees) forest.out_trees.push_back(std::move(out));
        if (with_in_trees) forest.in_trees.push_back(std::move(in));
      }
    }
    return forest;
  }

 private:
  /// The links from each rank of a ring to the next. Rings that pass a pair again take its equally good routes in turn.
  Result<std::vector<std::vector<LinkId>>> links_of(const std::vector<Rank>& ring) {
    std::vector<std::vector<LinkId>> links;
    for (std::size_t i = 0; i < ring.size(); ++i) {
      const Rank from = ring[i], to = ring[(i + 1) % ring.size()];
      const auto route = find_route(topology_, from, to, {.variant = uses_[{from, to}]++});
      if (!route) {
        return fail(ErrorCode::infeasible,
                    fmt::format("{}: {} reaches {} only through other ranks", file_, topology_.rank_name(from),
                                topology_.rank_name(to)),
                    "name the machine that the rings were found on");
      }
      links.push_back(route->links);
    }
    return links;
  }

  const Topology& topology_;
  const std::string& file_;
  std::map<std::pair<Rank, Rank>, std::uint32_t> uses_;
};

Result<std::vector<std::vector<Rank>>> read_rings(std::string_view text, const std::string& file,
                                                  const Topology& topology, std::optional<ScheduleForm> source) {
  if (source ? source == ScheduleForm::nccl_log : is_nccl_log(text)) {
    const auto numbers = read_nccl_log_rings(text, file, topology.rank_count());
    if (!numbers) return tl::unexpected(numbers.error());
    std::vector<std::vector<Rank>> rings;
    for (const auto& ring : numbers->orders) {
      std::vector<Rank>& order = rings.emplace_back();
      for (const std::int64_t rank : ring) order.emplace_back(static_cast<std::size_t>(rank));
    }
    return rings;
  }
  const auto xml = XmlFile::parse(text, file);
  if (!xml) return tl::unexpected(xml.error());
  return NcclRingsReader(*xml, file, topology).read();
}

}  // namespace

std::string missing_nccl_rings(std::string_view text, const std::string& file, const Topology& topology) {
  if (!is_nccl_log(text)) return {};
  const auto rings = read_nccl_log_rings(text, file, topology.rank_count());
  if (!rings || rings->orders.size() >= rings->channels) return {};
  return fmt::format(
      "{} has {} of NCCL's {} rings, which carry all data here: lines 'Channel NN/{} : ...' are cut or left out", file,
      rings->orders.size(), rings->channels, rings->channels);
}

Result<Schedule> import_nccl_rings(std::string_view text, const std::string& file, const Topology& topology,
                                   CollectiveKind kind, std::optional<ScheduleForm> source) {
  const bool gathers = kind == CollectiveKind::all_gather || kind == CollectiveKind::all_reduce;
  const bool adds = kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_reduce;
  if (!gathers && !adds) {
    return fail(ErrorCode::unsupported, fmt::format("NCCL's rings are not read for {}", to_string(kind)),
                "all_gather, reduce_scatter and all_reduce are");
  }
  const auto rings = read_rings(text, file, topology, source);
  if (!rings) return tl::unexpected(rings.error());
  const auto forest = RingForest(topology, file).make(*rings, adds, gathers);
  if (!forest) return tl::unexpected(forest.error());
  const auto collective = make_collective(kind, topology.rank_count(), std::nullopt);
  if (!collective) return tl::unexpected(collective.error());
  return schedule_from_trees(*collective, topology, "nccl_rings", *forest);
}

}  // namespace espalier
