#include "cli/flags/collective_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <span>

namespace espalier::cli {
namespace {

Result<Rank> parse_rank(const std::string& text, const Topology& topology) {
  const NodeId node = topology.find_node(text);
  if (!node.is_none() && !topology.rank_of(node).is_none()) return topology.rank_of(node);
  std::size_t number = 0;
  const auto [rest, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc() || *rest != '\0' || number >= topology.rank_count()) {
    return fail(ErrorCode::invalid_input, "-r: '" + text + "' is not a rank of " + topology.name(),
                "give a number from 0 to " + std::to_string(topology.rank_count() - 1) + ", or a node such as " +
                    topology.rank_name(Rank(0)));
  }
  return Rank(number);
}

Result<std::vector<std::int64_t>> parse_shares(const std::string& text) {
  std::vector<std::int64_t> shares;
  if (text.empty()) return shares;
  constexpr std::size_t most_shown = 60;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::string item = text.substr(begin, text.find(',', begin) - begin);
    const char* const end = item.data() + item.size();
    const auto [rest, status] = std::from_chars(item.data(), end, shares.emplace_back());
    if (status != std::errc() || rest != end) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("--shares: '{}' is not a whole number of 64 bits", item.substr(0, most_shown)),
                  "write a number per rank, such as 3,1,1,0");
    }
    begin += item.size() + 1;
  }
  return shares;
}

}  // namespace

void CollectiveFlags::add_to(CLI::App& command, bool required) {
  CLI::Option* option =
      command.add_option("COLLECTIVE", name,
                         "all_reduce, reduce_scatter, all_gather, broadcast, reduce, all_to_all, gather, scatter or "
                         "send_recv");
  option->required(required);
  command.add_option("-r,--root", root, "Root of broadcast, reduce, gather and scatter: a rank's number or node (0)")
      ->option_text("RANK");
  command
      .add_option(
          "--shares", shares,
          "Unequal shards of all_gather, reduce_scatter, gather and scatter: a number per rank, such as 3,1,1,0")
      ->option_text("NUMBERS");
}

std::optional<Error> CollectiveFlags::find_contradiction(const Collective& of_plan) const {
  if (name.empty() || name == to_string(of_plan.kind)) return std::nullopt;
  return Error{ErrorCode::invalid_input, fmt::format("the plan is one of {}, not of {}", to_string(of_plan.kind), name),
               "leave COLLECTIVE out"};
}

Result<Collective> CollectiveFlags::resolve(const Topology& topology) const {
  const auto kind = parse_collective(name);
  if (!kind) return tl::unexpected(kind.error());
  std::optional<Rank> rank;
  if (!root.empty()) {
    const auto parsed = parse_rank(root, topology);
    if (!parsed) return tl::unexpected(parsed.error());
    rank = *parsed;
  }
  const auto numbers = parse_shares(shares);
  if (!numbers) return tl::unexpected(numbers.error());
  auto collective = make_collective(*kind, topology.rank_count(), rank, *numbers);
  if (collective || shares.empty()) return collective;
  return fail(collective.error().code, "--shares: " + collective.error().message, collective.error().help);
}

std::string shares_text(const Collective& collective) {
  if (collective.shares.empty()) return "";
  constexpr std::size_t most_shown = 16;
  const std::size_t count = collective.shares.size();
  const auto first = std::span(collective.shares).first(std::min(count, most_shown));
  return fmt::format("  shares {}{}", fmt::join(first, ","), count > most_shown ? ",..." : "");
}

}  // namespace espalier::cli
