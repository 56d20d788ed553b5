#pragma once

// Tested by: tests/unit/scenario/run/run_job_test.cpp

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>

#include "base/result.h"
#include "scenario/run/plans.h"
#include "sim/model.h"

namespace espalier::scenario {

/// How long calls take on the idle network when all ranks take part at once; each kind of call is run once.
class AloneTimes {
 public:
  AloneTimes(sim::ModelKind kind, const sim::Network& network) : model_(sim::make_model(kind, network, {})) {}

  /// In picoseconds. Errors: those of Model::add.
  Result<std::int64_t> find(const Plan& plan, const sim::RunOptions& options);

 private:
  using Key = std::tuple<const Plan*, std::int64_t, std::int64_t, std::int64_t>;

  std::unique_ptr<sim::Model> model_;
  std::int64_t idle_from_ = 0;
  std::map<Key, std::int64_t> known_;
  std::vector<sim::RankEnd> ended_;
};

}  // namespace espalier::scenario
