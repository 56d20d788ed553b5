#pragma once

// Tested by: tests/unit/planners/nccl/search/nccl_search_test.cpp

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "topology/topology.h"

namespace espalier::planners {

/// Which NCCL, on which GPUs: what the constants of its search depend on.
struct NcclEra {
  std::uint32_t version = 2030;  ///< "2.30" (profile::version_number).
  int capability = 80;           ///< Compute capability of the GPUs, times ten: 70, 80, 90, 100.
  double nvlink = 0.8;           ///< The part of NVLink's nominal rate that it counts.
  bool numbers_by_name = true;   ///< GPUs are numbered as their names end; else in the order of their ranks.
};

/// How two devices of a machine are joined, from near to far: through NVLink, through one GPU's NVLinks (nvb), a
/// PCIe switch (pix) or several (pxb), through another GPU to its NIC (pxn), a processor (phb), several (sys).
enum class BoxWay : std::uint8_t { same, nvl, nvb, c2c, pix, pxb, p2c, pxn, phb, sys, net, none };
/// "LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS": NCCL's own names.
std::string_view to_string(BoxWay way);

/// Makers of processors, as far as NCCL tells them apart.
enum class ProcessorMaker : std::uint8_t { intel, amd, other };

struct BoxLink {
  enum class Kind : std::uint8_t { nvlink, c2c, pcie, processors, network };
  std::uint32_t from = 0, to = 0;
  std::uint32_t back = 0;  ///< The link in the other direction.
  Kind kind = Kind::pcie;
  float rate = 0;  ///< GB/s that are left.
};

struct BoxNode {
  enum class Kind : std::uint8_t { gpu, pcie, nvswitch, processor, nic, net };
  Kind kind = Kind::gpu;
  std::vector<std::uint32_t> out;  ///< Links, the fastest first, that to the root of PCIe last.
};

/// A way from one node to another.
struct BoxPath {
  std::vector<std::uint32_t> links;
  float rate = 0;
  BoxWay way = BoxWay::none;
  [[nodiscard]] int count() const { return static_cast<int>(links.size()); }
};

/// One machine as NCCL's search sees it: the GPUs that are ranks, what joins them, the NICs. Rates are those that NCCL
/// counts with, in GB/s.
class NcclBox {
 public:
  struct Gpu {
    std::uint32_t node = 0;
    Rank rank;
    std::uint32_t number = 0;  ///< Its driver's number.
  };
  struct Net {
    std::uint32_t node = 0;
    float rate = 0;      ///< Of its port, GB/s that are left.
    int local_gpu = -1;  ///< The GPU that is nearest and prefers it.
    std::string card;    ///< NICs of one card share its rate.
  };

  /// Of the ranks of one machine. Nothing where the machine is not of a kind that NCCL's rules are known for: its ranks
  /// are no GPUs, or its links join GPUs of other machines.
  static std::optional<NcclBox> make(const Topology& topology, const std::vector<Rank>& ranks, bool is_one_of_several,
                                     const NcclEra& era);

  [[nodiscard]] const NcclEra& era() const { return era_; }
  [[nodiscard]] bool is_one_of_several() const { return is_inter_; }
  [[nodiscard]] bool switch_adds() const { return switch_adds_; }
  [[nodiscard]] bool has_switch() const { return switch_.has_value(); }
  [[nodiscard]] ProcessorMaker maker() const { return maker_; }
  [[nodiscard]] const std::vector<Gpu>& gpus() const { return gpus_; }
  [[nodiscard]] std::vector<Net>& nets() { return nets_; }
  [[nodiscard]] const std::vector<Net>& nets() const { return nets_; }
  [[nodiscard]] std::uint32_t switch_node() const { return *switch_; }
  [[nodiscard]] const BoxNode& node(std::uint32_t node) const { return nodes_[node]; }
  [[nodiscard]] BoxLink& link(std::uint32_t link) { return links_[link]; }
  [[nodiscard]] const BoxLink& link(std::uint32_t link) const { return links_[link]; }

  /// From a node to a GPU, NIC (as `Net::node`), processor or switch.
  [[nodiscard]] const BoxPath& path(std::uint32_t from, std::uint32_t to) const { return paths_[to][from]; }
  [[nodiscard]] const BoxPath& gpu_path(std::size_t from, std::size_t to) const {
    return path(gpus_[from].node, gpus_[to].node);
  }
  [[nodiscard]] const BoxPath& to_net(std::size_t gpu, std::size_t net) const {
    return path(gpus_[gpu].node, nets_[net].node);
  }
  [[nodiscard]] const BoxPath& from_net(std::size_t net, std::size_t gpu) const {
    return path(nets_[net].node, gpus_[gpu].node);
  }

  /// The NIC that a GPU takes for a channel; nothing where no NIC is to be reached.
  [[nodiscard]] std::optional<std::uint32_t> local_net(std::size_t gpu, std::uint32_t channel) const;
  /// NICs of all GPUs or one, those that they prefer first, then as near as `way` allows.
  [[nodiscard]] std::vector<std::uint32_t> choose_nets(BoxWay way, int gpu) const;
  /// The GPUs to which a NIC is nearest.
  [[nodiscard]] std::vector<std::uint32_t> local_gpus(std::size_t net) const;

  /// The most that a path between what a channel joins has (per channel), and that a GPU has (in all).
  [[nodiscard]] float max_of_channel() const { return max_of_channel_; }
  [[nodiscard]] float max_of_gpu() const { return max_of_gpu_; }
  /// The least and the most far of the ways between GPUs, or between GPUs and NICs.
  [[nodiscard]] std::pair<BoxWay, BoxWay> gpu_ways() const;
  [[nodiscard]] std::pair<BoxWay, BoxWay> net_ways() const;
  /// Two groups of GPUs, each joined by NVLink, and none between them.
  [[nodiscard]] bool is_split() const;
  /// The least of the NICs that a GPU prefers, GB/s; 0 where it has none.
  [[nodiscard]] float min_net_rate(std::size_t gpu) const;
  /// Of GPU `gpu`'s slot.
  [[nodiscard]] float slot_rate(std::size_t gpu) const;

  /// Equal for machines that NCCL's search cannot tell apart.
  [[nodiscard]] std::string signature() const;

 private:
  friend class NcclBoxMaker;
  NcclBox() = default;

  void find_paths();
  void set_paths(std::uint32_t base);
  bool improves(const BoxPath& known, BoxWay way, float rate, int count) const;
  void divert(std::uint32_t through, std::uint32_t from, std::uint32_t to, bool through_gpu);
  void divert_distant_gpus();
  void divert_nets();
  void find_limits();
  [[nodiscard]] std::uint32_t local_processor(std::size_t gpu) const;
  [[nodiscard]] std::vector<std::uint32_t> local_nets(std::size_t gpu) const;
  [[nodiscard]] int find_local_gpu(std::size_t net) const;
  [[nodiscard]] bool is_near_net(std::size_t gpu, std::size_t net) const;

  NcclEra era_;
  bool is_inter_ = false;
  bool switch_adds_ = false;
  ProcessorMaker maker_ = ProcessorMaker::intel;
  std::optional<std::uint32_t> switch_;
  std::vector<BoxNode> nodes_;
  std::vector<BoxLink> links_;
  std::vector<Gpu> gpus_;
  std::vector<Net> nets_;
  std::vector<std::uint32_t> processors_;
  std::vector<std::vector<BoxPath>> paths_;  ///< By the node they lead to, then the node they begin at.
  float max_of_channel_ = 0, max_of_gpu_ = 0;
};

}  // namespace espalier::planners
