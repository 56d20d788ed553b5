#include "planners/nccl/search/nccl_box.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "planners/nccl/search/processor.h"
#include "topology/link_kind.h"

namespace espalier::planners {
namespace {

constexpr float no_limit = 5000;  // GB/s
constexpr double giga = 1e9;

double nominal_rate(const Topology& topology, LinkId link) {
  return static_cast<double>(topology.link(link).seen_rate().bytes_per_second) / giga;
}

/// What NCCL counts of PCIe: 12 GB/s for sixteen lanes of the third generation, twice that for each further one;
/// whatever part of its rate (15.75 GB/s) a machine's file names.
float counted_pcie(double nominal) {
  constexpr double close = 0.05;
  for (const double sixteen : {12.0, 15.75}) {
    const double steps = std::round(std::log2(nominal / sixteen));
    const double exact = sixteen * std::exp2(steps);
    if (std::abs(nominal - exact) <= close * exact) return static_cast<float>(12.0 * std::exp2(steps));
  }
  return static_cast<float>(nominal * 12 / 15.75);
}

/// Sixteen lanes of the PCIe that GPUs of a generation have.
float slot_of(int capability) { return capability >= 90 ? 48 : capability >= 80 ? 24 : 12; }

/// The number that a name ends in.
std::optional<std::uint32_t> number_at_end(std::string_view name) {
  std::size_t first = name.size();
  while (first > 0 && name[first - 1] >= '0' && name[first - 1] <= '9') --first;
  if (first == name.size() || name.size() - first > 6) return std::nullopt;
  std::uint32_t number = 0;
  for (const char digit : name.substr(first)) number = number * 10 + static_cast<std::uint32_t>(digit - '0');
  return number;
}

}  // namespace

/// Builds a box in the order in which NCCL does, as the order of links decides between equals.
class NcclBoxMaker {
 public:
  NcclBoxMaker(const Topology& topology, const std::vector<Rank>& ranks, bool is_one_of_several, const NcclEra& era)
      : topology_(topology),
        is_rank_(topology.node_count()),
        is_in_(topology.node_count()),
        place_(topology.node_count(), absent) {
    box_.era_ = era;
    box_.is_inter_ = is_one_of_several;
    for (const Rank rank : ranks) {
      ranks_.push_back(topology.node_of(rank));
      is_rank_[ranks_.back().index()] = true;
    }
  }

  std::optional<NcclBox> make() {
    if (!gather()) return std::nullopt;
    add_processors();
    for (const NodeId processor : own_processors_) grow(processor, place_[processor.index()]);
    grow_rest();
    if (box_.gpus_.size() != ranks_.size()) return std::nullopt;
    add_direct_nets();
    add_nvlinks();
    join_processors();
    for (const std::uint32_t processor : box_.processors_) sort_below(processor, absent);
    if (box_.is_inter_ && box_.nets_.empty()) return std::nullopt;
    constexpr std::uint32_t keeps_nets = 2028;  // Whether a machine that is alone keeps its NICs.
    if (!box_.is_inter_ && box_.era_.version < keeps_nets) box_.nets_.clear();
    box_.find_paths();
    return std::move(box_);
  }

 private:
  static constexpr std::uint32_t absent = ~std::uint32_t{0};
  using Kind = BoxNode::Kind;

  [[nodiscard]] const Node& node(NodeId id) const { return topology_.node(id); }

  /// Everything that ranks reach without passing the network or GPUs that are no ranks.
  bool gather() {
    std::vector<NodeId> waiting = ranks_;
    for (const NodeId rank : ranks_) {
      if (node(rank).kind != NodeKind::gpu) return false;
      is_in_[rank.index()] = true;
    }
    inside_ = ranks_;
    while (!waiting.empty()) {
      const NodeId at = waiting.back();
      waiting.pop_back();
      for (const LinkId id : topology_.out_links(at)) {
        const NodeId far = topology_.link(id).head;
        if (is_in_[far.index()] || kind_of(topology_, id) == LinkKind::network) continue;
        if (topology_.link(id).link_class.find("xgmi") != std::string::npos) return false;
        if (node(far).is_rank) return false;  // Of another machine.
        if (node(far).kind == NodeKind::gpu) continue;
        is_in_[far.index()] = true;
        inside_.push_back(far);
        waiting.push_back(far);
      }
    }
    std::ranges::sort(inside_);
    return true;
  }

  std::uint32_t add(Kind kind) {
    box_.nodes_.push_back({kind, {}});
    return static_cast<std::uint32_t>(box_.nodes_.size() - 1);
  }

