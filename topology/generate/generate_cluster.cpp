#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "topology/generate/generate.h"
#include "topology/topology_builder.h"

namespace espalier {
namespace {

class ClusterGenerator {
 public:
  explicit ClusterGenerator(const ClusterOptions& options) : options_(options) {}

  Result<Topology> make() {
    if (auto checked = check(); !checked) return tl::unexpected(checked.error());
    if (auto planned = plan_fabric(); !planned) return tl::unexpected(planned.error());
    for (std::int64_t box = 0; box < options_.boxes; ++box) add_box(box);
    join_fabric();
    return std::move(builder_).build(fmt::format("cluster-{}x{}", options_.boxes, options_.gpus));
  }

 private:
  static tl::unexpected<Error> refuse(const std::string& message, const std::string& help) {
    return fail(ErrorCode::invalid_input, message, help);
  }

  Result<void> check() {
    const std::pair<const char*, std::int64_t> counts[] = {
        {"boxes", options_.boxes},
        {"gpus", options_.gpus},
        {"nics", options_.nics},
        {"spines", options_.spines},
        {"cores", options_.cores},
        {"oversubscription", options_.oversubscription.down},
        {"oversubscription", options_.oversubscription.up},
        {"core-oversubscription", options_.core_oversubscription.down},
        {"core-oversubscription", options_.core_oversubscription.up}};
    for (const auto& [name, count] : counts) {
      if (auto checked = check_count(name, count, 1, max_generated_nodes); !checked) return checked;
    }
    for (const Wire* wire : {&options_.nvlink, &options_.pcie, &options_.nic}) {
      if (auto checked = check_wire(*wire); !checked) return checked;
    }
    pcie_switches_ = options_.pcie_switches == 0 ? options_.nics : options_.pcie_switches;
    boxes_per_pod_ = options_.boxes_per_pod == 0 ? options_.boxes : options_.boxes_per_pod;
    boxes_per_leaf_ = options_.boxes_per_leaf == 0 ? boxes_per_pod_ : options_.boxes_per_leaf;
    if (pcie_switches_ < 1 || options_.gpus % pcie_switches_ != 0 || options_.nics % pcie_switches_ != 0) {
      return refuse(fmt::format("{} GPUs and {} NICs do not spread evenly over {} PCIe switches", options_.gpus,
                                options_.nics, pcie_switches_),
                    "choose --pcie-switches so that it divides both");
    }
    if (options_.levels < 1 || options_.levels > 3) {
      return refuse(fmt::format("{} levels of switches", options_.levels), "write 1, 2 or 3");
    }
    if (boxes_per_leaf_ < 1 || options_.boxes % boxes_per_leaf_ != 0 || boxes_per_pod_ < 1 ||
        options_.boxes % boxes_per_pod_ != 0 || boxes_per_pod_ % boxes_per_leaf_ != 0) {
      return refuse(fmt::format("{} boxes do not make whole leaves of {} and pods of {}", options_.boxes,
                                boxes_per_leaf_, boxes_per_pod_),
                    "--boxes-per-leaf divides --boxes-per-pod, and that --boxes");
    }
    if (options_.levels == 1 && boxes_per_leaf_ != options_.boxes) {
      return refuse("one level of switches does not join several leaves", "add --levels 2");
    }
    if (options_.levels < 3 && boxes_per_pod_ != options_.boxes) {
      return refuse("pods are joined by a third level of switches", "add --levels 3");
    }
    const __int128 leaves = static_cast<__int128>(options_.boxes / boxes_per_leaf_) * leaves_per_group();
    const __int128 in_box = options_.gpus + options_.nics + pcie_switches_ + 2;
    const __int128 spines = static_cast<__int128>(options_.spines) * (options_.boxes / boxes_per_pod_);
    const __int128 fabric =
        options_.levels < 2 ? 0 : leaves * options_.spines + (options_.levels < 3 ? 0 : spines * options_.cores);
    return check_generated_size(
        options_.boxes * in_box + leaves + spines + options_.cores,
        2 * (options_.boxes * (2 * static_cast<__int128>(options_.gpus) + 2 * options_.nics + pcie_switches_) +
             fabric));
  }

  [[nodiscard]] std::optional<std::int32_t> rail_of(std::int64_t number) const {
    return options_.by_box ? std::nullopt : std::optional(static_cast<std::int32_t>(number));
  }
  [[nodiscard]] std::int64_t leaves_per_group() const { return options_.by_box ? 1 : options_.nics; }
  [[nodiscard]] std::int64_t nics_per_leaf() const { return boxes_per_leaf_ * (options_.by_box ? options_.nics : 1); }

  /// What `cables` carry each that lead up from a switch with so many bytes per second below it.
  static Result<Wire> uplink(const char* link_class, __int128 below, std::int64_t cables, Oversubscription over,
                             Picoseconds latency) {
    const __int128 parts = static_cast<__int128>(cables) * over.down;
    if (below * over.up % parts != 0) {
      return refuse(
          fmt::format("{} cables of class {} do not get a whole number of bytes per second each", cables, link_class),
          "choose numbers of switches that divide the rate below them");
    }
    return Wire{{static_cast<std::int64_t>(below * over.up / parts)}, latency, link_class};
  }

