#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "forecast/candidate_runs.h"
#include "planners/planner.h"
#include "tests/property/profile/machines.h"
#include "topology/generate/generate.h"
#include "topology/names/group.h"

/// ESPALIER_LIKE_DAMAGE: how many seeds; ESPALIER_LIKE_DAMAGE_FROM: the first.
namespace espalier::profile {
namespace {

/// What is done to a network.
struct Change {
  std::vector<NodeId> ranks;      ///< That alone take part; empty: all.
  std::vector<std::size_t> slow;  ///< Cables that lose three quarters of their rate.
  test::Failing failing;
};

Change any_change(Random& random, const Topology& topology, const std::vector<Cable>& cables) {
  Change change;
  if (random.below(3) == 0 && topology.rank_count() > 2) {
    std::set<NodeId> some;
    const std::size_t wanted = 2 + random.below(std::min<std::size_t>(topology.rank_count() - 1, 9));
    while (some.size() < wanted) some.insert(topology.node_of(Rank(random.below(topology.rank_count()))));
    change.ranks.assign(some.begin(), some.end());
  }
  for (std::uint64_t left = random.below(3); left > 0; --left) change.slow.push_back(random.below(cables.size()));
  const bool is_changed = !change.ranks.empty() || !change.slow.empty();
  if (!is_changed || random.below(2) == 0) change.failing = test::any_damage(random, topology, cables);
  return change;
}

/// The same elsewhere.
Change moved(const Change& change, const std::vector<std::uint32_t>& image, std::size_t nodes) {
  Change other;
  const auto node = [&](NodeId id) { return NodeId(image[id.index()]); };
  const auto cable = [&](std::size_t number) { return image[nodes + number] - nodes; };
  for (const NodeId id : change.ranks) other.ranks.push_back(node(id));
  std::ranges::sort(other.ranks);
  for (const std::size_t number : change.slow) other.slow.push_back(cable(number));
  for (const NodeId id : change.failing.nodes) other.failing.nodes.push_back(node(id));
  for (const std::size_t number : change.failing.cables) other.failing.cables.push_back(cable(number));
  return other;
}

Result<Topology> changed(const Topology& topology, const std::vector<Cable>& cables, const Change& change) {
  std::vector<Link> links(topology.links().begin(), topology.links().end());
  for (const std::size_t number : change.slow) {
    for (const LinkId link : {cables[number].there, cables[number].back}) {
      if (!link.is_none()) links[link.index()].nominal.bytes_per_second /= 4;
    }
  }
  auto slowed = Topology::make(topology.name(), {topology.nodes().begin(), topology.nodes().end()}, std::move(links));
  EXPECT_TRUE(slowed);
  if (!change.slow.empty()) slowed = std::move(*slowed).as_altered(topology);
  const Topology some = change.ranks.empty() ? *std::move(slowed) : *with_ranks(*slowed, change.ranks);
  const Parts parts = test::parts_of(change.failing, cables);
  return parts.nodes.empty() && parts.links.empty() ? Result<Topology>(some) : without(some, parts, "some");
}

std::string text_of(const Topology& topology, const std::vector<Cable>& cables, const Change& change) {
  std::string text;
  for (const NodeId node : change.ranks) text += (text.empty() ? " --ranks " : ",") + topology.node(node).id;
  for (const std::size_t number : change.slow) {
    text += " --slow " + topology.link_name(cables[number].there) + "=0.25";
  }
  for (const NodeId node : change.failing.nodes) text += " --without " + topology.node(node).id;
  for (const std::size_t number : change.failing.cables) {
    text += " --without " + topology.link_name(cables[number].there);
  }
  return text;
}

Topology any_cluster(Random& random) {
  while (true) {
    ClusterOptions options{.boxes = random.between(2, 4), .gpus = 4};
    options.nics = std::int64_t{1} << random.below(3);
    options.by_box = random.below(2) == 0;
    auto made = random.below(2) == 0 ? generate_cluster(options)
                                     : generate_leaf_spine({.leaves = random.between(2, 4),
                                                            .ranks_per_leaf = random.between(2, 4),
                                                            .spines = random.between(1, 3),
                                                            .oversubscription = 1});
    if (made) return *std::move(made);
  }
}

/// Send neighbouring parts of the buffer as one message: which ranks' parts are neighbours is a matter of their
/// numbers, whatever the network is like.
bool goes_by_buffer(const std::string& planner) {
  return planner.starts_with("recursive") || planner.starts_with("bruck");
}

/// By planner, and for the choice among them, how long it takes; the bound's time for a GB in seconds.
std::map<std::string, double> answers(const Topology& topology, CollectiveKind kind, Bytes size,
                                      const std::shared_ptr<const forecast::Software>& software) {
  std::map<std::string, double> times;
  planners::CandidateOptions options;
  options.for_choice = true;
  options.paths = forecast::paths_of(software);
  const auto candidates =
      planners::make_candidates(topology, test::on(topology, kind), planners::all_planners(), options);
  if (!candidates) return times;
  times["bound"] = to_double(candidates->bound.time_per_byte) * 1e9;
  forecast::RunOptions how;
  how.profile = software;
  forecast::CandidateRuns runs(topology, *candidates, how);
  if (candidates->made.empty()) return times;
  std::vector<std::string> names = {"auto"};
  for (const planners::Candidate& candidate : candidates->made) names.push_back(candidate.planner);
  for (const std::string& name : names) {
    const auto ran = runs.run(name, size);
    if (!ran) continue;
    times[name] = ran->report.elapsed.seconds();
    if (name == "auto") times["auto takes " + ran->by()] = 0;
  }
  return times;
}

std::string winner(const std::map<std::string, double>& times) {
  constexpr std::string_view before = "auto takes ";
  const auto name = times.lower_bound(std::string(before));
  return name != times.end() && name->first.starts_with(before) ? name->first.substr(before.size()) : "";
}

/// What differs by more than rounding: shards and blocks have whole elements, the first of the buffer the larger ones,
/// and the last half percent that a chunk could gain is not looked for.
std::string differences(const std::map<std::string, double>& one, const std::map<std::string, double>& two) {
  constexpr double rounding = 0.005;
  std::string text;
  for (const auto& [name, time] : one) {
    if (goes_by_buffer(name) ||
        (name.starts_with("auto") && (goes_by_buffer(winner(one)) || goes_by_buffer(winner(two)))))
      continue;
    const auto same = two.find(name);
    if (same == two.end()) {
      text += "\n " + name + " only here";
    } else if (std::abs(same->second - time) > rounding * time) {
      text += "\n " + name + ": " + std::to_string(time * 1e6) + " and " + std::to_string(same->second * 1e6);
    }
  }
  return text;
}

TEST(Damage, LikeChangesGiveEqualAnswersOfAllPlanners) {
  constexpr std::array sizes = {Bytes{8 << 10}, Bytes{1 << 20}, Bytes{16 << 20}};
  constexpr std::array kinds = {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                                CollectiveKind::all_to_all};
  const char* const count = std::getenv("ESPALIER_LIKE_DAMAGE");
  const char* const from = std::getenv("ESPALIER_LIKE_DAMAGE_FROM");
  const std::uint64_t first = from == nullptr ? 0 : std::strtoull(from, nullptr, 10);
  const std::uint64_t seeds = count == nullptr ? 24 : std::strtoull(count, nullptr, 10);
  std::size_t compared = 0, moves = 0;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    Random random(seed);
    const bool is_shipped = random.below(2) == 0;
    const test::Machine& machine = test::one_of(random, test::machines());
    const Topology topology = is_shipped ? test::read_machine(machine) : any_cluster(random);
    const std::vector<Cable> cables = find_cables(topology);
    const Change change = any_change(random, topology, cables);
    const std::vector<std::uint32_t> image = test::any_symmetry(random, topology, cables);
    const Change other = moved(change, image, topology.node_count());
    const CollectiveKind kind = test::one_of(random, kinds);
    const Bytes size = test::one_of(random, sizes);
    std::shared_ptr<const forecast::Software> software;
    if (random.below(2) == 0) {
      const auto options = test::options_of(machine);
      software = std::make_shared<const forecast::Software>(
          forecast::Software{machine.profile, options.profile, options.launch, {}});
    }
    const auto one = changed(topology, cables, change), two = changed(topology, cables, other);
    const std::string here = text_of(topology, cables, change), there = text_of(topology, cables, other);
    const std::string what = "seed " + std::to_string(seed) + ": " + topology.name() + " " +
                             std::string(to_string(kind)) + " " + std::to_string(size.count) +
                             (software ? " --profile " + machine.profile : "") + "\n " + here + "\n " + there;
    ASSERT_EQ(one.has_value(), two.has_value()) << what;
    if (!one) continue;
    EXPECT_EQ(differences(answers(*one, kind, size, software), answers(*two, kind, size, software)), "") << what;
    ++compared;
    if (here != there) ++moves;
  }
  EXPECT_GT(compared, seeds / 2);
  EXPECT_GT(moves, compared / 2);
}

/// A NIC with one cable of two forwards nothing.
TEST(Damage, ANicAndItsCablesAreMissedAlike) {
  const test::Machine machine = {"dgx-a100-x2", "nccl-ampere"};
  const Topology topology = test::read_machine(machine);
  const NodeId nic = topology.find_node("box0.nic0");
  ASSERT_FALSE(nic.is_none());
  const auto whole = without(topology, {{nic}, {}}, "some");
  ASSERT_TRUE(whole);
  std::size_t cables = 0;
  for (const Cable& cable : find_cables(topology)) {
    const Link& link = topology.link(cable.there);
    if (link.tail != nic && link.head != nic) continue;
    ++cables;
    const auto cut = without(topology, {{}, {cable.there, cable.back}}, "some");
    ASSERT_TRUE(cut);
    for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather}) {
      const auto times = answers(*whole, kind, Bytes{4 << 20}, nullptr);
      EXPECT_EQ(differences(times, answers(*cut, kind, Bytes{4 << 20}, nullptr)), "")
          << to_string(kind) << ' ' << topology.link_name(cable.there);
    }
  }
  EXPECT_EQ(cables, 2U);
}

}  // namespace
}  // namespace espalier::profile