  /// NVLinks to the same end add up; links of a node are sorted by rate.
  void connect(std::uint32_t from, std::uint32_t to, BoxLink::Kind kind, float rate) {
    std::vector<std::uint32_t>& out = box_.nodes_[from].out;
    auto at = std::ranges::find_if(
        out, [&](std::uint32_t id) { return box_.links_[id].to == to && box_.links_[id].kind == kind; });
    if (at == out.end()) {
      box_.links_.push_back({from, to, 0, kind, 0});
      const auto id = static_cast<std::uint32_t>(box_.links_.size() - 1);
      for (std::uint32_t back = 0; back < id; ++back) {
        BoxLink& other = box_.links_[back];
        if (other.from != to || other.to != from || other.kind != kind) continue;
        box_.links_[id].back = back;
        other.back = id;
      }
      at = out.insert(out.end(), id);
    }
    box_.links_[*at].rate += rate;
    while (at != out.begin() && box_.links_[*std::prev(at)].rate < box_.links_[*at].rate) {
      std::iter_swap(at, std::prev(at));
      --at;
    }
  }

  void connect_both(std::uint32_t a, std::uint32_t b, BoxLink::Kind kind, float rate) {
    connect(a, b, kind, rate);
    connect(b, a, kind, rate);
  }

  void add_processors() {
    std::optional<Processor> first;
    for (const NodeId id : inside_) {
      if (node(id).kind != NodeKind::cpu) continue;
      if (!first) first = parse_processor(node(id).model);
      own_processors_.push_back(id);
      place_[id.index()] = add(Kind::processor);
      box_.processors_.push_back(place_[id.index()]);
    }
    processor_ = first && first->is_known ? *first : usual_processor(box_.era_.capability);
    box_.maker_ = processor_.maker;
    if (!box_.processors_.empty()) return;
    box_.processors_.push_back(add(Kind::processor));
  }

  /// What a node has below it on PCIe, in the order of its links.
  [[nodiscard]] std::vector<std::pair<NodeId, float>> pcie_neighbours(NodeId of) const {
    std::vector<std::pair<NodeId, float>> found;
    for (const LinkId id : topology_.out_links(of)) {
      const NodeId far = topology_.link(id).head;
      if (!is_in_[far.index()] || kind_of(topology_, id) != LinkKind::pcie) continue;
      found.emplace_back(far, counted_pcie(nominal_rate(topology_, id)));
    }
    return found;
  }

  void grow(NodeId parent, std::uint32_t place) {
    for (const auto& [child, rate] : pcie_neighbours(parent)) {
      if (place_[child.index()] != absent) continue;
      grow_child(child, place, rate);
    }
  }

  void grow_child(NodeId child, std::uint32_t parent, float rate) {
    switch (node(child).kind) {
      case NodeKind::gpu: add_gpu(child, parent, rate); return;
      case NodeKind::nic: add_nic(child, parent, rate); return;
      case NodeKind::pcie: {
        const std::uint32_t place = place_[child.index()] = add(Kind::pcie);
        grow(child, place);
        connect_both(place, parent, BoxLink::Kind::pcie, rate);
        return;
      }
      default: return;
    }
  }

  [[nodiscard]] std::uint32_t number_of(NodeId gpu) const {
    if (!box_.era_.numbers_by_name) return static_cast<std::uint32_t>(std::ranges::find(ranks_, gpu) - ranks_.begin());
    return number_at_end(node(gpu).id).value_or(static_cast<std::uint32_t>(box_.gpus_.size()));
  }

  void add_gpu(NodeId gpu, std::uint32_t parent, float rate) {
    const std::uint32_t place = place_[gpu.index()] = add(Kind::gpu);
    const Rank rank = topology_.rank_of(gpu);
    box_.gpus_.push_back({place, rank, number_of(gpu)});
    connect_both(place, parent, BoxLink::Kind::pcie, rate);
  }

  [[nodiscard]] double network_rate(NodeId of) const {
    double rate = 0;
    for (const LinkId id : topology_.out_links(of)) {
      if (kind_of(topology_, id) == LinkKind::network) rate += nominal_rate(topology_, id);
    }
    return rate;
  }

  /// The rate of a NIC's port: of its cables, or that of its slot where the file says nothing of a network. A port
  /// without a cable is not active among others that are, and NCCL leaves it out.
  void add_nic(NodeId nic, std::uint32_t parent, float slot) {
    const double port = network_rate(nic);
    if (port <= 0 && box_.is_inter_) return;
    const std::uint32_t place = place_[nic.index()] = add(Kind::nic);
    add_net(place, port > 0 ? static_cast<float>(port) : slot, card_of(nic));
    connect_both(place, parent, BoxLink::Kind::pcie, node_is_processor(parent) ? no_limit : slot);
  }

  [[nodiscard]] bool node_is_processor(std::uint32_t place) const { return box_.nodes_[place].kind == Kind::processor; }

