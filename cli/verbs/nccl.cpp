#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/flags/flag_values.h"
#include "cli/flags/inputs.h"
#include "cli/flags/modes.h"
#include "cli/flags/sizes.h"
#include "cli/jobs/chosen_profile.h"
#include "cli/output/json_text.h"
#include "cli/output/nccl_choices_output.h"
#include "cli/verbs/commands.h"
#include "topology/link_kind.h"

namespace espalier::cli {
namespace {

struct NcclFlags {
  TopologyFlags topology;
  std::vector<std::string> collectives;
  SizeFlags sizes;
  ProfileFlags profile;
};

constexpr std::array usual = {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                              CollectiveKind::broadcast, CollectiveKind::reduce};

Result<std::vector<CollectiveKind>> resolve_collectives(const std::vector<std::string>& names) {
  if (names.empty()) return std::vector(usual.begin(), usual.end());
  std::vector<CollectiveKind> kinds;
  for (const std::string& name : names) {
    const auto kind = parse_collective(name);
    if (!kind) return tl::unexpected(kind.error());
    if (std::ranges::find(usual, *kind) == usual.end()) {
      return fail(ErrorCode::unsupported, fmt::format("NCCL has no choice for {}: ranks send straight", name),
                  "all_reduce, all_gather, reduce_scatter, broadcast and reduce have one");
    }
    kinds.push_back(*kind);
  }
  return kinds;
}

/// Sizes in a row with the same way on as many channels.
CollectiveChoices choose(const planners::NcclCommunicator& communicator, CollectiveKind kind,
                         const std::vector<Bytes>& sizes, std::int64_t element_size) {
  const profile::NcclChoices choices(communicator, kind);
  CollectiveChoices found{kind, choices.ways(), {}};
  for (const Bytes size : sizes) {
    const auto ranked = choices.rank(size, element_size);
    const profile::NcclChoice& first = ranked.front();
    const auto is_same = [&](const profile::NcclChoice& other) {
      return other.way.shape == first.way.shape && other.way.protocol == first.way.protocol &&
             other.channels == first.channels;
    };
    if (!found.runs.empty() && is_same(found.runs.back().choice)) {
      found.runs.back().to = size;
      continue;
    }
    found.runs.push_back({size, size, first, {}});
    if (ranked.size() > 1) found.runs.back().second = ranked[1];
  }
  return found;
}

/// Whether switches between machines copy and add.
bool network_adds(const Topology& topology) {
  for (std::size_t i = 0; i < topology.link_count(); ++i) {
    const Node& head = topology.node(topology.link(LinkId(i)).head);
    if (head.multicast && head.reduction && kind_of(topology, LinkId(i)) == LinkKind::network) return true;
  }
  return false;
}

ExitCode run(const Console& console, const NcclFlags& flags) {
  const auto kinds = resolve_collectives(flags.collectives);
  if (!kinds) return console.refuse_usage(kinds.error());
  const auto type = parse_element_type(flags.sizes.type);
  if (!type) return console.refuse_usage(type.error());
  const auto sizes = parse_sizes(flags.sizes, *type);
  if (!sizes) return console.refuse_usage(sizes.error());
  const auto machine = load_machine(console, flags.topology);
  if (!machine) return refuse(console, machine.error());
  const Topology& topology = machine->topology;
  const auto software = flags.profile.resolve({}, machine->profile);
  if (!software) return console.refuse_usage(software.error());
  if (*software == nullptr || !(*software)->profile.tuner) {
    return console.refuse_usage({ErrorCode::invalid_input, topology.name() + " has no profile with NCCL's tuner",
                                 "add --profile nccl-hopper, or what its GPUs are"});
  }
  const auto communicator = profile::communicator_of(topology, *(*software)->profile.tuner);
  if (!communicator) {
    return console.refuse(
        {ErrorCode::unsupported, "NCCL's search is not known for " + topology.name(),
         "its ranks have to be GPUs of NVIDIA, two or more, in machines with NVLink or PCIe of their own"});
  }
  NcclAnswer answer{topology.name(),       (*software)->profile.name,
                    flags.profile.version, std::string(to_string(*type)),
                    *communicator,         {},
                    network_adds(topology)};
  if (answer.version.empty()) answer.version = profile::version_text((*software)->profile.tuner->version);
  for (const CollectiveKind kind : *kinds) {
    answer.collectives.push_back(choose(*communicator, kind, *sizes, size_of(*type)));
  }
  if (console.csv) {
    console.print_bytes(nccl_table(answer).csv());
  } else {
    console.print(console.json ? json_text(nccl_json(answer)) : nccl_text(answer));
  }
  return ExitCode::ok;
}

}  // namespace

void add_nccl_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<NcclFlags>();
  CLI::App* command = app.add_subcommand(
      "nccl", "What NCCL chooses here: rings, trees, channels, and the algorithm and protocol for each size");
  flags->topology.add_to(*command);
  flags->topology.add_damage_to(*command);
  command
      ->add_option("COLLECTIVE", flags->collectives, "all_reduce, all_gather, reduce_scatter, broadcast, reduce; all")
      ->option_text("[COLLECTIVE...]");
  flags->sizes.add_to(*command);
  flags->profile.add_version_to(*command);
  add_csv_to(*command, session.console);
  command->footer(
      examples({"espalier nccl dgx-h100-x4", "espalier nccl dgx-a100-x2 all_reduce -e 8G --nccl-version 2.27",
                "espalier nccl dgx1v --ranks 'gpu[0,2,4,6]' --json"}) +
      "\ncounted is what NCCL's tuner counts, not what the call takes (simulate -a nccl). ahead is the "
      "second's over it,\nat the first of the sizes. Nothing is simulated: NCCL chooses before it runs "
      "anything.");
  command->callback([flags, &session] { session.run = [flags, &session] { return run(session.console, *flags); }; });
}

}  // namespace espalier::cli
