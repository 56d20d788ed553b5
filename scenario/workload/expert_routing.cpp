#include "scenario/workload/expert_routing.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "experts/routing.h"
#include "scenario/workload/training.h"

namespace espalier::scenario {
namespace {

constexpr double units_per_copy = 1048576;  // of a token, in matrices of traffic
constexpr std::int64_t max_matrix_cells = std::int64_t{1} << 26U;
constexpr std::uint64_t between_layers = 0x9E3779B97F4A7C15U;  // so that seeds of layers and periods are not neighbours

std::int64_t number_of_periods(const TrainingModel& model) {
  const std::int64_t changes = model.routing->changes;
  return changes == 0 ? 1 : (model.steps + changes - 1) / changes;
}

bool are_layers_alike(const ExpertRouting& routing) {
  return routing.matrix != nullptr || routing.exponent == 0 || !routing.do_layers_differ;
}

/// Bytes of a token as it is sent.
double token_bytes(const TrainingModel& model, const std::optional<experts::Format>& format) {
  const double element = format ? experts::bytes_of(*format) : static_cast<double>(size_of(model.type));
  return static_cast<double>(model.hidden) * element;
}

/// Tokens of a rank in a micro-batch.
double tokens_of_rank(const TrainingModel& model) {
  return static_cast<double>(model.micro_batch * model.sequence / model.context /
                             (model.sequence_parallel ? model.tensor : 1));
}

/// What each rank sends to each in copies of a token, and what ranks compute.
struct Traffic {
  std::vector<double> copies;
  std::vector<double> load;
  double dropped = 0;
};

Traffic traffic_of_law(const TrainingModel& model, std::uint64_t seed) {
  const auto ranks = static_cast<std::size_t>(model.expert);
  const auto count = static_cast<std::size_t>(model.experts);
  const ExpertRouting& routing = *model.routing;
  const experts::Popularity popularity =
      experts::zipf_popularity(count, static_cast<std::size_t>(model.experts_per_token), routing.exponent, seed);
  experts::Placement placement = experts::place_in_order(count, ranks);
  if (routing.is_placed) placement = experts::search_placement(popularity, placement, ranks);
  const experts::Routed routed = experts::route(
      popularity, placement, ranks, {.capacity = routing.capacity, .deduplicated = routing.is_deduplicated});
  Traffic traffic{std::vector<double>(ranks * ranks), routed.load, routed.dropped};
  for (std::size_t from = 0; from < ranks; ++from) {
    std::ranges::copy(routed.sent, traffic.copies.begin() + static_cast<std::ptrdiff_t>(from * ranks));
  }
  return traffic;
}

/// Of a matrix, whose ranks send as many copies as those of balanced routing, in the mean.
Traffic traffic_of_matrix(const TrainingModel& model) {
  const TrafficMatrix& matrix = *model.routing->matrix;
  const std::size_t ranks = matrix.ranks;
  double all = 0;
  std::vector<double> received(ranks, 0);
  for (std::size_t place = 0; place < matrix.blocks.size(); ++place) {
    const auto block = static_cast<double>(matrix.blocks[place]);
    all += block;
    received[place % ranks] += block;
  }
  const double mean = all / static_cast<double>(ranks);
  Traffic traffic;
  double kept = 0;
  std::vector<double> parts;
  for (const double one : received) {
    const double load = one / mean;
    const double taken = model.routing->capacity > 0 ? std::min(load, model.routing->capacity) : load;
    parts.push_back(load > 0 ? taken / load : 0);
    traffic.load.push_back(taken);
    kept += taken;
  }
  traffic.dropped = std::max(0.0, 1 - kept / static_cast<double>(ranks));
  const double copies_per_block = static_cast<double>(model.experts_per_token) / mean;
  for (std::size_t place = 0; place < matrix.blocks.size(); ++place) {
    traffic.copies.push_back(static_cast<double>(matrix.blocks[place]) * copies_per_block * parts[place % ranks]);
  }
  return traffic;
}

std::vector<std::int64_t> blocks_of(const std::vector<double>& copies, std::size_t ranks, bool is_back) {
  std::vector<std::int64_t> blocks(copies.size());
  for (std::size_t from = 0; from < ranks; ++from) {
    for (std::size_t to = 0; to < ranks; ++to) {
      const double copy = copies[from * ranks + to];
      const std::int64_t block = copy > 0 ? std::max<std::int64_t>(1, std::llround(copy * units_per_copy)) : 0;
      blocks[is_back ? to * ranks + from : from * ranks + to] = block;
    }
  }
  return blocks;
}

/// The most copies that a rank sends or receives, its own included.
double largest_line(const std::vector<double>& copies, std::size_t ranks) {
  double largest = 0;
  for (std::size_t one = 0; one < ranks; ++one) {
    double sent = 0, received = 0;
    for (std::size_t other = 0; other < ranks; ++other) {
      sent += copies[one * ranks + other];
      received += copies[other * ranks + one];
    }
    largest = std::max({largest, sent, received});
  }
  return largest;
}

}  // namespace

LayerRouting RoutedLayers::make(Job& job, const TrainingModel& model, std::uint64_t seed) {
  const ExpertRouting& routing = *model.routing;
  const auto ranks = static_cast<std::size_t>(model.expert);
  Traffic traffic = routing.matrix ? traffic_of_matrix(model) : traffic_of_law(model, seed);
  const double copies = largest_line(traffic.copies, ranks) * tokens_of_rank(model);
  LayerRouting layer;
  const auto size_of_message = [&](const std::optional<experts::Format>& format, std::uint8_t& element) {
    element = static_cast<std::uint8_t>(format ? 1 : size_of(model.type));
    const auto elements = static_cast<std::int64_t>(std::ceil(copies * token_bytes(model, format) / element));
    return Bytes{elements * element};
  };
  layer.there_size = size_of_message(routing.dispatch, layer.there_element);
  layer.back_size = size_of_message(routing.combine, layer.back_element);
  layer.there = job.add_matrix(blocks_of(traffic.copies, ranks, false));
  layer.back = job.add_matrix(blocks_of(traffic.copies, ranks, true));
  layer.load = std::move(traffic.load);
  const double busiest = std::ranges::max(layer.load);
  figures_.busiest += busiest;
  figures_.worst = std::max(figures_.worst, busiest);
  figures_.dropped += traffic.dropped;
  return layer;
}

RoutedLayers::RoutedLayers(Job& job, const TrainingModel& model)
    : layers_(are_layers_alike(*model.routing) ? 1 : model.layers),
      periods_(number_of_periods(model)),
      changes_(model.routing->changes) {
  for (std::int64_t number = 0; number < periods_ * layers_; ++number) {
    routings_.push_back(make(job, model, model.routing->seed + static_cast<std::uint64_t>(number) * between_layers));
  }
  const auto count = static_cast<double>(routings_.size());
  figures_.busiest /= count;
  figures_.dropped /= count;
  figures_.is_skewed = figures_.worst > 1 + 1e-9;
  figures_.can_place = model.routing->matrix == nullptr && !model.routing->is_placed && model.routing->exponent > 0 &&
                       model.experts > model.expert;
}

const LayerRouting& RoutedLayers::of(std::int64_t step, std::int64_t layer) const {
  const std::int64_t period = changes_ == 0 ? 0 : step / changes_;
  return routings_[static_cast<std::size_t>(period * layers_ + (layers_ == 1 ? 0 : layer))];
}

Result<void> check_routing(const TrainingModel& model) {
  if (!model.routing) return {};
  const ExpertRouting& routing = *model.routing;
  if (model.experts == 0 || model.expert == 1) {
    return fail(ErrorCode::invalid_input, "routing is given, but experts are not spread over ranks",
                "give 'expert', the ranks that share the experts");
  }
  if (routing.matrix && routing.matrix->ranks != static_cast<std::size_t>(model.expert)) {
    return fail(
        ErrorCode::invalid_input,
        fmt::format("the matrix of experts has {} ranks, and expert is {}", routing.matrix->ranks, model.expert),
        "give a matrix of the ranks that share the experts");
  }
  const std::int64_t matrices = (are_layers_alike(routing) ? 1 : model.layers) * number_of_periods(model);
  if (model.expert > static_cast<std::int64_t>(max_matrix_ranks) ||
      2 * matrices * model.expert > max_matrix_cells / model.expert) {
    return fail(ErrorCode::too_large,
                fmt::format("{} layers and periods with a matrix of {} ranks are too many", matrices, model.expert),
                "write 'layers: same', or fewer steps or ranks that share the experts");
  }
  return {};
}

Result<void> parse_skew(std::string_view text, ExpertRouting& routing) {
  routing.exponent = 0;
  if (text == "balanced") return {};
  constexpr std::string_view law = "zipf:";
  constexpr std::string_view seed = ",seed=";
  const auto refuse = [&] {
    return fail(ErrorCode::invalid_input, fmt::format("there is no skew '{}'", text.substr(0, 60)),
                "write balanced, or zipf:0.7 with an exponent from 0 to 10, or zipf:0.7,seed=3");
  };
  if (!text.starts_with(law)) return refuse();
  const std::string_view rest = text.substr(law.size());
  const std::size_t comma = rest.find(',');
  const std::string_view number = rest.substr(0, comma);
  const auto [read, problem] = std::from_chars(number.data(), number.data() + number.size(), routing.exponent);
  if (problem != std::errc() || read != number.data() + number.size() || !(routing.exponent >= 0) ||
      routing.exponent > 10) {
    return refuse();
  }
  if (comma == std::string_view::npos) return {};
  const std::string_view tail = rest.substr(comma);
  if (!tail.starts_with(seed)) return refuse();
  const std::string_view digits = tail.substr(seed.size());
  const auto [end, wrong] = std::from_chars(digits.data(), digits.data() + digits.size(), routing.seed);
  if (wrong != std::errc() || end != digits.data() + digits.size()) return refuse();
  return {};
}

}  // namespace espalier::scenario
