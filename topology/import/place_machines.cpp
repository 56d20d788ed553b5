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
      if (result_.nodes.size() + machine_.nodes.size() > max_imported_nodes) {
        return fail(ErrorCode::too_large, fmt::format("the cluster has more than {} nodes", max_imported_nodes),
                    "import fewer machines");
      }
      place_on(node);
    }
    ends_.resize(fabric_.nodes.size());
    for (std::size_t i = 0; i < fabric_.nodes.size(); ++i) place_node(i);
    for (const DraftLink& link : fabric_.links) place_link(link);
    return std::move(result_);
  }

 private:
  void place_on(const DraftNode& fabric_host) {
    const std::string& host = fabric_host.host;
    std::vector<std::size_t> place(machine_.nodes.size());
    for (std::size_t i = 0; i < machine_.nodes.size(); ++i) {
      if (machine_.nodes[i].joins_hosts) {
        place[i] = place_in_domain(i, fabric_host.domain);
        continue;
      }
      DraftNode node = machine_.nodes[i];
      node.host = host;
      place[i] = result_.add(std::move(node));
    }
    for (DraftLink link : machine_.links) {
      link.tail = place[link.tail];
      link.head = place[link.head];
      result_.links.push_back(std::move(link));
    }
    for (const std::size_t nic : nics_) nics_of_[host].push_back(place[nic]);
  }

  /// A switch that machines share, once for each domain.
  std::size_t place_in_domain(std::size_t i, const std::string& domain) {
    const auto [known, is_new] = switches_.try_emplace({domain, i}, result_.nodes.size());
    if (is_new) {
      DraftNode node = machine_.nodes[i];
      if (!domain.empty()) node.id = domain + "." + node.id;
      result_.add(std::move(node));
    }
    return known->second;
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
  std::map<std::pair<std::string, std::size_t>, std::size_t> switches_;  // By domain and place in the machine.
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

void assign_domains(Draft& fabric, std::int64_t hosts_per_domain) {
  const auto size = static_cast<std::size_t>(hosts_per_domain);
  std::map<std::string, std::size_t> sizes;
  for (const DraftNode& node : fabric.nodes) sizes[node.domain] += node.is_rank ? 1U : 0U;
  std::vector<DraftNode*> hosts;  // Whose domain is not known, or larger than a rack.
  for (DraftNode& node : fabric.nodes) {
    if (node.is_rank && (node.domain.empty() || sizes[node.domain] > size)) hosts.push_back(&node);
  }
  if (hosts.empty()) return;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    hosts[i]->domain = hosts.size() > size ? fmt::format("rack{}", i / size) : std::string();
  }
  if (hosts.size() <= size) return;
  fabric.warn(import_codes::nvlink_domain, 0,
              fmt::format("no file says which of {} hosts share an NVLink domain: {} that follow each other do",
                          hosts.size(), size),
              "Slurm's topology.conf says it, with a block for each domain");
}

}  // namespace espalier
