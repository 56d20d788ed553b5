#include <fmt/format.h>

#include <optional>
#include <unordered_set>

#include "schedule/json/implied_topology.h"
#include "schedule/json/plan_cursor.h"
#include "schedule/json/plan_items.h"
#include "schedule/json/schedule_json.h"
#include "topology/names/group.h"
#include "topology/names/node_id.h"
#include "topology/yaml/read_topology.h"

namespace espalier {
namespace {

/// The keys of a plan, and the order in which it is written. It is read in the order that its meaning needs.
enum Key : std::size_t {
  version,
  collective,
  topology_name,
  ranks,
  relays,
  root,
  shares,
  matrix,
  algorithm,
  units,
  slices,
  transfers,
  bound,
  chunking,
  of_rank,
  network,
  comment,
  generator,
  key_count
};
constexpr std::array<std::string_view, key_count> key_names = {
    "espalier_schedule", "collective", "topology", "ranks",     "relays", "root",     "shares",  "matrix",
    "algorithm",         "units",      "slices",   "transfers", "bound",  "chunking", "of_rank", "network",
    "comment",           "generator"};

constexpr std::uint32_t required_keys = [] {
  std::uint32_t required = 0;
  for (const Key key : {version, collective, topology_name, ranks, algorithm, units, slices, transfers}) {
    required |= std::uint32_t{1} << key;
  }
  return required;
}();

class PlanReader {
 public:
  PlanReader(std::string_view text, std::string name, const Topology* topology)
      : cursor_(text, std::move(name)), given_(topology) {}

  Result<PlanFile> read() {
    if (!read_all()) return tl::unexpected(cursor_.error());
    PlanFile plan{std::move(schedule_), std::move(*topology_), network_was_given_, of_rank_, std::move(warnings_)};
    return plan;
  }

 private:
  bool read_all() {
    return index() && read_collective() && read_ranks() && read_relays() && read_root() && read_shares() &&
           read_matrix() && read_names() && choose_topology() && check_ranks() && check_relays() && read_body();
  }
  bool index();
  bool read_version();
  bool read_collective();
  bool read_ranks();
  bool read_relays();
  bool read_node_list(std::string_view noun, std::vector<std::string>& names, std::vector<std::size_t>& offsets);
  bool read_root();
  bool read_shares();
  bool read_matrix();
  bool take_shares(Key key, std::vector<std::int64_t> values);
  bool read_names();
  bool choose_topology();
  Topology with_ranks_of_plan(const Topology& topology) const;
  bool read_network();
  bool check_ranks();
  bool check_relays();
  bool read_body();
  bool read_of_rank();
  bool read_text(Key key, std::string& text);
  void warn(Key key, std::string code, std::string message, std::string help);

  /// Goes to the value of a key; false when the plan does not have it.
  bool find(Key key) {
    if (offsets_[key]) cursor_.json.seek(*offsets_[key]);
    return offsets_[key].has_value();
  }

