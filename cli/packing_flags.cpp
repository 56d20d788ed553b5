#include "cli/packing_flags.h"

#include <charconv>
#include <cmath>

namespace espalier::cli {

namespace {

constexpr std::uint32_t most = 65'536;

/// "1%" or "0.01" as an exact fraction to a millionth.
Result<Rational> parse_part(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (rest == "%") value /= 100;
  if (error != std::errc() || (!rest.empty() && rest != "%") || !(value >= 0) || value > 1) {
    return fail(ErrorCode::invalid_input, "--gap: '" + text + "' is not a part between 0 and 1", "write 1% or 0.01");
  }
  return make_rational(std::llround(value * 1e6), 1'000'000);
}

}  // namespace

void PackingFlags::add_to(CLI::App& command) {
  const std::string group = "Packing";
  command.add_option("--max-trees", most_trees, "packing: at most N trees per root")
      ->type_name("N")
      ->check(CLI::Range(1U, most))
      ->group(group);
  command.add_option("--max-depth", most_height, "packing: no tree deeper than N hops from rank to rank")
      ->type_name("N")
      ->check(CLI::Range(1U, most))
      ->group(group);
  command.add_option("--k", equal_trees, "packing: N trees of equal weight per root")
      ->type_name("N")
      ->check(CLI::Range(1U, most))
      ->group(group);
  command.add_option("--gap", gap, "packing: give up to PART of the throughput for lower and fewer trees: 1%, 0.01")
      ->type_name("PART")
      ->group(group);
}

Result<PackingLimits> PackingFlags::resolve() const {
  PackingLimits limits{most_trees, most_height, equal_trees, 0};
  if (!gap.empty()) {
    const auto part = parse_part(gap);
    if (!part) return tl::unexpected(part.error());
    limits.gap = *part;
  }
  if (limits.equal_trees != 0 && (limits.most_trees != 0 || limits.gap != 0)) {
    return fail(ErrorCode::invalid_input, "--k fixes the number of trees, --max-trees and --gap let it fall",
                "leave one of them out");
  }
  return limits;
}

}  // namespace espalier::cli