  /// A NIC is a card of its own, but where files give it the GUID and port of others. Up to 2.27 NCCL reads GUIDs that
  /// begin with 0x alone, and takes all others for the same.
  [[nodiscard]] std::string card_of(NodeId nic) const {
    const std::string& model = node(nic).model;
    constexpr std::uint32_t reads_all = 2028;
    if (model.empty()) return node(nic).id;
    if (box_.era_.version >= reads_all || model.starts_with("guid-0x")) return model;
    return "guid-0" + model.substr(std::min(model.size(), model.rfind("-port-")));
  }

  void add_net(std::uint32_t nic, float port, std::string card) {
    const std::uint32_t net = add(Kind::net);
    box_.nets_.push_back({net, port, -1, std::move(card)});
    connect_both(nic, net, BoxLink::Kind::network, port);
  }

  /// Of machines whose processors are not said: PCIe switches, and GPUs and NICs that share a slot, under the one.
  void grow_rest() {
    const std::uint32_t root = box_.processors_.front();
    for (const NodeId id : inside_) {
      if (node(id).kind != NodeKind::pcie || place_[id.index()] != absent) continue;
      float most = slot_of(box_.era_.capability);
      for (const auto& [far, rate] : pcie_neighbours(id)) most = std::max(most, rate);
      grow_child(id, root, most);
    }
    for (const NodeId rank : ranks_) {
      if (place_[rank.index()] != absent) continue;
      const auto beside = pcie_neighbours(rank);
      float rate = slot_of(box_.era_.capability);
      if (!beside.empty()) rate = beside.front().second;
      if (beside.empty()) {
        add_gpu(rank, root, rate);
        continue;
      }
      const std::uint32_t slot = add(Kind::pcie);
      add_gpu(rank, slot, rate);
      for (const auto& [far, of_far] : beside) {
        if (place_[far.index()] == absent) grow_child(far, slot, of_far);
      }
      connect_both(slot, root, BoxLink::Kind::pcie, rate);
    }
  }

  /// GPUs whose cables lead to the network themselves have a NIC of their own.
  void add_direct_nets() {
    for (const NodeId rank : ranks_) {
      const double port = network_rate(rank);
      if (port <= 0) continue;
      const std::uint32_t nic = add(Kind::nic);
      add_net(nic, static_cast<float>(port), node(rank).id);
      for (const std::uint32_t id : box_.nodes_[place_[rank.index()]].out) {
        if (box_.links_[id].kind != BoxLink::Kind::pcie) continue;
        connect_both(nic, box_.links_[id].to, BoxLink::Kind::pcie, static_cast<float>(port));
        break;
      }
    }
  }

  void add_nvlinks() {
    for (const NcclBox::Gpu& gpu : box_.gpus_) {
      const NodeId id = topology_.node_of(gpu.rank);
      for (const LinkId link : topology_.out_links(id)) {
        if (kind_of(topology_, link) != LinkKind::fabric) continue;
        const NodeId far = topology_.link(link).head;
        if (!is_in_[far.index()]) continue;
        const auto rate = static_cast<float>(nominal_rate(topology_, link) * box_.era_.nvlink);
        if (is_rank_[far.index()]) {
          connect(gpu.node, place_[far.index()], BoxLink::Kind::nvlink, rate);
        } else if (node(far).kind == NodeKind::switch_node) {
          if (!box_.switch_) {
            box_.switch_ = add(Kind::nvswitch);
            box_.switch_adds_ = node(far).multicast && node(far).reduction;
          }
          connect_both(gpu.node, *box_.switch_, BoxLink::Kind::nvlink, rate);
        }
      }
    }
  }

  void join_processors() {
    const std::vector<std::uint32_t>& all = box_.processors_;
    for (const std::uint32_t a : all) {
      for (const std::uint32_t b : all) {
        if (a != b) connect(a, b, BoxLink::Kind::processors, processor_.between);
      }
    }
  }

  /// The link to the root of PCIe is each node's last.
  void sort_below(std::uint32_t place, std::uint32_t above) {
    std::vector<std::uint32_t>& out = box_.nodes_[place].out;
    std::ranges::stable_partition(out, [&](std::uint32_t id) { return box_.links_[id].to != above; });
    for (const std::uint32_t id : std::vector<std::uint32_t>(out)) {
      const BoxLink& link = box_.links_[id];
      if (link.kind == BoxLink::Kind::pcie && link.to != above) sort_below(link.to, place);
    }
  }

  const Topology& topology_;
  NcclBox box_;
  std::vector<NodeId> ranks_, own_processors_;
  std::vector<bool> is_rank_, is_in_;
  std::vector<NodeId> inside_;  // all that are in, in the order of the topology
  std::vector<std::uint32_t> place_;
  Processor processor_;
};

std::optional<NcclBox> NcclBox::make(const Topology& topology, const std::vector<Rank>& ranks, bool is_one_of_several,
                                     const NcclEra& era) {
  return NcclBoxMaker(topology, ranks, is_one_of_several, era).make();
}

}  // namespace espalier::planners
