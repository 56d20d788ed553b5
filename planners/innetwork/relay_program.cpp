#include "planners/innetwork/relay_program.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "planners/lp/restricted_master.h"

namespace espalier::planners {
namespace {

/// Trees that carry one unit together, and what they fill.
struct TreePair {
  std::optional<RelayTree> in;
  std::optional<RelayTree> out;
  Column column;
  std::int64_t times_grown = 0;
};

class RelayProgram {
 public:
  RelayProgram(const Topology& topology, const Collective& collective)
      : topology_(topology),
        resources_(topology),
        copies_(topology, resources_, Direction::forward),
        adds_(topology, resources_, Direction::reversed),
        needs_in_(reduces(collective.kind)),
        needs_out_(!needs_in_ || collective.kind == CollectiveKind::all_reduce) {
    choose_roots(collective);
  }

  std::vector<WeightedRelayTrees> run() {
    if (!grow_by_load()) return {};
    const bool small =
        roots_.size() <= max_groups && topology_.rank_count() <= max_ranks && resources_.rates.size() <= max_resources;
    const std::vector<Rational> amounts = small ? solve() : std::vector<Rational>();
    return amounts.empty() ? weigh_by_count() : weigh(amounts);
  }

 private:
  using Prices = std::vector<double>;

  static constexpr std::size_t max_groups = 64;
  static constexpr std::size_t max_ranks = 128;
  static constexpr std::size_t max_resources = 640;
  static constexpr std::size_t max_free_roots = 64;  ///< All_reduce: roots that are tried.
  static constexpr std::int64_t growth_work = 20'000'000;
  static constexpr std::int64_t transfer_budget = 4'000'000;
  static constexpr std::int64_t max_growth_rounds = 40;
  static constexpr int program_rounds = 300;
  static constexpr double sharpness = 12;
  static constexpr double gain_tolerance = 1e-9;
  static constexpr double load_tolerance = 1e-9;  ///< More rounds make more trees, so they have to pay.

  void choose_roots(const Collective& collective);
  [[nodiscard]] std::int64_t growth_rounds() const;
  [[nodiscard]] std::optional<TreePair> grow(NodeId root, std::uint32_t group, const Prices& prices) const;
  [[nodiscard]] std::optional<TreePair> cheapest(std::uint32_t group, const Prices& prices) const;
  [[nodiscard]] double cost(const TreePair& pair, const Prices& prices) const;
  [[nodiscard]] Prices prices_of_load(const std::vector<double>& filled) const;
  std::size_t note(TreePair pair);
  /// False when a group has no trees, which only ranks that must not relay can bring about.
  bool grow_by_load();
  [[nodiscard]] MasterProgram program() const;
  bool improve(RestrictedMaster& master, const Prices& prices);
  [[nodiscard]] std::vector<Rational> solve();
  [[nodiscard]] std::vector<WeightedRelayTrees> weigh(const std::vector<Rational>& amounts);
  [[nodiscard]] std::vector<WeightedRelayTrees> weigh_by_count();
  [[nodiscard]] std::vector<WeightedRelayTrees> take(const std::vector<std::int64_t>& weights);