  PlanCursor cursor_;
  const Topology* given_;
  std::array<std::optional<std::size_t>, key_count> offsets_;
  Schedule schedule_;
  std::vector<std::string> rank_names_;
  std::vector<std::size_t> rank_offsets_;
  std::vector<std::string> relay_names_;
  std::vector<std::size_t> relay_offsets_;
  std::optional<Topology> topology_;
  bool network_was_given_ = true;
  std::optional<Rank> of_rank_;
  std::vector<Diagnostic> warnings_;
};

bool PlanReader::read_version() {
  const std::size_t begin = cursor_.json.next_offset();
  std::int64_t number = 0;
  if (!cursor_.json.read_integer(number)) return false;
  if (number == 1) return true;
  cursor_.code = ErrorCode::unsupported;
  return cursor_.json.fail(begin, fmt::format("the plan is of version {}, and this program reads version 1", number));
}

/// Finds where each value begins, and that the text is JSON from its begin to its end.
bool PlanReader::index() {
  const bool found = cursor_.read_object(key_names, required_keys, [&](std::size_t key) {
    offsets_[key] = cursor_.json.next_offset();
    std::string_view ignored;
    return key == version ? read_version() : cursor_.json.read_raw(ignored);
  });
  return found && cursor_.json.at_end();
}

bool PlanReader::read_collective() {
  find(collective);
  std::string_view name;
  if (!cursor_.json.read_string(name)) return false;
  const Result<CollectiveKind> kind = parse_collective(shown(name));
  if (!kind) return cursor_.json.fail(*offsets_[collective], kind.error().message, kind.error().help);
  schedule_.collective.kind = *kind;
  return true;
}

/// A list of nodes by their names, which are yet to be looked up.
bool PlanReader::read_node_list(std::string_view noun, std::vector<std::string>& names,
                                std::vector<std::size_t>& offsets) {
  if (!cursor_.json.begin_array()) return false;
  std::unordered_set<std::string> seen;
  std::string_view name;
  while (cursor_.json.next_element()) {
    cursor_.set_item(noun, names.size());
    const std::size_t begin = cursor_.json.next_offset();
    if (!cursor_.json.read_string(name)) return false;
    if (const std::string_view why = why_bad_node_id(name); !why.empty()) {
      return cursor_.json.fail(begin, fmt::format("'{}' cannot be a node's name: it {}", shown(name), why));
    }
    if (!seen.emplace(name).second) {
      return cursor_.json.fail(begin, fmt::format("'{}' is listed twice", shown(name)),
                               fmt::format("list each {} once", noun));
    }
    if (names.size() == max_ranks) {
      cursor_.code = ErrorCode::too_large;
      return cursor_.json.fail(begin, fmt::format("there are more than {} {}s", max_ranks, noun));
    }
    names.emplace_back(name);
    offsets.push_back(begin);
  }
  cursor_.clear_item();
  return !cursor_.json.failed();
}

bool PlanReader::read_relays() { return !find(relays) || read_node_list("relay", relay_names_, relay_offsets_); }

bool PlanReader::read_ranks() {
  find(ranks);
  if (!read_node_list("rank", rank_names_, rank_offsets_)) return false;
  if (rank_names_.empty()) return cursor_.json.fail(*offsets_[ranks], "there are no ranks", "list at least one");
  schedule_.collective.rank_count = static_cast<std::uint32_t>(rank_names_.size());
  return true;
}

bool PlanReader::read_root() {
  const bool wanted = has_root(schedule_.collective.kind);
  const std::string kind(to_string(schedule_.collective.kind));
  if (!find(root)) {
    return !wanted || cursor_.json.fail(*offsets_[collective], fmt::format("{} needs a 'root'", kind), "give a rank");
  }
  if (!wanted) {
    return cursor_.json.take_null() ||
           cursor_.json.fail(*offsets_[root], fmt::format("{} has no root", kind), "give null, or remove the key");
  }
  std::int64_t rank = 0;
  if (!cursor_.read_ranged("'root'", 0, std::int64_t{schedule_.collective.rank_count} - 1, rank)) return false;
  schedule_.collective.root = Rank(static_cast<std::size_t>(rank));
  return true;
}

bool PlanReader::read_of_rank() {
  std::int64_t rank = 0;
  if (!cursor_.read_ranged("'of_rank'", 0, std::int64_t{schedule_.collective.rank_count} - 1, rank)) return false;
  of_rank_ = Rank(static_cast<std::size_t>(rank));
  for (const Transfer& transfer : schedule_.transfers) {
    if (schedule_.src(transfer) == *of_rank_ || schedule_.dst(transfer) == *of_rank_) continue;
    return cursor_.json.fail(*offsets_[of_rank],
                             fmt::format("the plan is the part of rank {}, and has a transfer from {} to {}", rank,
                                         schedule_.src(transfer).value(), schedule_.dst(transfer).value()),
                             "list the transfers of that rank alone, or remove the key");
  }
  return true;
}

bool PlanReader::read_shares() {
  if (!find(shares) || cursor_.json.take_null()) return !cursor_.json.failed();
  if (!cursor_.json.begin_array()) return false;
  Collective& collective = schedule_.collective;
  std::vector<std::int64_t> values;
  while (cursor_.json.next_element()) {
    if (!cursor_.read_ranged("a share", 0, max_share_sum, values.emplace_back())) return false;
  }
  if (cursor_.json.failed()) return false;
  if (values.empty()) {
    return cursor_.json.fail(*offsets_[shares], "there are no shares", "give one per rank, or remove the key");
  }
  if (has_blocks(collective.kind)) {
    return cursor_.json.fail(*offsets_[shares], "all_to_all has no shards that could be unequal",
                             "give its blocks as \"matrix\", a list of numbers for each rank");
  }
  return take_shares(shares, std::move(values));
}

bool PlanReader::read_matrix() {
  if (!find(matrix) || cursor_.json.take_null()) return !cursor_.json.failed();
  if (!has_blocks(schedule_.collective.kind)) {
    return cursor_.json.fail(*offsets_[matrix], fmt::format("{} has no matrix", to_string(schedule_.collective.kind)),
                             "all_to_all has one; unequal shards are \"shares\"");
  }
  if (!cursor_.json.begin_array()) return false;
  const std::size_t ranks = schedule_.collective.rank_count;
  std::vector<std::int64_t> values;
  std::size_t rows = 0;
  for (; cursor_.json.next_element(); ++rows) {
    const std::size_t begin = cursor_.json.next_offset();
    if (!cursor_.json.begin_array()) return false;
    while (cursor_.json.next_element()) {
      if (!cursor_.read_ranged("a block", 0, max_matrix_sum, values.emplace_back())) return false;
    }
    if (cursor_.json.failed()) return false;
    if (values.size() != (rows + 1) * ranks) {
      return cursor_.json.fail(begin,
                               fmt::format("row {} of the matrix has {} blocks, and there are {} ranks", rows,
                                           values.size() - rows * ranks, ranks),
                               "row i has what rank i sends to each rank");
    }
  }
  if (cursor_.json.failed()) return false;
  if (rows != ranks) {
    return cursor_.json.fail(*offsets_[matrix],
                             fmt::format("the matrix has {} rows, and there are {} ranks", rows, ranks),
                             "give one per rank, or remove the key");
  }
  return take_shares(matrix, std::move(values));
}

bool PlanReader::take_shares(Key key, std::vector<std::int64_t> values) {
  Collective& collective = schedule_.collective;
  const std::optional<Rank> root = collective.root.is_none() ? std::nullopt : std::optional(collective.root);
  auto made = make_collective(collective.kind, collective.rank_count, root, std::move(values));
  if (!made) return cursor_.json.fail(*offsets_[key], made.error().message, made.error().help);
  collective = *std::move(made);
  return true;
}

bool PlanReader::read_text(Key key, std::string& text) {
  if (!find(key)) return true;
  std::string_view view;
  if (!cursor_.json.read_string(view)) return false;
  text = view;
  return true;
}

bool PlanReader::read_names() {
  std::string ignored;
  return read_text(topology_name, schedule_.topology) && read_text(algorithm, schedule_.algorithm) &&
         read_text(comment, ignored) && read_text(generator, ignored);
}

void PlanReader::warn(Key key, std::string code, std::string message, std::string help) {
  const TextPosition position = cursor_.position(*offsets_[key]);
  Diagnostic warning;
  warning.severity = Severity::warning;
  warning.code = std::move(code);
  warning.place = {cursor_.name(), static_cast<int>(position.line), static_cast<int>(position.column)};
  warning.message = std::move(message);
  warning.help = std::move(help);
  warnings_.push_back(std::move(warning));
}

/// The topology with the plan's ranks alone where it has them all: a plan may be of a group of a network's ranks.
Topology PlanReader::with_ranks_of_plan(const Topology& topology) const {
  std::vector<NodeId> nodes;
  for (const std::string& name : rank_names_) {
    const NodeId node = topology.find_node(name);
    if (node.is_none() || (!nodes.empty() && !(nodes.back() < node))) return topology;
    nodes.push_back(node);
  }
  auto group = with_ranks(topology, nodes);
  if (group) return std::move(*group);
  return topology;
}

bool PlanReader::choose_topology() {
  if (given_ != nullptr) {
    topology_ = with_ranks_of_plan(*given_);
    if (given_->name() != schedule_.topology) {
      warn(topology_name, "P001",
           fmt::format("the plan was made for '{}' and is read for '{}'", shown(schedule_.topology),
                       shown(given_->name())),
           "plan again when this is another machine");
    }
    return true;
  }
  if (find(network)) return read_network();
  network_was_given_ = false;
  topology_ =
      imply_topology(cursor_, schedule_.topology, {rank_names_, relay_names_}, {*offsets_[transfers], offsets_[bound]});
  if (!topology_) return false;
  warn(transfers, "P002", "the routes of this plan are not checked against a machine: it carries no network",
       "give a topology beside the plan");
  return true;
}

/// The embedded document is read by the reader of topologies; its places are moved to where it stands in the plan.
bool PlanReader::read_network() {
  const std::size_t begin = *offsets_[network];
  std::string_view document;
  if (!cursor_.json.read_raw(document)) return false;
  // The plain form needs more bytes than it has links: what expands further is not meant for a plan.
  const ExpansionLimits limits{.nodes = document.size(), .links = document.size()};
  TopologyReading reading = read_topology_text(document, cursor_.name(), std::nullopt, {}, limits);
  topology_ = std::move(reading.topology);
  if (topology_) return true;
  for (const Diagnostic& diagnostic : reading.diagnostics) {
    if (diagnostic.severity != Severity::error) continue;
    std::size_t offset = begin;
    for (int line = 1; line < diagnostic.place.line; ++line) offset = cursor_.text().find('\n', offset) + 1;
    offset += static_cast<std::size_t>(std::max(diagnostic.place.column, 1)) - 1;
    return cursor_.json.fail(std::min(offset, begin + document.size()), "network: " + diagnostic.message,
                             diagnostic.help);
  }
  return cursor_.json.fail(begin, "the network is not a topology");
}

bool PlanReader::check_ranks() {
  if (rank_names_.size() != topology_->rank_count()) {
    return cursor_.json.fail(*offsets_[ranks],
                             fmt::format("the plan has {} ranks and '{}' has {}", rank_names_.size(),
                                         shown(topology_->name()), topology_->rank_count()),
                             "list all ranks of the network in its order");
  }
  for (std::size_t i = 0; i < rank_names_.size(); ++i) {
    const std::string& due = topology_->rank_name(Rank(i));
    if (rank_names_[i] == due) continue;
    return cursor_.json.fail(rank_offsets_[i],
                             fmt::format("rank {} is '{}' here and '{}' in '{}'", i, shown(rank_names_[i]), shown(due),
                                         shown(topology_->name())),
                             "list all ranks of the network in its order");
  }
  return true;
}

bool PlanReader::check_relays() {
  for (std::size_t i = 0; i < relay_names_.size(); ++i) {
    const NodeId node = topology_->find_node(relay_names_[i]);
    if (node.is_none()) {
      return cursor_.json.fail(relay_offsets_[i], fmt::format("the relay '{}' is not a node of '{}'",
                                                              shown(relay_names_[i]), shown(topology_->name())));
    }
    schedule_.relays.push_back(node);
  }
  return true;
}

bool PlanReader::read_body() {
  find(units);
  if (!cursor_.read_ranged("'units'", 1, max_units, schedule_.units)) return false;
  find(slices);
  if (!read_slices(cursor_, schedule_)) return false;
  find(transfers);
  if (!read_transfers(cursor_, *topology_, schedule_)) return false;
  if (find(bound) && !read_bound(cursor_, *topology_, schedule_)) return false;
  if (find(chunking) && !read_chunking(cursor_, schedule_)) return false;
  return !find(of_rank) || read_of_rank();
}

}  // namespace

Result<PlanFile> read_plan(std::string_view text, std::string name, const Topology* topology) {
  return PlanReader(text, std::move(name), topology).read();
}

}  // namespace espalier
