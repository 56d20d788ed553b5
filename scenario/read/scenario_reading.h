#pragma once

// Tested by: tests/unit/scenario/read/read_scenario_test.cpp

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenario/read/read_scenario.h"
#include "scenario/workload/averaging.h"
#include "scenario/workload/chakra.h"
#include "scenario/workload/flop_rate.h"
#include "scenario/workload/training.h"
#include "topology/yaml/fields.h"
#include "topology/yaml/findings.h"
#include "topology/yaml/parameters.h"

namespace espalier::scenario {

/// Everything that the parts of the reader share.
struct ScenarioContext {
  Findings& findings;
  Scenario& scenario;
  const ScenarioOptions& options;
  std::optional<std::filesystem::path> folder;
  Environment environment;                             ///< Scenarios have no parameters.
  std::map<std::string, std::vector<GroupId>> groups;  ///< By name; several where one was cut up.
  std::vector<std::string> group_names;
  std::uint16_t next_stream = 16;  ///< Each entry of `collectives` has a stream of its own.

  [[nodiscard]] Fields fields(Value map, std::string_view what, std::span<const std::string_view> known) {
    return {map, what, known, environment, findings};
  }
  void error(const Mark& mark, std::string_view code, std::string message, std::string help = {}) {
    findings.error(mark, {code, std::move(message), std::move(help)});
  }
  void error(const Mark& mark, std::string_view code, const Error& from) { error(mark, code, from.message, from.help); }
  /// The items of a list under `key`; reports anything else that stands there.
  [[nodiscard]] std::vector<Value> list(const Fields& fields, std::string_view key);
};

// Values that topologies do not have. Each reports what is wrong and returns nothing then, or when the key is missing.
std::optional<Bytes> read_size(ScenarioContext& context, const Fields& fields, std::string_view key);
/// As read_size, above nothing; zero when the key is missing.
std::optional<Bytes> read_chunk(ScenarioContext& context, const Fields& fields, std::string_view key = "chunk");
/// A decimal from `low` to 1,000, in millionths.
std::optional<std::int64_t> read_factor(ScenarioContext& context, const Fields& fields, std::string_view key,
                                        std::int64_t low_ppm);
/// "2%" or "0.02", in millionths (parse_part).
std::optional<std::int32_t> read_part(ScenarioContext& context, const Fields& fields, std::string_view key);
std::optional<FlopRate> read_flop_rate(ScenarioContext& context, const Fields& fields, std::string_view key);
std::optional<ElementType> read_type(ScenarioContext& context, const Fields& fields, std::string_view key);
/// A planner's name, "auto" among them; empty when the key is missing.
std::optional<std::string> read_algorithm(ScenarioContext& context, const Fields& fields, std::string_view key);
/// Ranks by nodes and ranges, in topology order; all of the topology when the key is missing.
std::optional<std::vector<Rank>> read_ranks(ScenarioContext& context, const Fields& fields, std::string_view key);

/// How an all_reduce is done: by the keys `gossip` or `compression`, or as it is. With `averages_plainly` they are
/// checked and not followed.
std::optional<Averaging> read_averaging(ScenarioContext& context, const Fields& fields);

/// `experts`: how many, or a map that also says how tokens are routed to them. Whether it is right.
bool read_experts(ScenarioContext& context, const Fields& fields, TrainingModel& model);

// The parts of a file.
/// Whether a path that a file writes leads, or may lead, out of the file's folder: absolute, with "..", or "-".
bool leaves_folder(const std::string& written);

void read_groups(ScenarioContext& context, Value groups);
void read_collectives(ScenarioContext& context, const std::vector<Value>& list);
void read_training(ScenarioContext& context, Value training);
/// `training` with the key `trace`.
void read_trace(ScenarioContext& context, const Fields& fields, const std::vector<Rank>& ranks);
void read_background(ScenarioContext& context, const std::vector<Value>& list);
void read_stragglers(ScenarioContext& context, const std::vector<Value>& list);
void read_events(ScenarioContext& context, const std::vector<Value>& list);

}  // namespace espalier::scenario
