#include "cli/flags/condition_flags.h"
#include "cli/reports/describe_bound.h"
#include "cli/reports/explanation.h"
#include "schedule/relays.h"

namespace espalier::cli {
namespace {

using Json = nlohmann::ordered_json;

Json limit_json(const Explanation& of) {
  Json limit = bound_json(planners::PricedBound{of.bound, of.prices}, of.schedule->collective, *of.topology);
  limit["proof"] = nullptr;
  if (!of.proof) return limit;
  Json proof = {{"direction", of.proof->direction == Direction::forward ? "leave" : "enter"},
                {"ranks_inside", of.proof->ranks_inside},
                {"demand", to_string(of.proof->demand)},
                {"capacity", of.proof->capacity.convert_to<double>()},
                {"links", Json::array()},
                {"backplanes", Json::array()}};
  for (const LinkId link : of.proof->links) proof["links"].push_back(of.topology->link_name(link));
  for (const NodeId node : of.proof->backplanes) proof["backplanes"].push_back(of.topology->node(node).id);
  limit["proof"] = std::move(proof);
  return limit;
}

Json plan_json(const Explanation& of) {
  const Schedule& schedule = *of.schedule;
  Json plan = {{"algorithm", schedule.algorithm},
               {"transfers", of.candidate->transfer_count()},
               {"channels", schedule.channel_count()},
               {"hops", of.shape.hops},
               {"branches", of.shape.branches},
               {"in_chains", of.shape.in_chains},
               {"load_time_per_byte", to_string(of.loads.time_per_byte)},
               {"fullest", Json::array()},
               {"classes", Json::array()}};
  for (const LinkId link : of.loads.bottleneck_links) plan["fullest"].push_back(of.topology->link_name(link));
  for (const NodeId node : of.loads.bottleneck_nodes) plan["fullest"].push_back(of.topology->node(node).id);
  for (const planners::ClassLoad& load : of.classes) {
    plan["classes"].push_back({{"class", load.link_class},
                               {"links", load.links},
                               {"used", load.used},
                               {"most_of_bound", load.most},
                               {"mean_of_bound", load.mean}});
  }
  return plan;
}

Json simulation_json(const Explanation& of) {
  const Collective& collective = of.schedule->collective;
  Json simulation = {{"size", of.size.count},
                     {"type", of.type},
                     {"time", of.limits.report.elapsed.seconds()},
                     {"algbw", of.limits.report.algbw()},
                     {"busbw", of.limits.report.busbw(collective)},
                     {"of_bound", of.limits.report.of_bound(of.bound.time_per_byte, collective)},
                     {"chunk", of.limits.report.chunk.count},
                     {"ahead", of.limits.report.ahead},
                     {"critical_steps", of.limits.report.critical_path.size()},
                     {"critical", Json::array()}};
  for (const sim::CriticalShare& share : of.critical) {
    simulation["critical"].push_back({{"on", share.what},
                                      {"steps", share.steps},
                                      {"time", share.time.seconds()},
                                      {"queued", share.queued.seconds()}});
  }
  if (of.limits.report.ahead > 0) simulation["window_waits"] = of.limits.report.window_waits;
  simulation["path"] = Json::array();
  for (const sim::PathTime& share : of.limits.path) {
    simulation["path"].push_back({{"use", to_string(share.use)},
                                  {"on", share.where},
                                  {"time", share.time.seconds()},
                                  {"most_at", share.max_at},
                                  {"most_time", share.max_time.seconds()}});
  }
  simulation["model"] = sim::to_string(of.limits.model);
  if (!of.profile.empty()) simulation["profile"] = of.profile;
  if (!of.why.empty()) simulation["why"] = of.why;
  simulation["circumstances"] = circumstances_json(of.circumstances);
  simulation["shared"] = Json::array();
  for (const sim::SharedTime& shared : of.limits.report.shared) {
    simulation["shared"].push_back(
        {{"at", shared.link.is_none() ? of.topology->node(shared.node).id : of.topology->link_name(shared.link)},
         {"from", end_name(*of.schedule, *of.topology, shared.src)},
         {"to", end_name(*of.schedule, *of.topology, shared.dst)},
         {"time", shared.time.seconds()}});
  }
  simulation["full_links"] = Json::array();
  for (const sim::LinkShare& link : of.limits.full) {
    simulation["full_links"].push_back({{"link", link.name}, {"busy", link.share}, {"links", link.links}});
  }
  return simulation;
}

Json improvements_json(const Explanation& of) {
  Json improvements = Json::array();
  for (const forecast::Improvement& improvement : of.limits.improvements) {
    improvements.push_back({{"change", improvement.change},
                            {"kind", improvement.kind},
                            {"time", improvement.elapsed.seconds()},
                            {"saved", (of.limits.report.elapsed - improvement.elapsed).seconds()},
                            {"chunk", improvement.chunk.count}});
  }
  return improvements;
}

Json trials_json(const Explanation& of) {
  Json trials = Json::array();
  for (const planners::Trial& trial : of.trials) {
    Json entry = {{"algorithm", trial.candidate->planner}, {"least_time", trial.min_time}};
    if (trial.run) entry["time"] = trial.run->elapsed.seconds();
    trials.push_back(std::move(entry));
  }
  return trials;
}

}  // namespace

nlohmann::ordered_json explanation_json(const Explanation& of) {
  const Collective& collective = of.schedule->collective;
  Json document = {{"schema", "espalier/explain/1"},
                   {"topology", of.topology->name()},
                   {"collective", to_string(collective.kind)},
                   {"ranks", collective.rank_count}};
  if (!collective.root.is_none()) document["root"] = of.topology->rank_name(collective.root);
  add_shares(document, collective);
  document["bound"] = limit_json(of);
  document["plan"] = plan_json(of);
  document["simulation"] = simulation_json(of);
  document["improvements"] = improvements_json(of);
  document["explained"] = of.label;
  document["candidates"] = trials_json(of);
  document["more_cables"] = Json::array();
  for (const planners::MoreCables& more : of.more) {
    document["more_cables"].push_back({{"beside", more.beside},
                                       {"of", more.what},
                                       {"cables", more.cables},
                                       {"bound", bound_json(more.bound, collective, *of.topology)}});
  }
  return document;
}

}  // namespace espalier::cli
