#include "cli/output/nccl_choices_output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/counted.h"
#include "base/format_units.h"

namespace espalier::cli {
namespace {

using planners::NcclGraph;

constexpr double micro = 1e6;

std::string name_of(const profile::NcclWay& way) {
  return fmt::format("{} {}", to_string(way.shape), sim::to_string(way.protocol));
}

/// "12 channels of 20 GB/s (NVL)"; between machines with what goes over NICs.
std::string graph_text(const NcclGraph& graph, bool is_alone) {
  if (graph.channels == 0) return "none";
  std::string text = fmt::format("{} of {:g} GB/s ({})", counted(static_cast<std::size_t>(graph.channels), "channel"),
                                 graph.inside, to_string(graph.way_inside));
  if (!is_alone) text += fmt::format(", {:g} over NICs ({})", graph.outside, to_string(graph.way_outside));
  return text;
}

std::string channel_text(const std::vector<std::uint32_t>& channels) {
  return fmt::format("{}", fmt::join(channels, ","));
}

std::string order_text(const std::vector<Rank>& order) {
  constexpr std::size_t most = 24;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, order.size()); ++i) {
    text += (i == 0 ? "" : " ") + (order[i].is_none() ? std::string("-") : std::to_string(order[i].index()));
  }
  return order.size() > most ? text + " ..." : text;
}

/// As NCCL's log has them: a ring from rank 0 on, a tree by the parents of ranks.
template <class Kind>
std::string shapes_text(const char* what, const std::vector<Kind>& all, std::vector<Rank> Kind::*member) {
  constexpr std::size_t most = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, all.size()); ++i) {
    text += fmt::format("# {} {}: {}\n", what, channel_text(all[i].channels), order_text(all[i].*member));
  }
  if (all.size() > most) text += fmt::format("# and {} more; --json has all\n", all.size() - most);
  return text;
}

nlohmann::ordered_json graph_json(const NcclGraph& graph) {
  return {{"channels", graph.channels},
          {"inside", graph.inside},
          {"outside", graph.outside},
          {"way_inside", to_string(graph.way_inside)},
          {"way_outside", to_string(graph.way_outside)},
          {"same_channels", graph.same_channels != 0}};
}

template <class Kind>
nlohmann::ordered_json shapes_json(const char* key, const std::vector<Kind>& all, std::vector<Rank> Kind::*member) {
  auto list = nlohmann::ordered_json::array();
  for (const Kind& one : all) {
    std::vector<std::int64_t> ranks;
    for (const Rank rank : one.*member) ranks.push_back(rank.is_none() ? -1 : static_cast<std::int64_t>(rank.index()));
    list.push_back({{"channels", one.channels}, {key, ranks}});
  }
  return list;
}

nlohmann::ordered_json way_json(const profile::NcclWay& way) {
  return {{"algorithm", to_string(way.shape)},
          {"protocol", sim::to_string(way.protocol)},
          {"latency", way.latency / micro},
          {"bandwidth", way.bandwidth * 1e9}};
}

nlohmann::ordered_json choice_json(const profile::NcclChoice& choice) {
  return {{"algorithm", to_string(choice.way.shape)},
          {"protocol", sim::to_string(choice.way.protocol)},
          {"channels", choice.channels},
          {"time", choice.seconds}};
}

}  // namespace

Table nccl_table(const NcclAnswer& answer) {
  Table table;
  table.add_column("collective", "", Table::Align::left);
  table.add_column("from");
  table.add_column("to");
  table.add_column("algorithm", "", Table::Align::left);
  table.add_column("protocol", "", Table::Align::left);
  table.add_column("channels");
  table.add_column("counted", "(us)");
  table.add_column("ahead", "(x)");
  table.add_column("of", "", Table::Align::left);
  for (const CollectiveChoices& of : answer.collectives) {
    for (const ChoiceRun& run : of.runs) {
      const profile::NcclWay& way = run.choice.way;
      table.add_row({std::string(to_string(of.collective)), format_rounded_size(run.from), format_rounded_size(run.to),
                     std::string(to_string(way.shape)), std::string(sim::to_string(way.protocol)),
                     std::to_string(run.choice.channels), fmt::format("{:.1f}", run.choice.seconds * micro),
                     run.second ? fmt::format("{:.2f}", run.second->seconds / run.choice.seconds) : "-",
                     run.second ? name_of(run.second->way) : "-"});
    }
  }
  return table;
}

std::string nccl_text(const NcclAnswer& answer) {
  const planners::NcclCommunicator& of = answer.communicator;
  const bool is_alone = of.machines == 1;
  std::string text = fmt::format("# {}  {}  {}  {}  NCCL {} by {}\n", answer.topology, counted(of.ranks, "rank"),
                                 counted(of.machines, "machine"), answer.type, answer.version, answer.profile);
  text += fmt::format("# rings: {}; {} opened\n", graph_text(of.ring, is_alone), of.channels);
  text += fmt::format("# trees ({}): {}\n", to_string(of.tree_pattern), graph_text(of.tree, is_alone));
  text += fmt::format("# NVLS: {}", graph_text(of.nvls, is_alone));
  text += of.nvls_channels > 0 ? fmt::format("; {} opened\n", of.nvls_channels) : "\n";
  text += shapes_text("ring", of.rings, &planners::NcclRing::order);
  text += shapes_text("parents in tree", of.trees, &planners::NcclTree::parent);
  text += "#\n" + nccl_table(answer).text();
  if (answer.network_adds) {
    text += "#\n# without CollNet, which NCCL has with a plug-in for switches that add; -a nccl counts it here\n";
  }
  return text;
}

nlohmann::ordered_json nccl_json(const NcclAnswer& answer) {
  const planners::NcclCommunicator& of = answer.communicator;
  nlohmann::ordered_json document = {{"schema", "espalier/nccl/1"}, {"topology", answer.topology},
                                     {"ranks", of.ranks},           {"machines", of.machines},
                                     {"profile", answer.profile},   {"version", answer.version},
                                     {"channels", of.channels},     {"nvls_channels", of.nvls_channels}};
  document["ring"] = graph_json(of.ring);
  document["tree"] = graph_json(of.tree);
  document["tree"]["pattern"] = to_string(of.tree_pattern);
  document["nvls"] = graph_json(of.nvls);
  document["rings"] = shapes_json("order", of.rings, &planners::NcclRing::order);
  document["trees"] = shapes_json("parent", of.trees, &planners::NcclTree::parent);
  document["collectives"] = nlohmann::ordered_json::array();
  for (const CollectiveChoices& collective : answer.collectives) {
    nlohmann::ordered_json entry = {{"collective", to_string(collective.collective)}};
    entry["ways"] = nlohmann::ordered_json::array();
    for (const profile::NcclWay& way : collective.ways) entry["ways"].push_back(way_json(way));
    entry["choices"] = nlohmann::ordered_json::array();
    for (const ChoiceRun& run : collective.runs) {
      nlohmann::ordered_json choice = {{"from", run.from.count}, {"to", run.to.count}};
      choice.update(choice_json(run.choice));
      if (run.second) choice["second"] = choice_json(*run.second);
      entry["choices"].push_back(std::move(choice));
    }
    document["collectives"].push_back(std::move(entry));
  }
  return document;
}

}  // namespace espalier::cli
