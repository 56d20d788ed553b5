#include "planners/groups/plan_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/check.h"
#include "planners/graph/logical_graph.h"
#include "planners/groups/joint_oracle.h"
#include "planners/groups/single_links.h"
#include "planners/lp/flow_oracle.h"
#include "planners/lp/flow_program.h"
#include "planners/lp/trees/program_forest.h"
#include "planners/lp/trees/tree_oracle.h"
#include "schedule/loads.h"
#include "schedule/trees/strands.h"
#include "schedule/trees/tree_schedule.h"
#include "schedule/verify/verify.h"
#include "topology/bundles.h"
#include "topology/reachable.h"

namespace espalier::planners {
namespace {

constexpr std::size_t max_ranks = 256;
constexpr std::size_t max_links = 2048;
constexpr std::uint32_t max_shallow_rounds = 16;  ///< Past these any trees will do.
constexpr std::int64_t max_factor = std::int64_t{1} << 31;

/// One group's part of the joint program. Columns of its groups are trees of these, in the same order.
struct Member {
  SingleLinks single;
  OrbitGraph orbits;
  std::vector<TreeGroup> trees;     ///< all_gather, reduce_scatter, broadcast, reduce.
  std::vector<FlowDemand> demands;  ///< all_to_all, send_recv, gather, scatter.
  std::int64_t blocks = 1;          ///< A tree carries S / blocks bytes for each of its copies or targets.
  std::uint32_t first_group = 0;    ///< Of the joint program.
  std::uint32_t group_count = 0;
};

Result<void> check_group(const GroupWork& group) {
  const Collective& collective = group.collective;
  if (!collective.shares.empty() && (has_root(collective.kind) || collective.has_matrix())) {
    return fail(ErrorCode::unsupported,
                fmt::format("groups of a {} with unequal parts are not planned together", to_string(collective.kind)),
                "plan each group by itself with --ranks");
  }
  if (const Rank rank = group.topology.first_not_relaying(); !rank.is_none()) {
    return fail(ErrorCode::unsupported,
                fmt::format("groups are not planned together where ranks must not relay, as {} here",
                            group.topology.rank_name(rank)),
                "plan each group by itself with --ranks");
  }
  const auto unreachable = find_unreachable(group.topology);
  if (!unreachable) return {};
  return fail(ErrorCode::infeasible, describe_unreachable(group.topology, *unreachable),
              "add a link, or leave one of them out of the group");
}

Result<void> check_groups(std::span<const GroupWork> groups) {
  std::size_t ranks = 0;
  for (const GroupWork& group : groups) {
    if (auto checked = check_group(group); !checked) return checked;
    ranks += group.topology.rank_count();
  }
  if (ranks <= max_ranks && groups.front().topology.link_count() <= max_links) return {};
  return fail(ErrorCode::too_large,
              fmt::format("groups of {} ranks in all over {} links are past the size that is planned together", ranks,
                          groups.front().topology.link_count()),
              "plan each group by itself with --ranks");
}

/// Which trees a collective's roots need, one family of the program each; `copies` is a root's share.
std::vector<TreeGroup> tree_groups(const Collective& collective) {
  const bool inward = reduces(collective.kind);
  std::vector<TreeGroup> groups;
  for (std::uint32_t rank = 0; rank < collective.rank_count; ++rank) {
    const bool is_root =
        has_root(collective.kind) ? collective.root == Rank(rank) : collective.share_of(Rank(rank)) > 0;
    if (!is_root) continue;
    const std::int64_t share = has_root(collective.kind) ? 1 : collective.share_of(Rank(rank));
    groups.push_back({rank, inward, static_cast<std::uint32_t>(groups.size()), share});
  }
  return groups;
}

/// The root's block for every other rank.
FlowDemand scatter_demand(const Collective& collective) {
  FlowDemand demand{collective.root.value(), {}, 1, {}};
  for (std::uint32_t rank = 0; rank < collective.rank_count; ++rank) {
    if (Rank(rank) != collective.root) demand.targets.push_back(rank);
  }
  return demand;
}

/// A group's part of the program. A gather is a scatter on the network with its links turned round.
Member make_member(const GroupWork& group) {
  const Collective& collective = group.collective;
  const CollectiveKind kind = collective.kind;
  SingleLinks single = with_single_links(kind == CollectiveKind::gather ? reversed(group.topology) : group.topology);
  OrbitGraph orbits = make_orbit_graph(single.topology, false, Symmetry::none);
  Member member{std::move(single), std::move(orbits), {}, {}};
  if (kind == CollectiveKind::all_reduce) {
    member.group_count = 1;
  } else if (slices_have_destination(kind)) {
    FlowDemands flows = flow_demands(collective);
    member.demands = std::move(flows.demands);
    member.blocks = flows.blocks_per_buffer;
    member.group_count = static_cast<std::uint32_t>(member.demands.size());
  } else if (kind == CollectiveKind::gather || kind == CollectiveKind::scatter) {
    member.demands = {scatter_demand(collective)};
    member.blocks = collective.rank_count;
    member.group_count = 1;
  } else {
    member.trees = tree_groups(collective);
    member.blocks = has_root(kind) ? 1 : collective.share_sum();
    member.group_count = static_cast<std::uint32_t>(member.trees.size());
  }
  return member;
}

std::unique_ptr<PricingOracle> make_oracle(const Member& member) {
  if (!member.trees.empty()) {
    return std::make_unique<TreeOracle>(member.orbits, TreeGroups{member.trees, Sharing::equal});
  }
  if (!member.demands.empty()) return std::make_unique<FlowOracle>(member.orbits, member.demands);
  return std::make_unique<TreePairOracle>(member.orbits);
}

/// The joint program, solved.
struct Joint {
  std::vector<std::optional<Member>> members;  ///< By group; nothing for a single rank.
  ColumnSolution solution;
  Rational time_per_byte;
};

/// With `shallow`, for the trees' sake, trees that reach the limit are found soon or not at all.
Result<Joint> solve(std::span<const GroupWork> groups, bool shallow) {
  if (auto checked = check_groups(groups); !checked) return tl::unexpected(checked.error());
  Joint joint;
  std::int64_t common = 1;  // One unit of throughput is this many bytes of S.
  const Member* first = nullptr;
  joint.members.reserve(groups.size());
  for (const GroupWork& group : groups) {
    joint.members.emplace_back();
    if (group.topology.rank_count() == 1) continue;
    joint.members.back().emplace(make_member(group));
    if (first == nullptr) first = &*joint.members.back();
    common = std::lcm(common, joint.members.back()->blocks);
    if (common > max_factor) {
      return fail(ErrorCode::too_large, "the groups' sizes have too large a common multiple", "use equal groups");
    }
  }
  if (first == nullptr) return joint;
  JointOracle oracle;
  for (std::optional<Member>& member : joint.members) {
    if (!member) continue;
    member->first_group = oracle.group_count();
    oracle.add(make_oracle(*member), member->group_count, common / member->blocks);
  }
  MasterProgram program;
  program.capacity = first->orbits.capacity;
  program.sharing = Sharing::equal;
  program.family_count = oracle.group_count();
  for (std::uint32_t group = 0; group < oracle.group_count(); ++group) program.family.push_back(group);
  const bool trees = !slices_have_destination(groups.front().collective.kind);
  ColumnLimits limits;
  if (shallow && trees) {
    limits.rounds = max_shallow_rounds;
    limits.shallow = true;
  }
  joint.solution = generate_columns(program, oracle, limits);
  joint.time_per_byte = 1 / (joint.solution.limit * first->orbits.graph.unit * common);
  return joint;
}

/// The edges of the first `count` paths from rank to rank, taken off the front.
std::vector<std::uint32_t> take_paths(const ResourceGraph& graph, std::vector<std::uint32_t>& edges,
                                      std::size_t count) {
  std::size_t end = 0;
  for (; count > 0; ++end) {
    if (graph.node_ranks[graph.edges[edges[end]].head] != ResourceGraph::no_rank) --count;
  }
  const auto cut = edges.begin() + static_cast<std::ptrdiff_t>(end);
  std::vector<std::uint32_t> front(edges.begin(), cut);
  edges.erase(edges.begin(), cut);
  return front;
}

/// The rank that no edge of an out-tree enters.
std::uint32_t root_of(const ResourceGraph& graph, const std::vector<std::uint32_t>& out_tree) {
  std::vector<bool> entered(graph.rank_count(), false);
  for (const std::uint32_t edge : out_tree) {
    const std::uint32_t rank = graph.node_ranks[graph.edges[edge].head];
    if (rank != ResourceGraph::no_rank) entered[rank] = true;
  }
  return static_cast<std::uint32_t>(std::find(entered.begin(), entered.end(), false) - entered.begin());
}

/// A group's trees in the solution.
std::vector<ProgramTree> trees_of(const Joint& joint, const Member& member) {
  std::vector<ProgramTree> trees;
  for (const ColumnSolution::Part& part : joint.solution.parts) {
    const std::uint32_t group = part.column.group - member.first_group;
    if (part.column.group < member.first_group || group >= member.group_count) continue;
    const Rational share = part.amount / joint.solution.limit;
    std::vector<std::uint32_t> edges = part.column.edges;
    if (!member.trees.empty()) {
      trees.push_back({member.trees[group].root, member.trees[group].inward, share, std::move(edges), {}});
    } else if (!member.demands.empty()) {
      trees.push_back({member.demands[group].source, false, share, std::move(edges), member.demands[group].targets});
    } else {
      const ResourceGraph& graph = member.orbits.graph;
      std::vector<std::uint32_t> out = take_paths(graph, edges, graph.rank_count() - 1);
      const std::uint32_t root = root_of(graph, out);
      trees.push_back({root, false, share, std::move(out), {}});
      trees.push_back({root, true, share, std::move(edges), {}});
    }
  }
  return trees;
}

/// A group's trees over the network's own links.
Result<Forest> forest_of(const GroupWork& group, const Joint& joint, const Member& member) {
  Forest forest = whole_forest(member.single.topology, member.orbits.graph, trees_of(joint, member),
                               joint.time_per_byte * member.blocks);
  for (auto* trees : {&forest.in_trees, &forest.out_trees}) {
    for (Arborescence& tree : *trees) {
      for (TreeEdge& edge : tree.edges) edge.links = original_route(member.single, edge.links);
    }
  }
  if (group.collective.kind == CollectiveKind::gather) {
    for (Arborescence& tree : forest.out_trees) {
      for (TreeEdge& edge : tree.edges) std::reverse(edge.links.begin(), edge.links.end());
    }
    std::swap(forest.in_trees, forest.out_trees);
  }
  return in_proportion(std::move(forest), group.collective);
}

/// The groups on the network with one link for each bundle of parallel ones.
std::vector<GroupWork> bundled_works(std::span<const GroupWork> groups, const Bundles& bundles) {
  std::vector<GroupWork> works;
  for (const GroupWork& group : groups) {
    works.push_back(group);
    works.back().topology = bundled(group.topology, bundles);
  }
  return works;
}

/// The schedule of a group of the bundled network on the network itself.
Result<Schedule> schedule_of(const GroupWork& work, const Joint& joint, const std::optional<Member>& member,
                             const GroupWork& group, const Bundles& bundles) {
  const Result<Forest> forest = member ? forest_of(work, joint, *member) : Forest{};
  if (!forest) return tl::unexpected(forest.error());
  auto schedule = schedule_from_trees(work.collective, work.topology, "groups", *forest);
  if (!schedule) return schedule;
  if (bundles.any()) schedule = deal_strands(*schedule, group.topology, bundles);
  const VerifyReport report = verify(*schedule, group.topology, 1);
  const std::string breach = report.ok() ? "" : "groups: " + report.breaches.front().message;
  ESPALIER_CHECK(report.ok(), breach.c_str());
  return schedule;
}

}  // namespace

Result<JointBound> bound_groups(std::span<const GroupWork> groups) {
  ESPALIER_CHECK(!groups.empty(), "planning groups needs a group");
  const Result<Joint> joint = solve(bundled_works(groups, Bundles(groups.front().topology)), false);
  if (!joint) return tl::unexpected(joint.error());
  return JointBound{joint->time_per_byte};
}

Result<JointPlan> plan_groups(std::span<const GroupWork> groups) {
  ESPALIER_CHECK(!groups.empty(), "planning groups needs a group");
  const Bundles bundles(groups.front().topology);
  const std::vector<GroupWork> works = bundled_works(groups, bundles);
  Result<Joint> joint = solve(works, true);
  if (joint && !joint->solution.attained) joint = solve(works, false);
  if (!joint) return tl::unexpected(joint.error());
  if (joint->time_per_byte != 0 && !joint->solution.attained) {
    return fail(ErrorCode::unsupported, "the best trees of all groups were not found within the limits",
                "plan each group by itself with --ranks");
  }
  JointPlan plan{{joint->time_per_byte}, {}, Rational(0)};
  for (std::size_t i = 0; i < groups.size(); ++i) {
    auto schedule = schedule_of(works[i], *joint, joint->members[i], groups[i], bundles);
    if (!schedule) return tl::unexpected(schedule.error());
    schedule->bound = Bound{joint->time_per_byte, {}, fmt::format("the links shared by {} groups", groups.size())};
    plan.schedules.push_back(*std::move(schedule));
  }
  plan.time_per_byte = joint_time_per_byte(groups, plan.schedules);
  return plan;
}

Rational joint_time_per_byte(std::span<const GroupWork> groups, std::span<const Schedule> schedules) {
  if (groups.empty()) return Rational(0);
  const Topology& network = groups.front().topology;
  std::vector<Rational> links(network.link_count(), Rational(0));
  std::vector<Rational> nodes(network.node_count(), Rational(0));
  for (std::size_t i = 0; i < schedules.size(); ++i) {
    const Loads loads = compute_loads(schedules[i], groups[i].topology);
    const Rational bytes_per_unit = schedules[i].collective.extent() / schedules[i].units;
    for (std::size_t link = 0; link < links.size(); ++link) {
      links[link] += BigInteger(loads.link_units[link]) * bytes_per_unit;
    }
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      nodes[node] += BigInteger(loads.node_units[node]) * bytes_per_unit;
    }
  }
  Rational most = 0;
  for (std::size_t link = 0; link < links.size(); ++link) {
    most = std::max(most, Rational(links[link] / network.link(LinkId(link)).bandwidth().bytes_per_second));
  }
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    const std::int64_t backplane = network.node(NodeId(node)).bandwidth.bytes_per_second;
    if (backplane > 0) most = std::max(most, Rational(nodes[node] / backplane));
  }
  return most;
}

}  // namespace espalier::planners
