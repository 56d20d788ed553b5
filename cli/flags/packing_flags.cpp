#include "cli/flags/packing_flags.h"

#include "cli/flags/flag_values.h"

namespace espalier::cli {

namespace {

constexpr std::uint32_t max_trees_or_hops = 65'536;

}  // namespace

void PackingFlags::add_to(CLI::App& command) {
  const std::string group = "Packing";
  command.add_option("--max-trees", max_trees, "packing: at most N trees per root")
      ->check(CLI::Range(1U, max_trees_or_hops))
      ->option_text("N")
      ->group(group);
  command.add_option("--max-depth", max_height, "packing: no tree deeper than N hops from rank to rank")
      ->check(CLI::Range(1U, max_trees_or_hops))
      ->option_text("N")
      ->group(group);
  command.add_option("--k", equal_trees, "packing: N trees of equal weight per root")
      ->check(CLI::Range(1U, max_trees_or_hops))
      ->option_text("N")
      ->group(group);
  command
      .add_option(
          "--gap", gap,
          "packing: give up to PART of the throughput for shallower and fewer trees: 1%, 0.01; 0: none, however "
          "many trees that takes")
      ->option_text("PART")
      ->group(group);
}

Result<planners::PackingLimits> PackingFlags::resolve() const {
  planners::PackingLimits limits{max_trees, max_height, equal_trees, false, 0};
  if (!gap.empty()) {
    const auto part = parse_part("--gap", gap);
    if (!part) return tl::unexpected(part.error());
    limits.gap = *part;
    limits.exact = limits.gap == 0;
  }
  if (limits.equal_trees != 0 && (limits.max_trees != 0 || limits.gap != 0)) {
    return fail(ErrorCode::invalid_input, "--k fixes the number of trees, --max-trees and --gap let it fall",
                "leave one of them out");
  }
  return limits;
}

}  // namespace espalier::cli
