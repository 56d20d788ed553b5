#include <fmt/format.h>

#include <charconv>

#include "base/parse_units.h"
#include "cli/output/output_file.h"
#include "cli/verbs/topo/topo.h"
#include "compute/gpu.h"
#include "topology/generate/generate.h"
#include "topology/import/presets.h"
#include "topology/yaml/write_topology.h"

namespace espalier::cli {
namespace {

using Generator = std::function<Result<Topology>()>;

/// A rate or latency flag that was not given leaves the family's default.
struct WireFlags {
  std::string bandwidth;
  std::string latency;

  void add_to(CLI::App& command, const std::string& prefix = {}, const std::string& what = "every cable") {
    command.add_option("--" + prefix + "bandwidth", bandwidth, "Rate of " + what + ", such as '25 GB/s'");
    command.add_option("--" + prefix + "latency", latency, "Latency of " + what + ", such as '1 us'");
  }

  [[nodiscard]] Result<void> apply_to(Wire& wire) const {
    if (!bandwidth.empty()) {
      const auto parsed = parse_bandwidth(bandwidth);
      if (!parsed) return tl::unexpected(parsed.error());
      wire.bandwidth = *parsed;
    }
    if (!latency.empty()) {
      const auto parsed = parse_latency(latency);
      if (!parsed) return tl::unexpected(parsed.error());
      wire.latency = *parsed;
    }
    return {};
  }
};

/// "4x4x2" as {4, 4, 2}.
Result<std::vector<std::int64_t>> parse_dims(const std::string& text) {
  std::vector<std::int64_t> dims;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find('x', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    constexpr std::size_t max_digits = 9;
    if (part.empty() || part.size() > max_digits || part.find_first_not_of("0123456789") != std::string::npos) {
      return fail(ErrorCode::invalid_input, "--dims: '" + text + "' is not a list of sizes", "write --dims 4x4x4");
    }
    dims.push_back(std::stoll(part));
    begin = end + 1;
  }
  return dims;
}

/// The same network, of whose switches these copy and add. Errors: invalid_input where there are none.
Result<Topology> with_adding_switches(const Topology& topology, const std::function<bool(const Node&)>& is_one) {
  std::vector<Node> nodes(topology.nodes().begin(), topology.nodes().end());
  bool has_switch = false;
  for (Node& node : nodes) {
    node.multicast = node.reduction = node.kind == NodeKind::switch_node && is_one(node);
    has_switch = has_switch || node.reduction;
  }
  if (!has_switch) {
    return fail(ErrorCode::invalid_input, "--in-network is of switches, and this network has none",
                "generate a cluster, rail-boxes or a fabric");
  }
  return Topology::make(topology.name(), std::move(nodes), {topology.links().begin(), topology.links().end()});
}

/// What flags say of a family's file.
struct FileFlags {
  std::string output = "-";
  std::string profile;
  std::string gpu;
  bool in_network = false;
};

/// Larger machines are written in the compact form where their boxes are alike: people read no such list.
constexpr std::size_t max_plain_nodes = 10'000;

/// One family: its verb, what makes the topology once the flags are parsed, and where the file goes.
void add_family(CLI::App& gen, Session& session, const std::string& name, const std::string& what,
                const std::function<Generator(CLI::App&, FileFlags&)>& add_flags) {
  CLI::App* command = gen.add_subcommand(name, what);
  const auto flags = std::make_shared<FileFlags>();
  const Generator generate = add_flags(*command, *flags);
  command
      ->add_option("--profile", flags->profile,
                   "What software runs there, for the file to name: a shipped profile, or a YAML file beside it")
      ->option_text("NAME|FILE");
  command
      ->add_option("--gpu", flags->gpu,
                   "What every rank computes on, for the file to name: 'espalier compute' lists them")
      ->option_text("NAME");
  command->add_flag("--in-network", flags->in_network, "Switches copy and add in the network (NVLink SHARP, SHARP)");
  command->add_option("-o,--output", flags->output, "Write to this file (- is standard output)")->option_text("FILE");
  command->callback([generate, flags, &session] {
    session.run = [generate, flags, &session] {
      if (const auto gpu = compute::find_gpu(flags->gpu); !flags->gpu.empty() && !gpu) {
        return session.console.refuse_usage({gpu.error().code, "--gpu: " + gpu.error().message, gpu.error().help});
      }
      auto topology = generate();
      if (topology && flags->in_network) topology = with_adding_switches(*topology, [](const Node&) { return true; });
      if (!topology) return session.console.refuse_usage(topology.error());
      const auto written = write_file(flags->output, [&](std::ostream& stream) -> Result<void> {
        if (session.console.json) {
          stream << write_topology_json(*topology, {}, flags->profile, flags->gpu) << "\n";
        } else if (topology->node_count() > max_plain_nodes) {
          stream << write_topology_compact(*topology, flags->profile, flags->gpu);
        } else {
          stream << write_topology(*topology, {}, flags->profile, flags->gpu);
        }
        return {};
      });
      return written ? ExitCode::ok : session.console.refuse(written.error());
    };
  });
}

/// A family whose cables are all alike.
template <class Options>
Generator with_wire(CLI::App& command, const std::shared_ptr<Options>& options,
                    Result<Topology> (*make)(const Options&)) {
  const auto wire = std::make_shared<WireFlags>();
  wire->add_to(command);
  return [options, wire, make]() -> Result<Topology> {
    const auto applied = wire->apply_to(options->wire);
    if (!applied) return tl::unexpected(applied.error());
    return make(*options);
  };
}

Generator add_grid_flags(CLI::App& command, Result<Topology> (*make)(const GridOptions&)) {
  const auto options = std::make_shared<GridOptions>();
  const auto dims = std::make_shared<std::string>("4x4");
  command.add_option("--dims", *dims, "Ranks along each dimension, such as 4x4x4")->capture_default_str();
  const Generator generate = with_wire(command, options, make);
  return [dims, options, generate]() -> Result<Topology> {
    auto parsed = parse_dims(*dims);
    if (!parsed) return tl::unexpected(parsed.error());
    options->dims = std::move(*parsed);
    return generate();
  };
}

Generator add_ring_flags(CLI::App& command, FileFlags& /*file*/) {
  const auto options = std::make_shared<RingOptions>();
  command.add_option("--ranks", options->ranks, "Ranks")->capture_default_str();
  command.add_flag("--one-way", options->one_way, "Links in one direction only");
  return with_wire(command, options, generate_ring);
}

Generator add_hypercube_flags(CLI::App& command, FileFlags& /*file*/) {
  const auto options = std::make_shared<HypercubeOptions>();
  command.add_option("--dimensions", options->dimensions, "Dimensions; 2 to this power ranks")->capture_default_str();
  return with_wire(command, options, generate_hypercube);
}

Generator add_fully_connected_flags(CLI::App& command, FileFlags& /*file*/) {
  const auto options = std::make_shared<FullyConnectedOptions>();
  command.add_option("--ranks", options->ranks, "Ranks")->capture_default_str();
  return with_wire(command, options, generate_fully_connected);
}

Generator add_fat_tree_flags(CLI::App& command, FileFlags& /*file*/) {
  const auto options = std::make_shared<FatTreeOptions>();
  command.add_option("--k", options->k, "Ports per switch; k^3/4 ranks")->capture_default_str();
  command.add_option("--oversubscription", options->oversubscription, "Ranks per uplink of an edge switch")
      ->capture_default_str();
  return with_wire(command, options, generate_fat_tree);
}

Generator add_leaf_spine_flags(CLI::App& command, FileFlags& /*file*/) {
  const auto options = std::make_shared<LeafSpineOptions>();
  command.add_option("--leaves", options->leaves, "Leaf switches")->capture_default_str();
  command.add_option("--ranks-per-leaf", options->ranks_per_leaf, "Ranks under each leaf")->capture_default_str();
  command.add_option("--spines", options->spines, "Spine switches")->capture_default_str();
  command.add_option("--oversubscription", options->oversubscription, "Rate of a leaf's ranks over its uplinks'")
      ->capture_default_str();
  return with_wire(command, options, generate_leaf_spine);
}

Generator add_dragonfly_flags(CLI::App& command, FileFlags& /*file*/) {
  const auto options = std::make_shared<DragonflyOptions>();
  const auto wire = std::make_shared<WireFlags>();
  command.add_option("--routers", options->routers, "Routers per group (a)")->capture_default_str();
  command.add_option("--ranks", options->ranks, "Ranks per router (p)")->capture_default_str();
  command.add_option("--global-links", options->global_links, "Cables to other groups per router (h)")
      ->capture_default_str();
  wire->add_to(command);
  return [options, wire]() -> Result<Topology> {
    for (Wire* kind : {&options->rank_wire, &options->local_wire, &options->global_wire}) {
      const auto applied = wire->apply_to(*kind);
      if (!applied) return tl::unexpected(applied.error());
    }
    return generate_dragonfly(*options);
  };
}

Generator add_rail_boxes_flags(CLI::App& command, FileFlags& /*file*/) {
  const auto options = std::make_shared<RailBoxesOptions>();
  const auto nvlink = std::make_shared<WireFlags>();
  const auto nic = std::make_shared<WireFlags>();
  command.add_option("--boxes", options->boxes, "Boxes")->capture_default_str();
  command.add_option("--gpus-per-box", options->gpus_per_box, "GPUs in each box")->capture_default_str();
  command.add_option("--rails", options->rails, "Rails; GPU i is on rail i mod rails")->capture_default_str();
  command.add_option("--spines", options->spines, "Spine switches that join the rails")->capture_default_str();
  nvlink->add_to(command, "nvlink-", "a GPU into the NVSwitch");
  nic->add_to(command, "nic-", "a NIC into its rail");
  return [options, nvlink, nic]() -> Result<Topology> {
    const auto nvlink_applied = nvlink->apply_to(options->nvlink);
    if (!nvlink_applied) return tl::unexpected(nvlink_applied.error());
    const auto nic_applied = nic->apply_to(options->nic);
    if (!nic_applied) return tl::unexpected(nic_applied.error());
    return generate_rail_boxes(*options);
  };
}

/// "2:1" or "2": what is below over what is above.
Result<Oversubscription> parse_oversubscription(const std::string& text) {
  Oversubscription over;
  const std::size_t colon = text.find(':');
  const auto read = [](std::string_view digits, std::int64_t& value) {
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size() && value > 0;
  };
  const std::string_view all = text;
  const bool is_good = colon == std::string::npos
                           ? read(all, over.down)
                           : read(all.substr(0, colon), over.down) && read(all.substr(colon + 1), over.up);
  if (is_good) return over;
  return fail(ErrorCode::invalid_input, "'" + text.substr(0, 40) + "' is no oversubscription",
              "write 2:1, for example");
}

/// Boxes of a kind of GPU: its rates, profile and `gpu` where no flag says them. Returns whether NVSwitches copy and
/// add.
Result<bool> apply_preset(const std::string& name, const CLI::App& command, ClusterOptions& options, FileFlags& file) {
  const auto preset = find_preset(name);
  if (!preset) return tl::unexpected(preset.error());
  const GpuGeneration* const generation = find_generation((*preset)->generation);
  if ((*preset)->nvlink.bytes_per_second == 0 || generation == nullptr) {
    return fail(ErrorCode::invalid_input, "--preset: boxes of " + name + " have no NVSwitch, as these have",
                "take a shipped machine (espalier topo show --list), or a preset with NVLink");
  }
  // Hopper and Blackwell have 18 each ("NVIDIA H100 Tensor Core GPU Architecture" white paper, DGX B200 data sheet).
  constexpr std::int64_t latest_nvlinks = 18;
  const std::int64_t nvlinks = generation->nvlinks > 0 ? generation->nvlinks : latest_nvlinks;
  options.nvlink.bandwidth = {(*preset)->nvlink.bytes_per_second * nvlinks};
  options.pcie.bandwidth = (*preset)->pcie;
  options.nic.bandwidth = (*preset)->net;
  if (generation->domain_gpus > 0 && command.get_option("--gpus")->count() == 0) {
    options.gpus = generation->domain_gpus;
    if (command.get_option("--nics")->count() == 0) options.nics = options.gpus;
  }
  if (file.profile.empty()) file.profile = generation->profile;
  if (file.gpu.empty()) file.gpu = find_gpu_model(name);
  return generation->switches_add;
}

Generator add_cluster_flags(CLI::App& command, FileFlags& file) {
  struct Flags {
    ClusterOptions options;
    WireFlags nvlink, pcie;
    std::string preset, nic_rate, nic_latency, over = "1:1", core_over = "1:1";
  };
  const auto flags = std::make_shared<Flags>();
  ClusterOptions& options = flags->options;
  command
      .add_option(
          "--preset", flags->preset,
          "Kind of GPU whose rates, profile and gpu count where no flag says them (espalier topo import --help)")
      ->option_text("NAME");
  command.add_option("--boxes", options.boxes, "Boxes")->capture_default_str();
  command.add_option("--gpus", options.gpus, "GPUs of a box")->capture_default_str();
  command.add_option("--nics", options.nics, "NICs of a box")->capture_default_str();
  command
      .add_option("--pcie-switches", options.pcie_switches, "PCIe switches of a box, which share GPUs and NICs evenly")
      ->option_text("NUMBER (one per NIC)");
  command.add_option("--nic-rate", flags->nic_rate, "Rate of a NIC, such as '50 GB/s' or '400 Gbit/s'");
  command.add_option("--nic-latency", flags->nic_latency, "Latency of a cable of the fabric, such as '1 us'");
  flags->nvlink.add_to(command, "nvlink-", "a GPU into the NVSwitch");
  flags->pcie.add_to(command, "pcie-", "a device into its PCIe switch");
  command.add_option("--levels", options.levels, "Levels of switches: 1, 2 or 3")->capture_default_str();
  command.add_option("--boxes-per-leaf", options.boxes_per_leaf, "Boxes under one leaf switch")
      ->option_text("NUMBER (all)");
  command.add_option("--boxes-per-pod", options.boxes_per_pod, "Boxes of a pod, with three levels")
      ->option_text("NUMBER (all)");
  command.add_option("--spines", options.spines, "Spine switches, of each pod")->capture_default_str();
  command.add_option("--cores", options.cores, "Core switches, with three levels")->capture_default_str();
  command.add_option("--oversubscription", flags->over, "What leaves have below them over what they have above")
      ->capture_default_str();
  command.add_option("--core-oversubscription", flags->core_over, "The same of spines, with three levels")
      ->capture_default_str();
  command.add_flag("--by-box", options.by_box, "All NICs of a box on one leaf switch, instead of one per rail");
  return [flags, &command, &file]() -> Result<Topology> {
    bool nvswitches_add = false;
    if (!flags->preset.empty()) {
      const auto applied = apply_preset(flags->preset, command, flags->options, file);
      if (!applied) return tl::unexpected(applied.error());
      nvswitches_add = *applied;
    }
    for (const auto& [wire, given] :
         {std::pair{&flags->options.nvlink, flags->nvlink}, std::pair{&flags->options.pcie, flags->pcie},
          std::pair{&flags->options.nic, WireFlags{flags->nic_rate, flags->nic_latency}}}) {
      if (const auto applied = given.apply_to(*wire); !applied) return tl::unexpected(applied.error());
    }
    const auto over = parse_oversubscription(flags->over), core = parse_oversubscription(flags->core_over);
    if (!over) return tl::unexpected(over.error());
    if (!core) return tl::unexpected(core.error());
    flags->options.oversubscription = *over;
    flags->options.core_oversubscription = *core;
    const auto topology = generate_cluster(flags->options);
    if (!topology || !nvswitches_add) return topology;
    return with_adding_switches(*topology, [](const Node& node) { return node.id.ends_with("nvswitch"); });
  };
}

Generator add_random_flags(CLI::App& command, FileFlags& /*file*/) {
  const auto options = std::make_shared<RandomOptions>();
  const auto unbalanced = std::make_shared<bool>(false);
  command.add_option("--ranks", options->ranks, "Ranks")->capture_default_str();
  command.add_option("--switches", options->switches, "Switches")->capture_default_str();
  command.add_option("--extra", options->extra, "Cables beyond those that connect the graph")->capture_default_str();
  command.add_option("--seed", options->seed, "Seed of the generator")->capture_default_str();
  command.add_flag("--one-way", options->one_way, "Links in one direction only");
  command.add_flag("--unbalanced", *unbalanced, "Rates into and out of a switch may differ");
  return [options, unbalanced]() -> Result<Topology> {
    options->balanced = !*unbalanced;
    return generate_random(*options);
  };
}

}  // namespace

void add_topo_gen_command(CLI::App& topo, Session& session) {
  CLI::App* gen = topo.add_subcommand("gen", "Generate a topology");
  gen->require_subcommand(1);
  gen->footer(
      examples({"espalier topo gen torus --dims 4x4x4 --bandwidth '50 GB/s' -o torus.yaml",
                "espalier topo gen rail-boxes --boxes 16 | espalier topo show -",
                "espalier topo gen cluster --boxes 16 --gpus 8 --nics 4 --nic-rate '50 GB/s' --oversubscription 2:1 "
                "-o cluster.yaml",
                "espalier topo gen cluster --boxes 64 --preset b300-sxm -o b300.yaml",
                "espalier topo gen random --ranks 12 --switches 4 --seed 7"}));
  add_family(*gen, session, "ring", "Ranks in a circle", add_ring_flags);
  add_family(*gen, session, "torus", "A grid whose dimensions close",
             [](CLI::App& command, FileFlags&) { return add_grid_flags(command, generate_torus); });
  add_family(*gen, session, "mesh", "A grid whose dimensions do not close",
             [](CLI::App& command, FileFlags&) { return add_grid_flags(command, generate_mesh); });
  add_family(*gen, session, "hypercube", "Ranks joined where one bit differs", add_hypercube_flags);
  add_family(*gen, session, "fully-connected", "A cable between every two ranks", add_fully_connected_flags);
  add_family(*gen, session, "fat-tree", "Three levels of k-port switches", add_fat_tree_flags);
  add_family(*gen, session, "leaf-spine", "Leaf switches under spine switches", add_leaf_spine_flags);
  add_family(*gen, session, "dragonfly", "Groups of routers in full mesh", add_dragonfly_flags);
  add_family(*gen, session, "rail-boxes", "Boxes of GPUs on a rail-optimised fabric", add_rail_boxes_flags);
  add_family(*gen, session, "cluster", "Boxes with PCIe switches and NICs, under two or three levels of switches",
             add_cluster_flags);
  add_family(*gen, session, "random", "A connected random graph from a seed", add_random_flags);
}

}  // namespace espalier::cli
