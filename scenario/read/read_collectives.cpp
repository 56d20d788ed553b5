#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/suggest.h"
#include "scenario/read/scenario_codes.h"
#include "scenario/read/scenario_keys.h"
#include "scenario/read/scenario_reading.h"
#include "topology/yaml/read_codes.h"
#include "topology/yaml/read_limits.h"

namespace espalier::scenario {
namespace {

/// Ranks cut into groups: runs of `of` neighbours, or `across` groups of every so-many-th rank.
std::vector<std::vector<Rank>> cut(const std::vector<Rank>& ranks, std::size_t of, std::size_t across) {
  std::vector<std::vector<Rank>> parts(of > 0 ? ranks.size() / of : across);
  for (std::size_t i = 0; i < ranks.size(); ++i) parts[of > 0 ? i / of : i % across].push_back(ranks[i]);
  return parts;
}

void read_group(ScenarioContext& context, const std::string& name, Value value) {
  std::optional<std::vector<Rank>> ranks;
  std::size_t of = 0, across = 0;
  const Fields fields = context.fields(value, "a group", scenario_keys::group);
  if (!fields.is_map()) return;
  ranks = read_ranks(context, fields, "ranks");
  if (!ranks) return;
  const auto most = static_cast<std::int64_t>(ranks->size());
  if (fields.has("of") && fields.has("across")) {
    context.error(fields.mark_of("across"), read_codes::keys_conflict, "a group has 'of' or 'across', not both");
    return;
  }
  of = static_cast<std::size_t>(fields.integer("of", 1, most).value_or(0));
  across = static_cast<std::size_t>(fields.integer("across", 1, most).value_or(0));
  if ((fields.has("of") && of == 0) || (fields.has("across") && across == 0)) return;
  if (of == 0 && across == 0) across = 1;
  const std::size_t divisor = of > 0 ? of : across;
  if (ranks->size() % divisor != 0) {
    context.error(
        fields.mark_of(of > 0 ? "of" : "across"), scenario_codes::bad_group,
        fmt::format("{} ranks cannot be cut into groups {} {}", ranks->size(), of > 0 ? "of" : "across", divisor),
        fmt::format("write a divisor of {}", ranks->size()));
    return;
  }
  for (std::vector<Rank>& part : cut(*ranks, of, across)) {
    context.groups[name].push_back(context.scenario.job.add_group(std::move(part)));
  }
}

/// The groups that a collective names; all ranks without a name.
std::vector<GroupId> groups_of(ScenarioContext& context, const Fields& fields) {
  if (!fields.has("group")) {
    const auto all = read_ranks(context, fields, "group");
    return {context.scenario.job.add_group(*all)};
  }
  const auto name = fields.text("group");
  if (!name) return {};
  if (const auto known = context.groups.find(*name); known != context.groups.end()) return known->second;
  std::vector<std::string_view> names(context.group_names.begin(), context.group_names.end());
  context.error(fields.mark_of("group"), scenario_codes::unknown_group,
                fmt::format("there is no group '{}'", name->substr(0, 60)),
                names.empty() ? "define it under 'groups:'" : suggest(*name, names));
  return {};
}

struct Entry {
  std::string name;
  CollectiveKind kind = CollectiveKind::all_reduce;
  Bytes size;
  Bytes chunk;
  ElementType type = ElementType::float32;
  std::string planner;
  Rank root;  ///< Of the topology.
  Picoseconds start;
  Picoseconds gap;
  std::int64_t repeat = 1;
  Averaging averaging;
};

std::optional<Rank> read_root(ScenarioContext& context, const Fields& fields, CollectiveKind kind,
                              const std::vector<GroupId>& groups) {
  if (!fields.has("root")) return Rank();
  if (!has_root(kind)) {
    context.error(fields.mark_of("root"), scenario_codes::bad_root, fmt::format("{} has no root", to_string(kind)),
                  "leave 'root' out");
    return std::nullopt;
  }
  const auto ranks = read_ranks(context, fields, "root");
  if (!ranks) return std::nullopt;
  const bool fits = ranks->size() == 1 && std::ranges::all_of(groups, [&](GroupId group) {
                      return !context.scenario.job.rank_in(group, ranks->front()).is_none();
                    });
  if (fits) return ranks->front();
  context.error(fields.mark_of("root"), scenario_codes::bad_root, "the root is not one rank of the group",
                "name one rank of the group, or leave 'root' out for its first");
  return std::nullopt;
}

/// The keys `gossip` and `compression` of an entry, which must be an all_reduce.
std::optional<Averaging> read_entry_averaging(ScenarioContext& context, const Fields& fields, CollectiveKind kind) {
  const auto averaging = read_averaging(context, fields);
  for (const std::string_view key : {"gossip", "compression"}) {
    if (!averaging || !fields.has(key)) continue;
    if (kind != CollectiveKind::all_reduce) {
      context.error(fields.mark_of(key), scenario_codes::bad_averaging,
                    fmt::format("'{}' averages, and {} does not", key, to_string(kind)),
                    "write 'collective: all_reduce', or leave it out");
      return std::nullopt;
    }
  }
  if (!averaging || !fields.has("gossip") || !fields.has("algorithm")) return averaging;
  context.error(fields.mark_of("algorithm"), read_codes::keys_conflict, "'algorithm' does not go with 'gossip'",
                "messages between neighbours take one best route; leave 'algorithm' out");
  return std::nullopt;
}

std::optional<Entry> read_entry(ScenarioContext& context, const Fields& fields, std::size_t index,
                                const std::vector<GroupId>& groups) {
  Entry entry;
  const auto kind_text = fields.text("collective");
  if (!fields.has("collective")) fields.missing("collective", "such as 'collective: all_reduce'");
  if (!fields.has("size")) fields.missing("size", "such as 'size: 64 MiB'");
  if (!kind_text) return std::nullopt;
  const auto kind = parse_collective(*kind_text);
  if (!kind) {
    context.error(fields.mark_of("collective"), scenario_codes::unknown_name, kind.error());
    return std::nullopt;
  }
  entry.kind = *kind;
  entry.name = fields.text("name").value_or("");
  if (entry.name.empty()) entry.name = fmt::format("{} {}", *kind_text, index);
  const auto size = read_size(context, fields, "size");
  const auto planner = read_algorithm(context, fields, "algorithm");
  const auto root = read_root(context, fields, entry.kind, groups);
  const auto type = read_type(context, fields, "type");
  const auto chunk = read_chunk(context, fields);
  const auto averaging = read_entry_averaging(context, fields, entry.kind);
  if ((fields.has("type") && !type) || !size || !planner || !root || !chunk || !averaging) return std::nullopt;
  entry.type = type.value_or(ElementType::float32);
  entry.size = *size;
  entry.chunk = *chunk;
  entry.planner = *planner;
  entry.root = *root;
  entry.averaging = *averaging;
  entry.start = fields.duration("start").value_or(Picoseconds{});
  entry.gap = fields.duration("gap").value_or(Picoseconds{});
  entry.repeat = fields.integer("repeat", 1, 1'000'000).value_or(1);
  if (entry.size.count % size_of(entry.type) == 0) return entry;
  context.error(fields.mark_of("size"), scenario_codes::bad_size,
                fmt::format("{} bytes are no whole number of {} elements of {} bytes", entry.size.count,
                            to_string(entry.type), size_of(entry.type)),
                "give another size or 'type'");
  return std::nullopt;
}

/// The entry's calls one after the other in one group; each rank starts the next one `gap` after it is through.
/// Errors: those of the averager.
Result<void> add_calls(ScenarioContext& context, const Entry& entry, GroupId group, std::uint16_t stream,
                       Averager& averager) {
  Job& job = context.scenario.job;
  const LabelId label = job.add_label(entry.name);
  const std::vector<Rank> ranks(job.ranks(group).begin(), job.ranks(group).end());
  std::vector<TaskId> last(ranks.size());
  const auto add = [&](std::size_t i, Task task) {
    task.rank = ranks[i];
    task.label = label;
    task.stream = stream;
    const std::array after{last[i]};
    last[i] = job.add_task(task, last[i].is_none() ? std::span<const TaskId>() : std::span<const TaskId>(after));
  };
  const Rank root = entry.root.is_none() ? Rank(0) : job.rank_in(group, entry.root);
  for (std::int64_t i = 0; i < entry.repeat; ++i) {
    const Picoseconds pause = i == 0 ? entry.start : entry.gap;
    const Call call{.size = entry.size,
                    .group = group,
                    .label = label,
                    .planner = entry.planner.empty() ? LabelId() : job.add_label(entry.planner),
                    .chunk = entry.chunk,
                    .root = has_root(entry.kind) ? root : Rank(),
                    .kind = entry.kind,
                    .element_size = static_cast<std::uint8_t>(size_of(entry.type))};
    const CallId id = averager.is_all_reduce() ? job.add_call(call) : CallId();
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      if (pause.count > 0) add(r, {.duration = pause.count, .kind = TaskKind::wait});
      if (averager.is_all_reduce()) add(r, {.call = id, .kind = TaskKind::call});
    }
    if (averager.is_all_reduce()) continue;
    std::vector<std::vector<TaskId>> after;
    for (const TaskId task : last) after.push_back(task.is_none() ? std::vector<TaskId>() : std::vector{task});
    auto averaged = averager.add(call, stream, after, {}, entry.repeat - i);
    if (!averaged) return tl::unexpected(averaged.error());
    last = *std::move(averaged);
  }
  return {};
}

}  // namespace

