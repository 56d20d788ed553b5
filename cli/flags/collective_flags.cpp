#include "cli/flags/collective_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <span>

#include "schedule/traffic/traffic_matrix.h"

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
  constexpr std::size_t max_shown = 60;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::string item = text.substr(begin, text.find(',', begin) - begin);
    const char* const end = item.data() + item.size();
    const auto [rest, status] = std::from_chars(item.data(), end, shares.emplace_back());
    if (status != std::errc() || rest != end) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("--shares: '{}' is not a whole number of 64 bits", item.substr(0, max_shown)),
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
  command
      .add_option("--matrix", matrix,
                  "Unequal blocks of all_to_all: a file (CSV, JSON or .npy; row i holds what rank i sends to each, in "
                  "bytes), zipf:0.7,seed=3, spread:1, pairs:0-4,1-5 or routing:tokens.csv (docs/traffic-matrices.md)")
      ->option_text("FILE|LAW");
}

std::optional<Error> CollectiveFlags::find_contradiction(const Collective& of_plan) const {
  if (name.empty() || name == to_string(of_plan.kind)) return std::nullopt;
  return Error{ErrorCode::invalid_input, fmt::format("the plan is one of {}, not of {}", to_string(of_plan.kind), name),
               "leave COLLECTIVE out"};
}

Result<Collective> CollectiveFlags::resolve(const Topology& topology) const {
  return resolve_sized(topology).map([](SizedCollective&& sized) { return std::move(sized.collective); });
}

Result<SizedCollective> CollectiveFlags::resolve_sized(const Topology& topology) const {
  const auto kind = parse_collective(name);
  if (!kind) return tl::unexpected(kind.error());
  std::optional<Rank> rank;
  if (!root.empty()) {
    const auto parsed = parse_rank(root, topology);
    if (!parsed) return tl::unexpected(parsed.error());
    rank = *parsed;
  }
  if (!matrix.empty()) return resolve_matrix(*kind, topology);
  const auto numbers = parse_shares(shares);
  if (!numbers) return tl::unexpected(numbers.error());
  if (!numbers->empty() && has_blocks(*kind)) {
    return fail(ErrorCode::invalid_input, "--shares: all_to_all has no shards that could be unequal",
                "give its blocks with --matrix");
  }
  auto collective = make_collective(*kind, topology.rank_count(), rank, *numbers);
  if (collective) return SizedCollective{*std::move(collective), std::nullopt};
  if (shares.empty()) return tl::unexpected(collective.error());
  return fail(collective.error().code, "--shares: " + collective.error().message, collective.error().help);
}

Result<SizedCollective> CollectiveFlags::resolve_matrix(CollectiveKind kind, const Topology& topology) const {
  if (!has_blocks(kind)) {
    return fail(ErrorCode::invalid_input, fmt::format("--matrix: {} has no blocks that could be unequal", name),
                has_shards(kind) ? "all_to_all has; unequal shards are given with --shares" : "all_to_all has");
  }
  if (!root.empty()) return fail(ErrorCode::invalid_input, "all_to_all has no root", "leave the root out");
  if (!shares.empty()) return fail(ErrorCode::invalid_input, "--shares: all_to_all has blocks", "leave --shares out");
  auto traffic = load_traffic(matrix, topology.rank_count());
  if (!traffic) return fail(traffic.error().code, "--matrix: " + traffic.error().message, traffic.error().help);
  SizedCollective sized;
  if (traffic->are_bytes) sized.size = Bytes{traffic->largest_line()};
  auto collective = make_collective(kind, topology.rank_count(), std::nullopt, std::move(traffic->blocks));
  if (!collective)
    return fail(collective.error().code, "--matrix: " + collective.error().message, collective.error().help);
  sized.collective = *std::move(collective);
  return sized;
}

std::string shares_text(const Collective& collective) {
  if (collective.shares.empty()) return "";
  if (collective.has_matrix()) {
    const double mean = to_double(collective.extent()) / collective.rank_count;
    return fmt::format("  matrix, busiest rank {:.2f} times the mean", 1 / mean);
  }
  constexpr std::size_t max_shown = 16;
  const std::size_t count = collective.shares.size();
  const auto first = std::span(collective.shares).first(std::min(count, max_shown));
  return fmt::format("  shares {}{}", fmt::join(first, ","), count > max_shown ? ",..." : "");
}

}  // namespace espalier::cli