  Result<void> plan_fabric() {
    const __int128 below = static_cast<__int128>(options_.nic.bandwidth.bytes_per_second) * nics_per_leaf();
    if (options_.levels < 2) return {};
    auto up = uplink("uplink", below, options_.spines, options_.oversubscription, options_.nic.latency);
    if (!up) return tl::unexpected(up.error());
    uplink_ = *std::move(up);
    if (auto checked = check_wire(uplink_); !checked || options_.levels < 3) return checked;
    const std::int64_t leaves = boxes_per_pod_ / boxes_per_leaf_ * leaves_per_group();
    auto core = uplink("core", static_cast<__int128>(uplink_.bandwidth.bytes_per_second) * leaves, options_.cores,
                       options_.core_oversubscription, options_.nic.latency);
    if (!core) return tl::unexpected(core.error());
    core_ = *std::move(core);
    return check_wire(core_);
  }

  /// GPUs behind one NVSwitch; PCIe switches with as many GPUs and NICs each, below one CPU.
  void add_box(std::int64_t number) {
    const std::string box = fmt::format("box{}", number);
    const NodeId nvswitch = builder_.forwarder(NodeKind::switch_node, box + ".nvswitch", box);
    const NodeId cpu = builder_.forwarder(NodeKind::cpu, box + ".cpu", box);
    const std::int64_t gpus = options_.gpus / pcie_switches_, nics = options_.nics / pcie_switches_;
    for (std::int64_t p = 0; p < pcie_switches_; ++p) {
      const NodeId pcie = builder_.forwarder(NodeKind::pcie, fmt::format("{}.pcie{}", box, p), box);
      builder_.cable(pcie, cpu, options_.pcie);
      for (std::int64_t i = p * gpus; i < (p + 1) * gpus; ++i) {
        const NodeId gpu = builder_.rank(fmt::format("{}.gpu{}", box, i), box);
        builder_.cable(gpu, nvswitch, options_.nvlink);
        builder_.cable(gpu, pcie, options_.pcie);
      }
      for (std::int64_t i = p * nics; i < (p + 1) * nics; ++i) {
        const NodeId nic = builder_.forwarder(NodeKind::nic, fmt::format("{}.nic{}", box, i), box, rail_of(i));
        builder_.cable(nic, pcie, options_.pcie);
        nics_.push_back(nic);
      }
    }
  }

  void join_fabric() {
    std::vector<NodeId> cores;
    if (options_.levels == 3) {
      for (std::int64_t i = 0; i < options_.cores; ++i) {
        cores.push_back(builder_.forwarder(NodeKind::switch_node, fmt::format("core{}", i)));
      }
    }
    for (std::int64_t first = 0; first < options_.boxes; first += boxes_per_pod_) {
      const std::string pod = options_.levels == 3 ? fmt::format("pod{}.", first / boxes_per_pod_) : "";
      std::vector<NodeId> spines;
      for (std::int64_t i = 0; i < options_.spines && options_.levels >= 2; ++i) {
        spines.push_back(builder_.forwarder(NodeKind::switch_node, fmt::format("{}spine{}", pod, i)));
        for (const NodeId core : cores) builder_.cable(spines.back(), core, core_);
      }
      for (std::int64_t box = first; box < first + boxes_per_pod_; box += boxes_per_leaf_) add_leaves(box, spines);
    }
  }

  /// The leaves of the boxes from one on: one, or one for each of a box's NICs.
  void add_leaves(std::int64_t first, const std::vector<NodeId>& spines) {
    for (std::int64_t rail = 0; rail < leaves_per_group(); ++rail) {
      const NodeId leaf =
          builder_.forwarder(NodeKind::switch_node, fmt::format("leaf{}", leaves_++), {}, rail_of(rail));
      for (std::int64_t box = first; box < first + boxes_per_leaf_; ++box) {
        for (std::int64_t nic = 0; nic < options_.nics; ++nic) {
          if (options_.by_box || nic == rail) {
            builder_.cable(nics_[static_cast<std::size_t>(box * options_.nics + nic)], leaf, options_.nic);
          }
        }
      }
      for (const NodeId spine : spines) builder_.cable(leaf, spine, uplink_);
    }
  }

  const ClusterOptions& options_;
  TopologyBuilder builder_;
  std::int64_t pcie_switches_ = 0, boxes_per_leaf_ = 0, boxes_per_pod_ = 0;
  Wire uplink_, core_;
  std::vector<NodeId> nics_;
  std::int64_t leaves_ = 0;
};

}  // namespace

Result<Topology> generate_cluster(const ClusterOptions& options) { return ClusterGenerator(options).make(); }

}  // namespace espalier
