#include "sweep/spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "planners/damage/failures.h"
#include "schedule/traffic/traffic_matrix.h"
#include "topology/yaml/write_topology.h"

namespace espalier::sweep {
namespace {

/// One value of the axis of failures.
struct FailureCase {
  std::string name;
  Parts parts;
  std::uint64_t alike = 1;
  std::string impossible;
};

Result<Rank> find_root(const Topology& topology, const std::string& text) {
  if (text.empty()) return Rank(0);
  const NodeId node = topology.find_node(text);
  if (!node.is_none() && !topology.rank_of(node).is_none()) return topology.rank_of(node);
  std::size_t number = 0;
  const auto [rest, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc() || rest != text.data() + text.size() || number >= topology.rank_count()) {
    return espalier::fail(ErrorCode::invalid_input, fmt::format("-r: '{}' is not a rank of {}", text, topology.name()),
                          fmt::format("give a number from 0 to {}, or a node such as {}", topology.rank_count() - 1,
                                      topology.rank_name(Rank(0))));
  }
  return Rank(number);
}

/// The parts that a list of names such as "gpu0-gpu1,nic3" stands for; nothing fails twice.
Result<FailureCase> find_named(const Topology& topology, const std::string& names) {
  FailureCase found;
  std::set<std::uint32_t> nodes, links;
  for (std::size_t begin = 0; begin <= names.size();) {
    const std::string name = names.substr(begin, names.find(',', begin) - begin);
    begin += name.size() + 1;
    const auto parts = find_parts(topology, name);
    if (!parts) return tl::unexpected(parts.error());
    for (const NodeId node : parts->nodes) {
      if (nodes.insert(node.value()).second) found.parts.nodes.push_back(node);
    }
    for (const LinkId link : parts->links) {
      if (links.insert(link.value()).second) found.parts.links.push_back(link);
    }
    found.name += (found.name.empty() ? "" : ", ") + name;
  }
  return found;
}

std::vector<FailureCase> host_failures(const Topology& topology) {
  std::vector<FailureCase> hosts;
  std::map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < topology.node_count(); ++i) {
    const std::string& host = topology.node(NodeId(i)).host;
    if (host.empty()) continue;
    const auto [place, is_new] = index.emplace(host, hosts.size());
    if (is_new) hosts.push_back({host, {}, 1, {}});
    hosts[place->second].parts.nodes.emplace_back(i);
  }
  return hosts;
}

/// The failures of one machine for collectives with this root.
class FailureLister {
 public:
  FailureLister(const Spec& spec, const Topology& topology) : spec_(spec), topology_(topology) {}

  /// `are_unlike`: like parts carry unlike traffic, so that each is a case of its own.
  std::vector<FailureCase> list(Rank root, bool are_unlike) {
    std::vector<FailureCase> cases;
    if (spec_.whole) cases.push_back({});
    for (const std::string& names : spec_.without) {
      auto found = find_named(topology_, names);
      cases.push_back(found ? std::move(*found) : FailureCase{names, {}, 1, found.error().message});
    }
    const FailureKinds& kinds = spec_.failures;
    if (kinds.hosts) std::ranges::copy(host_failures(topology_), std::back_inserter(cases));
    if (!kinds.links && !kinds.nodes && !kinds.ranks) return cases;
    for (planners::Failure& failure : planners::single_failures(topology_, {kinds.ranks, root, are_unlike})) {
      const bool is_link = failure.parts.nodes.empty();
      const bool is_rank = !is_link && topology_.node(failure.parts.nodes.front()).is_rank;
      if (is_link ? !kinds.links : is_rank ? !kinds.ranks : !kinds.nodes) continue;
      cases.push_back({failure.name, std::move(failure.parts), failure.alike.size(), {}});
    }
    return cases;
  }

 private:
  const Spec& spec_;
  const Topology& topology_;
};

/// A spec's values in the order in which keys sort them, each once.
struct Inner {
  explicit Inner(const Spec& spec)
      : algorithms(spec.algorithms.begin(), spec.algorithms.end()),
        sizes(spec.sizes.begin(), spec.sizes.end()),
        chunks(spec.chunks.begin(), spec.chunks.end()),
        copy_engines(spec.copy_engines.begin(), spec.copy_engines.end()),
        jitters(spec.jitters_ppm.begin(), spec.jitters_ppm.end()),
        seeds(spec.seeds.begin(), spec.seeds.end()) {
    for (const sim::ModelKind model : spec.models) models.emplace(to_string(model));
    for (const sim::Protocol protocol : spec.protocols) protocols.emplace(to_string(protocol));
  }

  std::set<std::string> algorithms;
  std::set<Bytes> sizes;
  std::set<std::optional<Bytes>> chunks;
  std::set<std::string> models;
  std::set<std::string> protocols;
  std::set<std::uint32_t> copy_engines;
  std::set<std::int32_t> jitters;
  std::set<std::uint64_t> seeds;

