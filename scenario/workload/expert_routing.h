#pragma once

// Tested by: tests/unit/scenario/workload/expert_routing_test.cpp

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "experts/exchange.h"
#include "scenario/workload/job.h"
#include "schedule/traffic/traffic_matrix.h"

namespace espalier::scenario {

struct TrainingModel;

/// How tokens are routed to experts, and how they get there.
struct ExpertRouting {
  double exponent = 0;                          ///< Of Zipf's law; 0: every expert is as popular.
  std::uint64_t seed = 0;                       ///< Of the order that experts stand in.
  std::shared_ptr<const TrafficMatrix> matrix;  ///< Instead: what each rank sends to each.
  double capacity = 0;                          ///< Tokens that an expert takes at most, over the mean; 0: all.
  bool is_deduplicated = false;                 ///< A token goes once to each rank that has experts of its.
  bool do_layers_differ = true;                 ///< Each layer has an order of its own.
  bool is_placed = false;                       ///< Experts are where a search puts them, layer by layer.
  std::int64_t changes = 0;                     ///< Steps after which popularity is drawn anew; 0: never.
  std::optional<experts::Format> dispatch;      ///< What tokens are sent as; nothing: the type of activations.
  std::optional<experts::Format> combine;
};

/// What routing makes of a training step.
struct RoutingFigures {
  double busiest = 0;      ///< Load of the busiest rank, over balanced routing; the mean over layers and steps.
  double worst = 0;        ///< The most of any layer.
  double dropped = 0;      ///< Of all copies of tokens.
  bool is_skewed = false;  ///< Not all ranks get the same.
  bool can_place = false;  ///< Experts are known one by one, and a search may put them elsewhere.
};

/// Traffic and computing of one layer's experts.
struct LayerRouting {
  MatrixId there;  ///< Tokens to experts; none: all ranks send all the same.
  MatrixId back;
  Bytes there_size, back_size;  ///< Message sizes.
  std::uint8_t there_element = 1, back_element = 1;
  std::vector<double> load;  ///< By rank of an expert group, over balanced routing.
};

/// The routing of all layers and steps of a model with experts. Requires: a model that check_routing accepts.
class RoutedLayers {
 public:
  RoutedLayers(Job& job, const TrainingModel& model);

  [[nodiscard]] const LayerRouting& of(std::int64_t step, std::int64_t layer) const;
  [[nodiscard]] const RoutingFigures& figures() const { return figures_; }

 private:
  LayerRouting make(Job& job, const TrainingModel& model, std::uint64_t seed);

  std::int64_t layers_ = 1, periods_ = 1, changes_ = 0;
  std::vector<LayerRouting> routings_;  ///< By period, then layer; one layer where all are alike.
  RoutingFigures figures_;
};

/// Whether the routing can be. Errors: invalid_input where there is nothing to route, or the matrix has another number
/// of ranks; too_large where matrices would not fit.
Result<void> check_routing(const TrainingModel& model);

/// "zipf:0.7", "zipf:0.7,seed=3" or "balanced" into a routing. Errors: invalid_input.
Result<void> parse_skew(std::string_view text, ExpertRouting& routing);

}  // namespace espalier::scenario