void read_groups(ScenarioContext& context, Value groups) {
  if (!groups) return;
  if (!groups.is_map()) {
    context.error(groups.mark(), read_codes::wrong_type,
                  fmt::format("'groups' must be a map, not {}", describe(groups.kind())),
                  "write 'name: {ranks: \"gpu[0-3]\"}'");
    return;
  }
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < groups.size(); ++i) names.push_back(groups.key(i).text());
  const Fields fields = context.fields(groups, "'groups'", names);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::string name(names[i]);
    if (name.empty() || name.size() > read_limits::name_bytes) {
      context.error(groups.key(i).mark(), scenario_codes::bad_group, "a group needs a name of at most 256 bytes");
      continue;
    }
    context.group_names.push_back(name);
    if (groups.value(i).is_scalar()) {
      // A text alone is the list of ranks.
      const auto ranks = read_ranks(context, fields, name);
      if (ranks) context.groups[name].push_back(context.scenario.job.add_group(*ranks));
    } else {
      read_group(context, name, groups.value(i));
    }
  }
}

void read_collectives(ScenarioContext& context, const std::vector<Value>& list) {
  constexpr std::size_t max_entries = 10'000;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Fields fields = context.fields(list[i], "a collective", scenario_keys::collective);
    if (!fields.is_map()) continue;
    if (i >= max_entries) {
      context.error(fields.mark(), scenario_codes::too_many, fmt::format("more than {} collectives", max_entries),
                    "use 'repeat'");
      return;
    }
    const std::vector<GroupId> groups = groups_of(context, fields);
    const auto entry = read_entry(context, fields, i, groups);
    if (groups.empty() || !entry) continue;
    std::size_t tasks = 0;
    for (const GroupId group : groups) tasks += 2 * context.scenario.job.ranks(group).size();
    if (tasks * static_cast<std::size_t>(entry->repeat) + context.scenario.job.tasks().size() >
        context.options.task_limit) {
      context.error(fields.mark(), scenario_codes::too_many,
                    fmt::format("more than {} tasks", context.options.task_limit), "lower 'repeat'");
      return;
    }
    const std::uint16_t stream = context.next_stream++;
    Averager averager(context.scenario.job, context.scenario.topology, entry->averaging, context.options.task_limit);
    for (const GroupId group : groups) {
      const auto added = add_calls(context, *entry, group, stream, averager);
      if (!added) {
        context.error(fields.mark(), scenario_codes::bad_averaging, added.error());
        break;
      }
    }
    if (!averager.is_all_reduce()) context.scenario.averaged.push_back({entry->averaging, averager.added()});
  }
}

}  // namespace espalier::scenario
