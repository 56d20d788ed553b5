#include "cli/flags/group_flags.h"

#include <fmt/format.h>

#include "topology/names/group.h"
#include "topology/names/name_list.h"

namespace espalier::cli {
namespace {

using Groups = std::vector<std::vector<NodeId>>;

tl::unexpected<Error> failed(std::string_view flag, const Error& error) {
  return fail(error.code, fmt::format("{}: {}", flag, error.message), error.help);
}

Result<Groups> listed_groups(const Topology& topology, const std::string& list) {
  Groups groups;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::string item = list.substr(begin, list.find(';', begin) - begin);
    auto nodes = find_rank_nodes(topology, item);
    if (!nodes) return failed("--groups", nodes.error());
    groups.push_back(*std::move(nodes));
    begin += item.size() + 1;
  }
  return groups;
}

/// The ranks dealt to groups, `group_of` saying which a rank's number belongs to.
template <class GroupOf>
Groups dealt_groups(const Topology& topology, std::size_t count, const GroupOf& group_of) {
  Groups groups(count);
  for (std::size_t r = 0; r < topology.rank_count(); ++r) groups[group_of(r)].push_back(topology.node_of(Rank(r)));
  return groups;
}

Result<Groups> find_groups(const GroupFlags& flags, const Topology& topology) {
  if ((flags.list.empty() ? 0 : 1) + (flags.of > 0 ? 1 : 0) + (flags.across > 0 ? 1 : 0) > 1) {
    return fail(ErrorCode::invalid_input, "--groups, --groups-of and --groups-across each name all groups",
                "give one of them");
  }
  if (!flags.list.empty()) return listed_groups(topology, flags.list);
  const std::size_t number = flags.of > 0 ? flags.of : flags.across;
  const std::size_t ranks = topology.rank_count();
  if (ranks % number != 0) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{}: {} ranks are not a multiple of {}", flags.of > 0 ? "--groups-of" : "--groups-across",
                            ranks, number),
                "give a number that divides the ranks");
  }
  if (flags.of > 0) return dealt_groups(topology, ranks / number, [&](std::size_t r) { return r / number; });
  return dealt_groups(topology, number, [&](std::size_t r) { return r % number; });
}

}  // namespace

void GroupFlags::add_to(CLI::App& command) {
  command.add_option("--groups", list, "Several groups, all at work at once: \"gpu[0-3];gpu[4-7]\"")
      ->option_text("LISTS");
  command.add_option("--groups-of", of, "The same for groups of N neighbouring ranks")
      ->option_text("N")
      ->check(CLI::PositiveNumber);
  command.add_option("--groups-across", across, "The same for N groups of every N-th rank")
      ->option_text("N")
      ->check(CLI::PositiveNumber);
}

Result<std::vector<planners::GroupWork>> GroupFlags::resolve(const Topology& topology,
                                                             const CollectiveFlags& collective) const {
  const auto groups = find_groups(*this, topology);
  if (!groups) return tl::unexpected(groups.error());
  std::vector<planners::GroupWork> works;
  for (const std::vector<NodeId>& nodes : *groups) {
    auto restricted = with_ranks(topology, nodes);
    if (!restricted) return tl::unexpected(restricted.error());
    auto made = collective.resolve(*restricted);
    if (!made) return failed(fmt::format("group {}", works.size()), made.error());
    works.push_back({*std::move(restricted), *std::move(made)});
  }
  return works;
}

std::string ranks_text(const Topology& topology) {
  std::vector<std::string> names;
  for (std::size_t r = 0; r < topology.rank_count(); ++r) names.push_back(topology.rank_name(Rank(r)));
  return summarize_names(names);
}

}  // namespace espalier::cli
