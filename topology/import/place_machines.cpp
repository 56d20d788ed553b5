#include <fmt/format.h>

#include <map>

#include "topology/import/merge.h"

namespace espalier {
namespace {

class MachinePlacer {
 public:
  MachinePlacer(const Draft& machine, const Draft& fabric) : machine_(machine), fabric_(fabric) {
    for (std::size_t i = 0; i < machine.nodes.size(); ++i) {
      if (machine.nodes[i].kind == NodeKind::nic) nics_.push_back(i);
    }
  }

  Result<Draft> place() {
    if (nics_.empty()) {
      return fail(ErrorCode::infeasible, machine_.file + " has no NIC by which machines could be joined",
                  "import a file that has them as well, such as what `nvidia-smi topo -m` prints");
    }
    result_.file = machine_.file;
    result_.warnings = machine_.warnings;
    result_.warnings.insert(result_.warnings.end(), fabric_.warnings.begin(), fabric_.warnings.end());
    for (const DraftNode& node : fabric_.nodes) {
      if (!node.is_rank) continue;
      if (result_.nodes.size() + machine_.nodes.size() > most_imported_nodes) {
        return fail(ErrorCode::too_large, fmt::format("the cluster has more than {} nodes", most_imported_nodes),
                    "import fewer machines");
      }
      place_on(node.host);
    }
    ends_.resize(fabric_.nodes.size());
    for (std::size_t i = 0; i < fabric_.nodes.size(); ++i) place_node(i);
    for (const DraftLink& link : fabric_.links) place_link(link);
    return std::move(result_);
  }

 private:
  void place_on(const std::string& host) {
    const std::size_t first = result_.nodes.size();
    for (DraftNode node : machine_.nodes) {
      node.host = host;
      result_.add(std::move(node));
    }
    for (DraftLink link : machine_.links) {
      link.tail += first;
      link.head += first;
      result_.links.push_back(std::move(link));
    }
    for (const std::size_t nic : nics_) nics_of_[host].push_back(first + nic);
  }

  /// What stands for a node of the fabric: all NICs for a host, one of them for its NIC, itself for a switch.
  void place_node(std::size_t i) {
    const DraftNode& node = fabric_.nodes[i];
    const auto nics = nics_of_.find(node.host);
    if (nics == nics_of_.end()) {
      ends_[i] = {result_.add(node)};
    } else if (node.is_rank) {
      ends_[i] = nics->second;
    } else if (node.kind == NodeKind::nic) {
      std::size_t& next = next_nic_[node.host];
      std::size_t nic = nics->second[std::min(next, nics->second.size() - 1)];
      for (const std::size_t named : nics->second) {
        if (result_.nodes[named].id == node.id) nic = named;
      }
      if (next++ < nics->second.size() || result_.nodes[nic].id == node.id) ends_[i] = {nic};
    }
  }

  void place_link(const DraftLink& link) {
    const bool is_within =
        !fabric_.nodes[link.tail].host.empty() && fabric_.nodes[link.tail].host == fabric_.nodes[link.head].host;
    if (is_within) return;
    for (const std::size_t tail : ends_[link.tail]) {
      for (const std::size_t head : ends_[link.head]) {
        DraftLink placed = link;
        // A file that knows no rates says how many hosts a switch joins: each now has several NICs.
        const bool is_trunk =
            !nics_of_.contains(fabric_.nodes[link.tail].host) && !nics_of_.contains(fabric_.nodes[link.head].host);
        if (is_trunk && !link.bandwidth) placed.count *= static_cast<std::int64_t>(nics_.size());
        placed.tail = tail;
        placed.head = head;
        learn(placed.bandwidth, result_.nodes[tail].port);
        learn(placed.bandwidth, result_.nodes[head].port);
        result_.links.push_back(std::move(placed));
      }
    }
  }

  const Draft& machine_;
  const Draft& fabric_;
  Draft result_;
  std::vector<std::size_t> nics_;
  std::map<std::string, std::vector<std::size_t>> nics_of_;
  std::map<std::string, std::size_t> next_nic_;
  std::vector<std::vector<std::size_t>> ends_;
};

}  // namespace

Result<Draft> place_machines(const Draft& machine, const Draft& fabric) {
  return MachinePlacer(machine, fabric).place();
}

Draft one_switch(std::int64_t count) {
  Draft fabric;
  fabric.scope = Draft::Scope::fabric;
  const std::size_t hub = fabric.add({.id = "fabric", .kind = NodeKind::switch_node});
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string name = fmt::format("box{}", i);
    const std::size_t host = fabric.add({.id = name, .kind = NodeKind::cpu, .is_rank = true, .host = name});
    fabric.links.push_back({.tail = host, .head = hub, .medium = Medium::net});
  }
  return fabric;
}

}  // namespace espalier
