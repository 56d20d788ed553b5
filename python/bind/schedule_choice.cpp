#include "python/bind/schedule_choice.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "forecast/sources/advisor.h"
#include "python/bind/lone_rank.h"
#include "schedule/json/schedule_json.h"
#include "schedule/verify/verify.h"
#include "topology/generate/generate.h"
#include "topology/yaml/read_topology.h"

namespace espalier::python {
namespace {

struct PlanInUse {
  std::shared_ptr<const Schedule> schedule;
  PlanForSizes sizes;
};

Result<Topology> read_network(const std::string& path) {
  TopologyReading reading = read_topology_file(path);
  if (reading.topology) return *std::move(reading.topology);
  std::string all;
  for (const Diagnostic& diagnostic : reading.diagnostics) {
    if (diagnostic.severity == Severity::error) all += (all.empty() ? "" : "\n") + render(diagnostic, false);
  }
  return fail(ErrorCode::invalid_input, all, "");
}

Result<Schedule> read_checked_plan(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(ErrorCode::unavailable, "cannot read the plan " + path, "ESPALIER_PLAN names files");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  auto plan = read_plan(text, path);
  if (!plan) return tl::unexpected(plan.error());
  if (auto verified = require_verified(plan->schedule, plan->topology, path); !verified) {
    return tl::unexpected(verified.error());
  }
  return std::move(plan->schedule);
}

}  // namespace

Result<GroupSchedules> schedules_for(const BackendSettings& settings, std::size_t ranks, bool is_whole_job) {
  if (ranks == 1) return GroupSchedules{[](bool) { return ScheduleSource(schedule_of_lone_rank); }, {}};
  auto network = generate_fully_connected({.ranks = static_cast<std::int64_t>(ranks), .wire = {}});
  bool is_taken = false;
  if (!settings.topology.empty()) {
    auto read = read_network(settings.topology);
    if (!read) return tl::unexpected(read.error());
    if (read->rank_count() == ranks) {
      network = std::move(read);
      is_taken = true;
    } else if (is_whole_job) {
      return fail(ErrorCode::invalid_input,
                  "the job has " + std::to_string(ranks) + " ranks, the topology " + settings.topology + " has " +
                      std::to_string(read->rank_count()),
                  "start as many processes as the topology has ranks");
    }
  }
  if (!network) return tl::unexpected(network.error());
  engine::VerbsOptions verbs;
  engine::set_rails(verbs, *network);
  const bool is_balanced = is_taken && settings.algorithm == "auto";
  const std::optional<Topology> balanced_on = is_balanced ? std::optional(*network) : std::nullopt;
  forecast::AdvisorOptions options{.algorithm = settings.algorithm, .leaves_chunk_to_engine = true};
  options.may_be_replaced = settings.algorithm == "auto";
  const auto advised = [network = *std::move(network), options](bool shares_memory) {
    forecast::AdvisorOptions known = options;
    known.shares_memory = shares_memory;
    return forecast::Advisor::source(std::make_shared<forecast::Advisor>(network, std::move(known)));
  };
  std::vector<PlanInUse> plans;
  for (const PlanForSizes& named : settings.plans) {
    auto schedule = read_checked_plan(named.path);
    if (!schedule) return tl::unexpected(schedule.error());
    if (is_whole_job && schedule->collective.rank_count != ranks) {
      return fail(ErrorCode::invalid_input,
                  "the job has " + std::to_string(ranks) + " ranks, the plan " + named.path + " has " +
                      std::to_string(schedule->collective.rank_count),
                  "start as many processes as the plan has ranks");
    }
    plans.push_back({std::make_shared<const Schedule>(*std::move(schedule)), named});
  }
  if (plans.empty()) return GroupSchedules{advised, std::move(verbs), balanced_on};
  const auto planned = [plans = std::move(plans), advised](bool shares_memory) -> ScheduleSource {
    return
        [plans, others = advised(shares_memory)](const Collective& collective, Bytes size) -> Result<SourcedSchedule> {
          for (const PlanInUse& plan : plans) {
            if (plan.schedule->collective != collective || size.count < plan.sizes.least) continue;
            if (plan.sizes.most && size.count > *plan.sizes.most) continue;
            return SourcedSchedule{plan.schedule, Bytes{}, false, 0};
          }
          return others(collective, size);
        };
  };
  return GroupSchedules{planned, std::move(verbs), balanced_on};
}

std::vector<engine::Setting> agreed_settings(const BackendSettings& settings) {
  std::string plans;
  for (const PlanForSizes& plan : settings.plans) {
    plans += (plans.empty() ? "" : ", ") + std::filesystem::path(plan.path).filename().string() + " from " +
             std::to_string(plan.least) + (plan.most ? " to " + std::to_string(*plan.most) : "");
  }
  const std::string topology = std::filesystem::path(settings.topology).filename().string();
  return {{"ESPALIER_TRANSPORT", settings.transport},
          {"ESPALIER_ALGORITHM", settings.algorithm},
          {"ESPALIER_TOPOLOGY", topology.empty() ? "not set" : topology},
          {"ESPALIER_PLAN", plans.empty() ? "not set" : plans},
          {"ESPALIER_DEVICE_TENSORS", settings.device_tensors}};
}

}  // namespace espalier::python
