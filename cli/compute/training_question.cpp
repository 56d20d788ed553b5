#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "cli/compute/questions.h"
#include "compute/training.h"

namespace espalier::cli {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::array<std::pair<std::string_view, compute::CallKind>, 5> call_names = {
    {{"all_reduce", compute::CallKind::all_reduce},
     {"reduce_scatter", compute::CallKind::reduce_scatter},
     {"all_gather", compute::CallKind::all_gather},
     {"all_to_all", compute::CallKind::all_to_all},
     {"send_recv", compute::CallKind::send}}};
constexpr std::array<std::pair<std::string_view, compute::Order>, 3> order_names = {
    {{"1f1b", compute::Order::alternating},
     {"gpipe", compute::Order::forwards_first},
     {"zero-bubble", compute::Order::deferred_weights}}};
constexpr std::array<std::pair<std::string_view, compute::ContextExchange>, 3> exchange_names = {
    {{"ring", compute::ContextExchange::ring},
     {"all_gather", compute::ContextExchange::all_gather},
     {"all_to_all", compute::ContextExchange::all_to_all}}};
constexpr std::array<std::pair<std::string_view, compute::Shards>, 4> shard_names = {
    {{"none", compute::Shards::none},
     {"optimizer", compute::Shards::optimizer},
     {"gradients", compute::Shards::gradients},
     {"full", compute::Shards::full}}};

/// What calls take by their bytes, as somebody else found out; straight between two sizes, and by rate beyond the last.
class CallTables {
 public:
  using Key = std::tuple<compute::CallKind, std::int64_t, std::int64_t>;
  struct Span {
    double least;
    double most;
    std::int64_t at_once;
  };

  void read(const json& tables, Members& members) {
    for (const json& table : tables) {
      if (!table.is_object() || !table.contains("seconds") || !table["seconds"].is_array()) {
        return members.refuse("a table of calls is wrong",
                              "give kind, count, stride and seconds: [[bytes, seconds], ...]");
      }
      Members own(table, "calls");
      const Key key{named(own, "kind", call_names, compute::CallKind::all_reduce), own.needed("count"),
                    own.needed("stride")};
      auto& points = tables_[key];
      for (const json& point : *own.find("seconds")) {
        if (!point.is_array() || point.size() != 2 || !point[0].is_number() || !point[1].is_number()) {
          return members.refuse("a point of a table of calls is no [bytes, seconds]");
        }
        points.emplace_back(point[0].get<double>(), point[1].get<double>());
      }
      std::ranges::sort(points);
      if (const auto checked = own.finish(); !checked) members.refuse(checked.error().message, checked.error().help);
    }
  }

  double seconds(compute::CallKind kind, const compute::CallGroup& group, double bytes) {
    const Key key{kind, group.count, group.stride};
    const auto [span, is_new] = asked_.try_emplace(key, Span{bytes, bytes, group.at_once});
    span->second.least = std::min(span->second.least, bytes);
    span->second.most = std::max(span->second.most, bytes);
    const auto found = tables_.find(key);
    if (found == tables_.end() || found->second.empty()) {
      lacks_ = true;
      return 0;
    }
    return at(found->second, bytes);
  }

  [[nodiscard]] bool lacks() const { return lacks_; }

  [[nodiscard]] ordered_json asked() const {
    ordered_json all = ordered_json::array();
    for (const auto& [key, span] : asked_) {
      const auto& [kind, count, stride] = key;
      all.push_back({{"kind", call_names[static_cast<std::size_t>(kind)].first},
                     {"count", count},
                     {"stride", stride},
                     {"at_once", span.at_once},
                     {"least", span.least},
                     {"most", span.most}});
    }
    return all;
  }

 private:
  static double at(const std::vector<std::pair<double, double>>& points, double bytes) {
    const auto above = std::ranges::lower_bound(points, bytes, {}, &std::pair<double, double>::first);
    if (above == points.begin()) return above->second;
    const auto below = std::prev(above);
    if (above == points.end()) return below->second * bytes / below->first;
    const double part = (bytes - below->first) / (above->first - below->first);
    return below->second + (above->second - below->second) * part;
  }

  std::map<Key, std::vector<std::pair<double, double>>> tables_;
  std::map<Key, Span> asked_;
  bool lacks_ = false;
};

compute::TrainingPlan read_plan(Members& members) {
  compute::TrainingPlan plan;
  const Workload workload = read_workload(members);
  plan.model = workload.model;
  plan.slice = workload.slice;
  plan.software = workload.software;
  plan.recompute = workload.recompute;
  plan.pipeline = members.whole("pipeline", 1, 1);
  plan.virtual_stages = members.whole("virtual_stages", 1, 1);
  plan.order = named(members, "schedule", order_names, plan.order);
  plan.stage_layers = members.wholes("stage_layers");
  plan.data = members.whole("data", 1, 1);
  plan.batch = members.needed("batch");
  plan.shards = named(members, "sharding", shard_names, plan.shards);
  plan.shard_group = members.whole("shard_group", 0);
  plan.context_exchange = named(members, "context_exchange", exchange_names, plan.context_exchange);
  plan.gradient_bytes = members.number("gradient_bytes", 0);
  plan.overlaps_gradients = members.flag("overlap_grad_reduce", true);
  plan.overlaps_parameters = members.flag("overlap_param_gather", true);
  plan.overlaps_tensor = members.flag("tp_comm_overlap", false);
  return plan;
}

ordered_json memory_json(const compute::MemoryUse& use, const compute::Gpu& gpu) {
  return {{"total", use.total()},
          {"weights", use.weights},
          {"gradients", use.gradients},
          {"optimizer", use.optimizer},
          {"activations", use.activations},
          {"working", use.working},
          {"of", gpu.memory}};
}

}  // namespace

Result<ordered_json> answer_training(const compute::Gpu& gpu, const json& asked) {
  Members members(asked, "training");
  const compute::TrainingPlan plan = read_plan(members);
  CallTables tables;
  const json* const calls = members.find("calls");
  if (calls != nullptr && !calls->is_array()) members.refuse("'calls' is no list");
  if (calls != nullptr && calls->is_array()) tables.read(*calls, members);
  if (auto checked = members.finish(); !checked) return tl::unexpected(checked.error());
  if (auto checked = compute::check(plan); !checked) return tl::unexpected(checked.error());
  const compute::StepTime step =
      compute::step_time(gpu, plan, [&](compute::CallKind kind, const compute::CallGroup& group, double bytes) {
        return tables.seconds(kind, group, bytes);
      });
  // Without tables the answer says which calls a step makes.
  if (calls == nullptr) return ordered_json{{"calls", tables.asked()}, {"memory", memory_json(step.memory, gpu)}};
  if (tables.lacks()) {
    return fail(ErrorCode::invalid_input, "training: a table of calls is missing",
                "ask without 'calls' which it makes");
  }
  ordered_json range = nullptr;
  if (const auto measured = compute::measured_range(gpu, plan)) {
    range = {{"low", step.seconds * measured->low},
             {"high", step.seconds * measured->high},
             {"part", 0.9},
             {"runs", measured->runs},
             {"sources", measured->sources}};
  }
  return ordered_json{{"seconds", step.seconds},
                      {"range", range},
                      {"forward", step.forward},
                      {"backward", step.backward},
                      {"bubble", step.bubble},
                      {"data", step.data},
                      {"optimizer", step.optimizer},
                      {"memory", memory_json(step.memory, gpu)},
                      {"fits", step.memory.total() <= gpu.memory}};
}

}  // namespace espalier::cli
