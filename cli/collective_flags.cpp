#include "cli/collective_flags.h"

#include <charconv>

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

}  // namespace

void CollectiveFlags::add_to(CLI::App& command, bool required) {
  CLI::Option* option =
      command.add_option("COLLECTIVE", name,
                         "all_reduce, reduce_scatter, all_gather, broadcast, reduce, all_to_all, gather, scatter or "
                         "send_recv");
  option->required(required);
  command.add_option("-r,--root", root, "Root of broadcast, reduce, gather and scatter: a rank's number or node (0)")
      ->option_text("RANK");
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
  return make_collective(*kind, topology.rank_count(), rank);
}

}  // namespace espalier::cli
