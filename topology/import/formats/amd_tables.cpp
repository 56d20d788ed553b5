#include "topology/import/formats/amd_tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "topology/import/formats/gpu_names.h"
#include "topology/import/lines.h"
#include "topology/import/presets.h"

namespace espalier {
namespace {

class AmdDraft {
 public:
  AmdDraft(const AmdTables& tables, const std::string& file) : tables_(tables) { draft_.file = file; }

  Draft make(std::string_view text) {
    find_lightest();
    build();
    name_gpus(amd_gpu_in(text));
    warn_of_counts();
    return std::move(draft_);
  }

 private:
  /// Where xGMI joins all GPUs to all, there is a link a pair (MI300X); elsewhere pairs have one to four (MI250).
  void warn_of_counts() {
    std::size_t pairs = 0;
    for (const DraftLink& link : draft_.links) pairs += link.medium == Medium::xgmi ? 1 : 0;
    if (pairs == 0 || pairs == tables_.types.size() * (tables_.types.size() - 1) / 2) return;
    draft_.warn(import_codes::left_out, 0, "it does not say how many xGMI links a pair of GPUs has: one is counted",
                "dies of one MI250 have four, others up to two; `espalier topo detect` on the machine counts them");
  }

  /// Drivers call any path over xGMI one hop: then weights alone tell which of them pass other GPUs.
  void warn_of_hops() {
    bool has_xgmi = false, all_one = true;
    for (std::size_t a = 0; a < tables_.types.size(); ++a) {
      for (std::size_t b = a + 1; b < tables_.types.size(); ++b) {
        has_xgmi = has_xgmi || tables_.types[a][b] == "XGMI";
        all_one = all_one && (tables_.types[a][b] != "XGMI" || is_one_hop_of_xgmi(a, b));
      }
    }
    if (tables_.types.size() < 3 || !tables_.weights.empty() || !has_xgmi || !all_one) return;
    draft_.warn(import_codes::left_out, 0, "it has no weights: all GPUs that xGMI joins count as neighbours",
                "hops do not tell the links of MI250 apart; copy all that rocm-smi --showtopo prints");
  }

  void build() {
    warn_of_hops();
    if (tables_.types.size() > 1 && tables_.numa_nodes.size() < tables_.types.size()) {
      draft_.warn(import_codes::left_out, 0,
                  tables_.numa_nodes.empty() ? "it does not say next to which NUMA nodes the GPUs are"
                                             : "it does not say of all GPUs next to which NUMA node they are",
                  "node 0 was taken; copy the lines 'GPU[0] : (Topology) Numa Node: 0' of rocm-smi --showtopo as well");
    }
    std::map<std::int64_t, std::size_t> cpus;
    for (std::size_t i = 0; i < tables_.types.size(); ++i) {
      draft_.add({.id = fmt::format("gpu{}", i),
                  .is_rank = true,
                  .bus = tables_.buses.empty() ? std::string() : tables_.buses[i]});
    }
    for (std::size_t i = 0; i < tables_.types.size(); ++i) {
      const auto numa = tables_.numa_nodes.find(static_cast<std::int64_t>(i));
      const std::int64_t node = numa == tables_.numa_nodes.end() ? 0 : numa->second;
      auto cpu = cpus.find(node);
      if (cpu == cpus.end()) {
        cpu = cpus.emplace(node, draft_.add({.id = fmt::format("cpu{}", node), .kind = NodeKind::cpu})).first;
        for (const auto& [other, place] : cpus) {
          if (other != node) draft_.links.push_back({.tail = place, .head = cpu->second, .medium = Medium::smp});
        }
      }
      draft_.links.push_back({.tail = i, .head = cpu->second, .medium = Medium::pcie});
    }
    for (std::size_t a = 0; a < tables_.types.size(); ++a) {
      for (std::size_t b = a + 1; b < tables_.types.size(); ++b) {
        if (are_neighbours(a, b)) draft_.links.push_back({.tail = a, .head = b, .medium = Medium::xgmi});
      }
    }
  }

  /// Reports name the model, of which the tables say nothing.
  void name_gpus(const std::string& model) {
    const GpuGeneration* const generation = find_generation(model);
    const Bandwidth rate = xgmi_rate_of(generation == nullptr ? std::string_view(model) : generation->code);
    for (DraftNode& node : draft_.nodes) {
      if (!node.is_rank) continue;
      node.model = model;
      if (rate.bytes_per_second > 0) node.link_rate = Known<Bandwidth>{rate, Origin::preset, model};
    }
  }

  [[nodiscard]] bool is_one_hop_of_xgmi(std::size_t a, std::size_t b) const {
    return tables_.types[a][b] == "XGMI" && (tables_.hops.empty() || tables_.hops[a][b] == "1");
  }

  /// xGMI over other GPUs passes their own links. Drivers count it as one hop, too; its weight then is a multiple of
  /// that of one link (15).
  [[nodiscard]] bool are_neighbours(std::size_t a, std::size_t b) const {
    if (!is_one_hop_of_xgmi(a, b)) return false;
    const auto weight = weight_of(a, b);
    return !weight || *weight < 2 * lightest_;
  }

  [[nodiscard]] std::optional<std::int64_t> weight_of(std::size_t a, std::size_t b) const {
    return tables_.weights.empty() ? std::nullopt : whole_number(tables_.weights[a][b]);
  }

  void find_lightest() {
    for (std::size_t a = 0; a < tables_.types.size(); ++a) {
      for (std::size_t b = a + 1; b < tables_.types.size(); ++b) {
        if (const auto weight = weight_of(a, b); is_one_hop_of_xgmi(a, b) && weight && *weight > 0) {
          lightest_ = lightest_ == 0 ? *weight : std::min(lightest_, *weight);
        }
      }
    }
  }

  const AmdTables& tables_;
  Draft draft_;
  std::int64_t lightest_ = 0;  // Of xGMI links; 0: no weights are known.
};

}  // namespace

bool AmdTables::are_whole() const {
  const auto is_square = [this](const Cells& cells) {
    return cells.size() == types.size() &&
           std::ranges::all_of(cells, [&](const auto& row) { return row.size() == types.size(); });
  };
  return !types.empty() && is_square(types) && (hops.empty() || is_square(hops)) &&
         (weights.empty() || is_square(weights));
}

Draft draft_of(const AmdTables& tables, std::string_view text, const std::string& file) {
  return AmdDraft(tables, file).make(text);
}

}  // namespace espalier
