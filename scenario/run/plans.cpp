#include "scenario/run/plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/check.h"
#include "forecast/candidate_runs.h"
#include "planners/bundled_network.h"
#include "planners/planner.h"
#include "topology/routes.h"

namespace espalier::scenario {
namespace {

constexpr std::string_view direct_planner = "direct";
constexpr std::string_view balanced_planner = "balanced";

/// One transfer from the root to the other rank of two, on the best route.
Result<Schedule> plan_direct(const Topology& topology, const Collective& collective, std::uint32_t variant) {
  const Rank src = collective.root;
  const Rank dst(1 - src.index());
  const auto route = find_route(topology, src, dst, {.variant = variant});
  if (!route) return fail(ErrorCode::infeasible, topology.rank_name(src) + " cannot reach " + topology.rank_name(dst));
  Schedule schedule(collective, topology.name(), std::string(direct_planner));
  schedule.units = 1;
  schedule.slices.push_back({.offset = 0, .length = 1, .rank = Rank(), .to = Rank()});
  schedule.add_transfer(schedule.add_route(src, dst, route->links), SliceId(0), 1, Action::copy, ChannelId(0));
  return schedule;
}

/// What the verbs that choose take of all planners: the fastest alone at this size, and how it is cut.
Result<std::unique_ptr<const PlannedSchedule>> plan_auto(const Topology& topology, const Collective& collective,
                                                         Bytes size, std::int64_t element_size, planners::Paths paths) {
  const forecast::Question question{.machine = &topology,
                                    .collective = collective,
                                    .sizes = {size},
                                    .how = {.element_size = element_size},
                                    .forms = forecast::PlanForms::schedules,
                                    .paths = paths};
  auto candidates = forecast::plan(question);
  if (!candidates) return tl::unexpected(candidates.error());
  if (candidates->made.empty()) return tl::unexpected(candidates->refused.front().error);
  const auto choice = forecast::CandidateRuns(topology, *candidates, question.how).choose(size);
  if (!choice) return tl::unexpected(choice.error());
  auto& chosen = candidates->made[static_cast<std::size_t>(choice->candidate - candidates->made.data())];
  return std::make_unique<const PlannedSchedule>(PlannedSchedule{std::move(chosen.schedule), chosen.chunks,
                                                                 std::move(chosen.planner),
                                                                 Pacing{choice->run.chunk, choice->run.ahead}});
}

/// The first of the usual planners that makes the collective here.
Result<Schedule> plan_usual(const planners::BundledNetwork& network, const Collective& collective,
                            std::string& winner) {
  Result<Schedule> first = fail(ErrorCode::unsupported, "no planner");
  for (const std::string_view name : {"ring", "tree", "pairwise", "flat"}) {
    auto schedule = planners::plan_unbounded(network, collective, *planners::find_planner(name));
    winner = name;
    if (schedule) return schedule;
    if (name == "ring" || first.error().message == "no planner") first = std::move(schedule);
  }
  return first;
}

/// By the NICs of whole boxes, where there are several of several ranks and blocks are unequal.
Result<Schedule> plan_balanced(const planners::BundledNetwork& network, const Collective& collective,
                               std::string& winner) {
  winner = "balance";
  return planners::plan_unbounded(network, collective, *planners::find_planner("balance"));
}

/// The links of the network that a schedule on a part of it uses, ascending.
std::vector<LinkId> links_of(const Schedule& schedule, const std::vector<LinkId>& places) {
  std::vector<LinkId> links;
  for (std::size_t i = 0; i < schedule.route_count(); ++i) {
    const Route route = schedule.route(RouteId(i));
    for (const LinkId link : route.links) links.push_back(places[link.index()]);
  }
  std::ranges::sort(links);
  links.erase(std::unique(links.begin(), links.end()), links.end());
  return links;
}

}  // namespace

bool Plan::uses(LinkId link) const { return std::ranges::binary_search(links, link); }

Plans::Plans(const Topology& topology, const sim::Network& network, planners::Paths paths)
    : topology_(topology), network_(network), paths_(paths) {
  std::unordered_map<std::string, std::pair<std::uint32_t, std::uint32_t>> hosts;  // its number, its ranks so far
  for (std::size_t i = 0; i < topology.rank_count(); ++i) {
    const std::string& host = topology.node(topology.node_of(Rank(i))).host;
    const auto number = static_cast<std::uint32_t>(hosts.size());
    auto& known = hosts.try_emplace(host.empty() ? topology.rank_name(Rank(i)) : host, number, 0).first->second;
    variants_.push_back(known.first + known.second++);
  }
}

bool Plans::uses_dead(const Plan& plan) const {
  return !dead_.empty() && std::ranges::any_of(plan.links, [&](LinkId link) { return dead_[link.index()]; });
}

void Plans::set_dead(LinkId link, bool is_dead) {
  if (dead_.empty()) dead_.resize(topology_.link_count(), false);
  dead_[link.index()] = is_dead;
  damaged_.clear();
}

Result<std::unique_ptr<const PlannedSchedule>> Plans::plan_shape(const Key& key, const Blocks& blocks,
                                                                 const Topology& topology) const {
  const std::optional<Rank> root = key.root.is_none() ? std::nullopt : std::optional(key.root);
  const auto made = make_collective(key.kind, key.ranks.size(), root, blocks);
  if (!made) return tl::unexpected(made.error());
  const Collective& collective = *made;
  if (key.planner == "auto") return plan_auto(topology, collective, {key.size}, key.element_size, paths_);
  const planners::BundledNetwork network(topology, paths_);
  std::string name = key.planner;
  Result<Schedule> schedule = fail(ErrorCode::unsupported, "");
  if (is_direct(key)) {
    name = direct_planner;
    schedule = plan_direct(network.problem().topology(), collective, key.variant);
    if (schedule) schedule = network.lift(*std::move(schedule));
  } else if (key.planner.empty() || key.planner == balanced_planner) {
    if (!key.planner.empty()) schedule = plan_balanced(network, collective, name);
    if (!schedule) schedule = plan_usual(network, collective, name);
  } else {
    const auto planner = planners::find_planner(key.planner);
    if (!planner) return tl::unexpected(planner.error());
    schedule = planners::plan_unbounded(network, collective, *planner);
  }
  if (!schedule) return tl::unexpected(schedule.error());
  planners::ChunkModel chunks(*schedule, network.topology());
  return std::make_unique<const PlannedSchedule>(
      PlannedSchedule{*std::move(schedule), std::move(chunks), std::move(name), std::nullopt});
}

Result<const Plan*> Plans::make(const Key& key, const Blocks& blocks, const std::vector<bool>& dead) {
  auto footprint = find_footprint(topology_, key.ranks, dead);
  if (!footprint) return tl::unexpected(footprint.error());
  std::string text = shape_of(footprint->topology);
  auto at = shapes_.find(text);
  if (at == shapes_.end()) at = shapes_.emplace(std::move(text), Shape{footprint->topology, {}}).first;
  Shape& shape = at->second;
  Key of_shape = key;
  of_shape.ranks.clear();
  auto& planned = shape.schedules[of_shape];
  if (planned == nullptr) {
    auto made = plan_shape(key, blocks, shape.topology);
    if (!made) return tl::unexpected(made.error());
    planned = *std::move(made);
  }
  auto plan = std::make_unique<Plan>();
  plan->planned = planned.get();
  plan->links = links_of(planned->schedule, footprint->places.links);
  auto compiled =
      sim::CompiledSchedule::make_unverified(planned->schedule, shape.topology, network_, footprint->places);
  if (!compiled) return tl::unexpected(compiled.error());
  plan->compiled = std::make_unique<const sim::CompiledSchedule>(*std::move(compiled));
  plans_.push_back(std::move(plan));
  return plans_.back().get();
}

bool Plans::is_direct(const Key& key) {
  return key.planner.empty() && key.ranks.size() == 2 && key.kind == CollectiveKind::broadcast;
}

Result<const Plan*> Plans::find(Key key, const Blocks& blocks) {
  const std::vector<bool> none_dead;
  if (is_direct(key)) key.variant = variants_[key.ranks[key.root.index()].index()];
  auto whole = whole_.find(key);
  if (whole == whole_.end()) {
    const auto plan = make(key, blocks, none_dead);
    if (!plan) return plan;
    whole = whole_.emplace(key, *plan).first;
  }
  if (!uses_dead(*whole->second)) return whole->second;
  if (const auto known = damaged_.find(key); known != damaged_.end()) return known->second;
  const auto plan = make(key, blocks, dead_);
  if (plan) damaged_.emplace(key, *plan);
  return plan;
}

Result<const Plan*> Plans::find(const Job& job, CallId id) {
  const Call& call = job.call(id);
  const auto ranks = job.ranks(call.group);
  Key key{{ranks.begin(), ranks.end()}, call.kind, call.root, {}, 0, 0, 0, call.matrix};
  if (!call.planner.is_none()) key.planner = job.label(call.planner);
  if (key.planner == "auto") {
    key.size = call.size.count;
    key.element_size = call.element_size;
  }
  static const Blocks equal;
  auto plan = find(std::move(key), call.matrix.is_none() ? equal : job.matrix(call.matrix));
  if (plan) return plan;
  Error error = plan.error();
  error.message = fmt::format("call {} '{}' ({} among {} ranks): {}", id.value(), job.label(call.label),
                              to_string(call.kind), ranks.size(), error.message);
  return tl::unexpected(std::move(error));
}

Result<const Plan*> Plans::find_pair(Rank src, Rank dst) {
  return find(Key{{std::min(src, dst), std::max(src, dst)},
                  CollectiveKind::broadcast,
                  Rank(src < dst ? 0 : 1),
                  {},
                  0,
                  0,
                  0,
                  {}},
              {});
}

}  // namespace espalier::scenario