  [[nodiscard]] std::uint64_t count() const {
    const std::uint64_t noises = (jitters.size() - jitters.count(0)) * seeds.size() + jitters.count(0);
    return algorithms.size() * sizes.size() * chunks.size() * models.size() * protocols.size() * copy_engines.size() *
           noises;
  }

  /// The keys of a unit; `common` has what they share.
  [[nodiscard]] std::vector<Key> keys(const Key& common) const {
    std::vector<Key> keys;
    keys.reserve(count());
    Key key = common;
    for (const std::string& algorithm : algorithms) {
      key.algorithm = algorithm;
      for (const Bytes size : sizes) {
        key.size = size;
        for (const std::optional<Bytes>& chunk : chunks) {
          key.chunk = chunk;
          for (const std::string& model : models) {
            key.model = model;
            add_endpoints(key, keys);
          }
        }
      }
    }
    return keys;
  }

 private:
  void add_endpoints(Key& key, std::vector<Key>& keys) const {
    for (const std::string& protocol : protocols) {
      key.protocol = protocol;
      for (const std::uint32_t engines : copy_engines) {
        key.copy_engines = engines;
        add_noises(key, keys);
      }
    }
  }

  void add_noises(Key& key, std::vector<Key>& keys) const {
    for (const std::int32_t jitter : jitters) {
      key.jitter_ppm = jitter;
      key.seed = 0;
      if (jitter == 0) {
        keys.push_back(key);
        continue;
      }
      for (const std::uint64_t seed : seeds) {
        key.seed = seed;
        keys.push_back(key);
      }
    }
  }
};

Result<void> check_failures_exist(const Spec& spec) {
  for (const std::string& names : spec.without) {
    Error error;
    const bool somewhere = std::ranges::any_of(spec.machines, [&](const Machine& machine) {
      const auto found = find_named(machine.topology, names);
      if (!found && error.message.empty()) error = found.error();
      return found.has_value();
    });
    if (!somewhere) return espalier::fail(error.code, "--without: " + error.message, error.help);
  }
  return {};
}

/// Adds the units of one machine, collective and matrix.
Result<void> add_units(const Spec& spec, std::size_t machine, CollectiveKind kind, const Inner& inner, Key common,
                       std::vector<Unit>& units) {
  const Topology& topology = spec.machines[machine].topology;
  common.collective = to_string(kind);
  std::vector<std::int64_t> blocks;
  if (!common.matrix.empty()) {
    auto traffic = load_traffic(common.matrix, topology.rank_count());
    if (!traffic) {
      return espalier::fail(traffic.error().code, fmt::format("{}: {}", topology.name(), traffic.error().message),
                            traffic.error().help);
    }
    blocks = std::move(traffic->blocks);
  }
  Rank root;
  if (has_root(kind)) {
    const auto found = find_root(topology, spec.root);
    if (!found) return tl::unexpected(found.error());
    root = *found;
    common.root = topology.rank_name(root);
  }
  for (FailureCase& failure : FailureLister(spec, topology).list(root, !blocks.empty())) {
    common.failure = failure.name;
    if ((units.size() + 1) * inner.count() > max_rows) {
      return espalier::fail(ErrorCode::too_large, fmt::format("the sweep has more than {} rows", max_rows),
                            "sweep fewer values at a time; files of rows can be merged");
    }
    units.push_back({machine, std::move(failure.parts), std::move(failure.impossible), failure.alike, kind, blocks,
                     root, inner.keys(common)});
  }
  return {};
}

}  // namespace

Result<std::vector<Unit>> list_units(const Spec& spec) {
  if (auto exist = check_failures_exist(spec); !exist) return tl::unexpected(exist.error());
  const Inner inner(spec);
  std::vector<Unit> units;
  if (inner.count() == 0) return units;
  for (std::size_t i = 0; i < spec.machines.size(); ++i) {
    const Machine& machine = spec.machines[i];
    Key common;
    common.topology = machine.topology.name();
    common.digest = digest_of(write_topology(machine.topology));
    common.parameters = machine.parameters;
    common.profile = machine.profile;
    common.type = to_string(spec.type);
    for (const CollectiveKind kind : spec.collectives) {
      for (const std::string& matrix : has_blocks(kind) ? spec.matrices : std::vector<std::string>{""}) {
        common.matrix = matrix;
        if (auto added = add_units(spec, i, kind, inner, common, units); !added) return tl::unexpected(added.error());
      }
    }
  }
  std::ranges::stable_sort(units, {}, [](const Unit& unit) -> const Key& { return unit.keys.front(); });
  const auto repeated =
      std::ranges::unique(units, {}, [](const Unit& unit) -> const Key& { return unit.keys.front(); });
  units.erase(repeated.begin(), repeated.end());
  return units;
}

}  // namespace espalier::sweep
