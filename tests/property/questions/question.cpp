#include "tests/property/questions/question.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <string_view>

#include "base/check.h"
#include "base/random.h"
#include "topology/generate/generate.h"
#include "topology/yaml/read_topology.h"
#include "topology/yaml/write_topology.h"

namespace espalier::test {
namespace {

using Words = std::vector<std::string>;

template <class Choices>
const auto& pick(const Choices& choices, Random& random) {
  return choices[random.below(std::size(choices))];
}

struct Shipped {
  std::string_view name;
  std::string_view profile;
};

constexpr std::array shipped_machines = {Shipped{"aws-p4d-x2", "nccl-ampere"},
                                         Shipped{"aws-p5-x2", "nccl-hopper"},
                                         Shipped{"dgx-a100-x2", "nccl-ampere"},
                                         Shipped{"dgx-a100", "nccl-ampere"},
                                         Shipped{"dgx-h100", "nccl-hopper"},
                                         Shipped{"dgx-h100-x4", "nccl-hopper"},
                                         Shipped{"dgx-h100-without-nvls", "nccl-hopper"},
                                         Shipped{"dgx-h200-cluster", "nccl-hopper"},
                                         Shipped{"dgx-b200-cluster", "nccl-blackwell"},
                                         Shipped{"dgx-b300", "nccl-blackwell"},
                                         Shipped{"l40s-pcie", "nccl-pcie"},
                                         Shipped{"rtx-pro-6000-pcie", "nccl-pcie"},
                                         Shipped{"dgx1v-degraded", "nccl-volta"},
                                         Shipped{"dgx1v-nvlink", "nccl-volta"},
                                         Shipped{"dgx1v", "nccl-volta"},
                                         Shipped{"dgx2", "nccl-volta"},
                                         Shipped{"ethernet-mixed", "espalier-tcp"},
                                         Shipped{"lab-mixed", "espalier-tcp"},
                                         Shipped{"leaf-spine-64", "espalier-tcp"},
                                         Shipped{"mi250-x2", "rccl-mi300x"},
                                         Shipped{"mi250", "rccl-mi300x"},
                                         Shipped{"mi300x", "rccl-mi300x"},
                                         Shipped{"rtx4090-pcie", "nccl-ampere"},
                                         Shipped{"torus-4x4x4", "espalier-tcp"}};

/// Switches that copy and add.
Topology with_adding_switches(const Topology& topology) {
  std::vector<Node> nodes(topology.nodes().begin(), topology.nodes().end());
  for (Node& node : nodes) {
    if (node.kind == NodeKind::switch_node) node.multicast = node.reduction = true;
  }
  std::vector<Link> links(topology.links().begin(), topology.links().end());
  return Topology::make(topology.name(), std::move(nodes), std::move(links)).value();
}

Result<Topology> generate(Random& random) {
  switch (random.below(8)) {
    case 0:
      return generate_rail_boxes({.boxes = random.between(1, 8),
                                  .gpus_per_box = random.between(1, 8),
                                  .rails = random.between(1, 8),
                                  .spines = random.between(0, 3)});
    case 1: {
      ClusterOptions options{.boxes = random.between(1, 8), .gpus = random.below(2) == 0 ? 8 : 4};
      options.nics = std::int64_t{1} << random.below(options.gpus == 8 ? 4 : 3);
      options.levels = random.between(1, 3);
      options.boxes_per_pod = options.levels == 3 ? std::max<std::int64_t>(1, options.boxes / 2) : 0;
      options.by_box = random.below(2) == 0;
      options.oversubscription.down = random.between(1, 4);
      return generate_cluster(options);
    }
    case 2:
      return generate_leaf_spine({.leaves = random.between(1, 5),
                                  .ranks_per_leaf = random.between(1, 8),
                                  .spines = random.between(1, 4),
                                  .oversubscription = random.between(1, 3)});
    case 3: {
      const GridOptions grid{.dims = {random.between(1, 6), random.between(2, 6)}};
      return random.below(2) == 0 ? generate_torus(grid) : generate_mesh(grid);
    }
    case 4:
      return generate_dragonfly({.routers = random.between(1, 3), .ranks = random.between(1, 2), .global_links = 1});
    case 5: return generate_fat_tree({.k = 2 * random.between(1, 3), .oversubscription = random.between(1, 2)});
    case 6:
      return random.below(2) == 0 ? generate_hypercube({.dimensions = random.between(1, 5)})
                                  : generate_ring({.ranks = random.between(2, 12), .one_way = random.below(2) == 0});
    default:
      return generate_random({.ranks = random.between(2, 16),
                              .switches = random.between(0, 6),
                              .extra = random.between(0, 16),
                              .one_way = random.below(4) == 0,
                              .balanced = random.below(4) != 0,
                              .seed = random.next()});
  }
}

std::string write_generated(Random& random, std::uint64_t seed, const std::string& folder) {
  while (true) {
    const auto made = generate(random);
    if (!made || made->rank_count() > 64) continue;
    const std::string file = folder + "/network-" + std::to_string(seed) + ".yaml";
    std::ofstream(file) << write_topology(random.below(4) == 0 ? with_adding_switches(*made) : *made);
    return file;
  }
}

std::string node_id(const Topology& topology, Random& random) {
  return topology.nodes()[random.below(topology.node_count())].id;
}

/// A node, a cable, or a link, of which flags take away or slow down one.
std::string part_of(const Topology& topology, Random& random) {
  if (random.below(3) == 0) return node_id(topology, random);
  const Link& link = topology.links()[random.below(topology.link_count())];
  const std::string_view between = random.below(3) == 0 ? ">" : "-";
  return topology.node(link.tail).id + std::string(between) + topology.node(link.head).id;
}

std::string some_ranks(const Topology& topology, Random& random) {
  std::vector<std::string> names;
  for (std::size_t rank = 0; rank < topology.rank_count(); ++rank) names.push_back(topology.rank_name(Rank(rank)));
  for (std::size_t i = names.size(); i > 1; --i) std::swap(names[i - 1], names[random.below(i)]);
  names.resize(1 + random.below(std::min<std::size_t>(names.size(), 16)));
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ",") + name;
  return list;
}

Words make_damage(const Topology& topology, Random& random) {
  Words words;
  const auto add = [&](std::string flag, std::string value) {
    words.push_back(std::move(flag));
    words.push_back(std::move(value));
  };
  if (topology.link_count() > 0) {
    for (std::uint64_t count = random.below(3); count > 0; --count) add("--without", part_of(topology, random));
    if (random.below(3) == 0) {
      constexpr std::array parts = {"0.5", "0.1", "3%", "0.99"};
      add("--slow", part_of(topology, random) + "=" + pick(parts, random));
    }
  }
  if (random.below(3) == 0) add("--ranks", some_ranks(topology, random));
  return words;
}

std::string profile_file(std::string_view name) {
  return ESPALIER_SOURCE_DIR "/configs/profiles/" + std::string(name) + ".yaml";
}

Words make_call(std::size_t ranks, std::string_view profile, Random& random) {
  constexpr std::array collectives = {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce",
                                      "all_to_all", "gather",         "scatter",    "send_recv"};
  constexpr std::array quick = {"ring", "tree",     "flat",      "ring,tree", "tree,flat", "ring,tree,flat,pairwise",
                                "star", "binomial", "recursive", "bruck",     "pairwise",  "innetwork"};
  constexpr std::array searching = {"packing", "lp", "auto", "all"};
  constexpr std::array sizes = {"0", "4", "60", "1K", "1000", "4K", "64K", "999996", "1M", "5M", "16M"};
  constexpr std::array types = {"float", "half", "int8", "double"};
  Words words = {pick(collectives, random)};
  const bool has_profile = random.below(3) > 0;
  const bool searches = ranks <= 16 ? random.below(2) == 0 : random.below(12) == 0;
  std::string planner = searches ? pick(searching, random) : pick(quick, random);
  constexpr std::array of_nccl = {"nccl",
                                  "nccl",
                                  "nccl",
                                  "nccl",
                                  "nccl/ring",
                                  "nccl/tree",
                                  "nccl/nvls",
                                  "nccl/nvls_tree",
                                  "nccl/collnet_direct",
                                  "nccl/collnet_chain",
                                  "nccl/pat",
                                  "nccl/p2p",
                                  "nccl/pxn"};
  if (has_profile && random.below(2) == 0) planner = pick(of_nccl, random);
  words.insert(words.end(), {"-a", planner, "-s", pick(sizes, random)});
  if (random.below(3) == 0) words.insert(words.end(), {"-d", pick(types, random)});
  words.insert(words.end(), {"--profile", has_profile ? profile_file(profile) : "ideal"});
  if (has_profile && random.below(6) == 0) {
    constexpr std::array versions = {"2.4", "2.11", "2.18", "2.22", "2.27", "2.29"};
    words.insert(words.end(), {"--nccl-version", pick(versions, random)});
  }
  if (has_profile && random.below(8) == 0) words.insert(words.end(), {"--paths", "any"});
  if (words.front() == "all_to_all" && random.below(2) == 0) {
    words.insert(words.end(), {"--matrix", "zipf:0." + std::to_string(random.below(10)) +
                                               ",seed=" + std::to_string(random.below(100))});
  }
  return words;
}

}  // namespace

Words Question::words(const std::string& verb, const Words& more) const {
  Words all = {verb};
  for (const Words* part : {&machine, &call, &damage, &more}) all.insert(all.end(), part->begin(), part->end());
  return all;
}

std::string Question::text() const {
  std::string typed = "espalier";
  for (const std::string& word : words("simulate")) typed += " " + word;
  return typed;
}

Question make_question(std::uint64_t seed, const std::string& folder) {
  Random random(seed);
  Question question;
  std::string_view profile = "nccl-hopper";
  if (random.below(2) == 0) {
    const Shipped& shipped = pick(shipped_machines, random);
    question.machine = {ESPALIER_SOURCE_DIR "/configs/" + std::string(shipped.name) + ".yaml"};
    profile = shipped.profile;
  } else {
    question.machine = {write_generated(random, seed, folder)};
  }
  const auto read = read_topology_file(question.machine.front());
  ESPALIER_CHECK(read.topology.has_value(), "networks of questions can be read");
  question.damage = make_damage(*read.topology, random);
  question.call = make_call(read.topology->rank_count(), profile, random);
  return question;
}

}  // namespace espalier::test