  const Topology& topology_;
  RelayResources resources_;
  TreeGrower copies_;
  TreeGrower adds_;
  bool needs_in_;
  bool needs_out_;
  std::vector<std::vector<NodeId>> roots_;  ///< By group: any of these may be a tree's root.
  std::vector<TreePair> pairs_;
  std::map<std::pair<std::uint32_t, std::vector<Entry>>, std::size_t> pair_of_;  ///< By group and loads.
};

/// A group per root, or for all_reduce one group whose root is free: switches that copy and add first, then ranks, as
/// many as are tried, spread evenly.
void RelayProgram::choose_roots(const Collective& collective) {
  if (has_root(collective.kind)) {
    roots_ = {{topology_.node_of(collective.root)}};
    return;
  }
  std::vector<NodeId> ranks;
  for (std::size_t r = 0; r < topology_.rank_count(); ++r) ranks.push_back(topology_.node_of(Rank(r)));
  // The root of an all_reduce sends on what it added up.
  if (collective.kind == CollectiveKind::all_reduce) {
    std::erase_if(ranks, [&](NodeId rank) { return topology_.node(rank).must_not_relay(); });
  }
  if (collective.kind != CollectiveKind::all_reduce) {
    for (const NodeId rank : ranks) roots_.push_back({rank});
    return;
  }
  roots_.emplace_back();
  std::vector<NodeId> switches;
  for (std::size_t v = 0; v < topology_.node_count(); ++v) {
    if (topology_.nodes()[v].multicast && topology_.nodes()[v].reduction) switches.emplace_back(v);
  }
  const auto add_spread = [&](const std::vector<NodeId>& nodes, std::size_t most) {
    const std::size_t count = std::min(nodes.size(), most);
    for (std::size_t i = 0; i < count; ++i) roots_[0].push_back(nodes[i * nodes.size() / count]);
  };
  add_spread(switches, max_free_roots * 3 / 4);
  add_spread(ranks, max_free_roots - roots_[0].size());
}

std::int64_t RelayProgram::growth_rounds() const {
  const auto ranks = static_cast<std::int64_t>(topology_.rank_count());
  std::int64_t trees = 0;
  for (const auto& roots : roots_)
    trees += static_cast<std::int64_t>(roots.size()) * ((needs_in_ && needs_out_) ? 2 : 1);
  const auto links = static_cast<std::int64_t>(topology_.link_count());
  const std::int64_t transfers = ranks * static_cast<std::int64_t>(roots_.size());
  return std::clamp(std::min(growth_work / (trees * links), transfer_budget / transfers), std::int64_t{1},
                    max_growth_rounds);
}

std::optional<TreePair> RelayProgram::grow(NodeId root, std::uint32_t group, const Prices& prices) const {
  TreePair pair;
  if (needs_in_) pair.in = adds_.grow(root, prices);
  if (needs_out_) pair.out = copies_.grow(root, prices);
  if (pair.in.has_value() != needs_in_ || pair.out.has_value() != needs_out_) return std::nullopt;
  std::vector<std::int64_t> uses(resources_.rates.size(), 0);
  for (const auto* tree : {&pair.in, &pair.out}) {
    if (*tree) resources_.add_uses(**tree, topology_, uses);
  }
  pair.column.group = group;
  for (std::uint32_t r = 0; r < uses.size(); ++r) {
    if (uses[r] > 0) pair.column.loads.push_back({r, uses[r]});
  }
  return pair;
}

double RelayProgram::cost(const TreePair& pair, const Prices& prices) const {
  return cost_of<double>(pair.column, prices);
}

/// The cheapest trees of a group; nothing when none of its roots reaches all ranks.
std::optional<TreePair> RelayProgram::cheapest(std::uint32_t group, const Prices& prices) const {
  std::optional<TreePair> best;
  double least = 0;
  for (const NodeId root : roots_[group]) {
    std::optional<TreePair> grown = grow(root, group, prices);
    if (!grown) continue;
    const double price = cost(*grown, prices);
    if (best && price >= least) continue;
    best = std::move(grown);
    least = price;
  }
  return best;
}

std::size_t RelayProgram::note(TreePair pair) {
  const auto [found, is_new] = pair_of_.try_emplace({pair.column.group, pair.column.loads}, pairs_.size());
  if (is_new) pairs_.push_back(std::move(pair));
  return found->second;
}

/// What is fullest is dear.
RelayProgram::Prices RelayProgram::prices_of_load(const std::vector<double>& filled) const {
  const double fullest = *std::ranges::max_element(filled);
  Prices prices(filled.size());
  for (std::size_t r = 0; r < prices.size(); ++r) {
    const double fullness = fullest > 0 ? filled[r] / fullest : 1;
    prices[r] = std::exp(sharpness * (fullness - 1)) / static_cast<double>(resources_.rates[r]);
  }
  return prices;
}

/// Trees one after the other, each along what those before it have left idle. The rounds after which the fullest link
/// had the least to carry per round count.
bool RelayProgram::grow_by_load() {
  std::vector<double> filled(resources_.rates.size(), 0);
  std::vector<std::size_t> grown_since;  // pairs of the rounds that do not count yet
  double least = std::numeric_limits<double>::infinity();
  const std::int64_t rounds = growth_rounds();
  for (std::int64_t round = 1; round <= rounds; ++round) {
    for (std::uint32_t group = 0; group < roots_.size(); ++group) {
      std::optional<TreePair> grown = cheapest(group, prices_of_load(filled));
      if (!grown) return false;
      for (const Entry entry : grown->column.loads) {
        filled[entry.index] += static_cast<double>(entry.value) / static_cast<double>(resources_.rates[entry.index]);
      }
      grown_since.push_back(note(*std::move(grown)));
    }
    const double load = *std::ranges::max_element(filled) / static_cast<double>(round);
    if (load >= least * (1 - load_tolerance)) continue;
    least = load;
    for (const std::size_t pair : grown_since) ++pairs_[pair].times_grown;
    grown_since.clear();
  }
  return true;
}

MasterProgram RelayProgram::program() const {
  MasterProgram program;
  std::int64_t unit = 0;
  for (const std::int64_t rate : resources_.rates) unit = std::gcd(unit, rate);
  for (const std::int64_t rate : resources_.rates) program.capacity.emplace_back(rate / unit);
  program.family_count = static_cast<std::uint32_t>(roots_.size());
  program.family.resize(roots_.size());
  std::iota(program.family.begin(), program.family.end(), 0U);
  program.sharing = roots_.size() > 1 ? Sharing::equal : Sharing::free;
  return program;
}

/// Adds trees that the program gains from; false when none is found at these prices.
bool RelayProgram::improve(RestrictedMaster& master, const Prices& prices) {
  bool improved = false;
  for (std::uint32_t group = 0; group < roots_.size(); ++group) {
    for (const NodeId root : roots_[group]) {
      std::optional<TreePair> grown = grow(root, group, prices);
      if (!grown || master.gain(grown->column) <= gain_tolerance) continue;
      const std::size_t known = pairs_.size();
      const std::size_t place = note(*std::move(grown));
      if (place < known) continue;
      master.add(pairs_[place].column);
      improved = true;
    }
  }
  return improved;
}

/// The amount of every pair; none when the program was not solved exactly.
std::vector<Rational> RelayProgram::solve() {
  const MasterProgram packing = program();
  RestrictedMaster master(packing);
  for (const TreePair& pair : pairs_) master.add(pair.column);
  Prices calm;
  for (int round = 0; round < program_rounds; ++round) {
    if (!master.solve()) return {};
    Prices prices = master.prices();
    double worth = 0;
    for (std::size_t r = 0; r < prices.size(); ++r) worth += prices[r] * static_cast<double>(resources_.rates[r]);
    // Links that are not full cost a little, so that trees do not wander; calm prices change less from round to round.
    const double least = 1e-6 * worth / static_cast<double>(prices.size());
    for (std::size_t r = 0; r < prices.size(); ++r) prices[r] += least / static_cast<double>(resources_.rates[r]);
    if (calm.empty()) calm = prices;
    for (std::size_t r = 0; r < prices.size(); ++r) calm[r] = (calm[r] + prices[r]) / 2;
    if (!improve(master, calm) && !improve(master, prices)) break;
  }
  if (!master.solve()) return {};
  std::optional<RestrictedMaster::Exact> exact = master.exact();
  return exact ? std::move(exact->amounts) : std::vector<Rational>();
}

std::vector<WeightedRelayTrees> RelayProgram::take(const std::vector<std::int64_t>& weights) {
  std::vector<WeightedRelayTrees> trees;
  for (std::size_t c = 0; c < pairs_.size(); ++c) {
    if (weights[c] == 0) continue;
    trees.push_back({std::move(pairs_[c].in), std::move(pairs_[c].out), weights[c]});
  }
  return trees;
}

std::vector<WeightedRelayTrees> RelayProgram::weigh_by_count() {
  std::vector<std::int64_t> weights;
  for (const TreePair& pair : pairs_) weights.push_back(pair.times_grown);
  return take(weights);
}

/// Whole numbers in the ratio of the amounts while their common denominator is small; else rounded, every group to the
/// same sum.
std::vector<WeightedRelayTrees> RelayProgram::weigh(const std::vector<Rational>& amounts) {
  constexpr std::int64_t max_exact_units = std::int64_t{1} << 46;
  constexpr std::int64_t rounded_units = std::int64_t{1} << 30;
  std::vector<Rational> sums(roots_.size(), Rational(0));
  for (std::size_t c = 0; c < pairs_.size(); ++c) sums[pairs_[c].column.group] += amounts[c];
  std::vector<Rational> shares;
  BigInteger exact_units = 1;
  for (std::size_t c = 0; c < pairs_.size(); ++c) {
    shares.push_back(amounts[c] / sums[pairs_[c].column.group]);
    if (exact_units <= max_exact_units) exact_units = lcm(exact_units, BigInteger(denominator(shares.back())));
  }
  const std::int64_t units = exact_units <= max_exact_units ? exact_units.convert_to<std::int64_t>() : rounded_units;
  std::vector<std::int64_t> weights(pairs_.size());
  std::vector<Rational> before(roots_.size(), Rational(0));  // Of each group, the shares so far.
  std::vector<std::int64_t> given(roots_.size(), 0);
  for (std::size_t c = 0; c < pairs_.size(); ++c) {
    const std::uint32_t group = pairs_[c].column.group;
    before[group] += shares[c];
    const Rational end = before[group] * units;
    const auto whole_end = BigInteger(numerator(end) / denominator(end)).convert_to<std::int64_t>();
    weights[c] = whole_end - given[group];
    given[group] = whole_end;
  }
  return take(weights);
}

}  // namespace

std::vector<WeightedRelayTrees> find_relay_trees(const Topology& topology, const Collective& collective) {
  return RelayProgram(topology, collective).run();
}

}  // namespace espalier::planners
