#include "cli/scenarios/split_flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/suggest.h"
#include "sweep/spec_values.h"

namespace espalier::cli {
namespace {

struct SplitPart {
  std::string_view name;
  std::int64_t scenario::Parallelism::*part;
};
constexpr std::array<SplitPart, 7> split_parts = {{{"tensor", &scenario::Parallelism::tensor},
                                                   {"pipeline", &scenario::Parallelism::pipeline},
                                                   {"data", &scenario::Parallelism::data},
                                                   {"expert", &scenario::Parallelism::expert},
                                                   {"context", &scenario::Parallelism::context},
                                                   {"expert_tensor", &scenario::Parallelism::expert_tensor},
                                                   {"shard_group", &scenario::Parallelism::shard_group}}};

/// The part as a list of values, where it is tried only when it is asked for; null for others.
std::vector<std::int64_t> scenario::FurtherParts::*further_part(std::int64_t scenario::Parallelism::*part) {
  if (part == &scenario::Parallelism::context) return &scenario::FurtherParts::context;
  if (part == &scenario::Parallelism::expert_tensor) return &scenario::FurtherParts::expert_tensor;
  if (part == &scenario::Parallelism::shard_group) return &scenario::FurtherParts::shard_group;
  return nullptr;
}

/// The values that one part may have.
struct Restriction {
  std::int64_t scenario::Parallelism::*part = nullptr;
  std::vector<std::uint64_t> values;

  [[nodiscard]] bool allows(const scenario::Parallelism& parallelism) const {
    return std::ranges::count(values, static_cast<std::uint64_t>(parallelism.*part)) > 0;
  }
};

Result<Restriction> parse_restriction(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals + 1 == text.size()) {
    return fail(ErrorCode::invalid_input, "--split: '" + text + "' is neither all nor NAME=VALUES",
                "write --split tensor=1,2,4");
  }
  const std::string name = text.substr(0, equals);
  const auto part = std::ranges::find(split_parts, name, &SplitPart::name);
  if (part == split_parts.end()) {
    std::vector<std::string_view> names;
    for (const SplitPart& known : split_parts) names.push_back(known.name);
    return fail(ErrorCode::invalid_input, "--split: a step is not spread by '" + name + "'", suggest(name, names));
  }
  auto values = sweep::parse_seeds(text.substr(equals + 1));
  if (!values || std::ranges::count(*values, 0U) > 0) {
    return fail(ErrorCode::invalid_input, "--split: '" + text + "' does not list numbers from 1",
                "write --split tensor=1,2,4 or --split pipeline=1-8");
  }
  return Restriction{part->part, *std::move(values)};
}

}  // namespace

void SplitFlags::add_to(CLI::App& command) {
  command
      .add_option("--split", written,
                  "Of a scenario's training step: a row for every parallelism of the same ranks, all or those of these "
                  "tensor, pipeline, data, expert, context or expert_tensor ranks or this shard_group; may be repeated")
      ->option_text("all|NAME=VALUES")
      ->allow_extra_args(false);
}

Result<Splits> list_splits(const SplitFlags& flags, const scenario::TrainingModel& model) {
  std::vector<Restriction> restrictions;
  scenario::FurtherParts further;
  for (const std::string& text : flags.written) {
    if (text == "all") continue;
    auto restriction = parse_restriction(text);
    if (!restriction) return tl::unexpected(restriction.error());
    if (const auto part = further_part(restriction->part)) {
      for (const std::uint64_t value : restriction->values) (further.*part).push_back(static_cast<std::int64_t>(value));
    }
    restrictions.push_back(*std::move(restriction));
  }
  const std::int64_t ranks = model.tensor * model.pipeline * model.replicas();
  Splits splits;
  for (const scenario::Parallelism& parallelism : scenario::list_parallelisms(model, ranks, further)) {
    const auto allows = [&](const Restriction& restriction) { return restriction.allows(parallelism); };
    if (!std::ranges::all_of(restrictions, allows)) continue;
    const auto checked = scenario::check_training(scenario::spread(model, parallelism), ranks);
    if (checked) {
      splits.possible.push_back(parallelism);
    } else if (splits.refused++ == 0) {
      splits.why = fmt::format("{}: {}", describe(parallelism), checked.error().message);
    }
  }
  if (!splits.possible.empty()) return splits;
  return fail(ErrorCode::invalid_input,
              splits.refused > 0 ? "--split: the model cannot be spread so: " + splits.why
                                 : fmt::format("--split: no parallelism of {} ranks is like that", ranks),
              "their product is the number of ranks; --split all tries every one");
}

std::string describe(const scenario::Parallelism& parallelism) {
  std::string text = fmt::format("tensor {}, pipeline {}, data {}, expert {}", parallelism.tensor, parallelism.pipeline,
                                 parallelism.data, parallelism.expert);
  if (parallelism.context > 1) text += fmt::format(", context {}", parallelism.context);
  if (parallelism.expert_tensor > 0) text += fmt::format(", expert_tensor {}", parallelism.expert_tensor);
  if (parallelism.shard_group > 0) text += fmt::format(", shard_group {}", parallelism.shard_group);
  return text;
}

}  // namespace espalier::cli
