#include "cli/reports/degrade_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/counted.h"
#include "base/format_units.h"
#include "cli/output/table.h"
#include "cli/reports/describe_bound.h"
#include "topology/link_kind.h"

namespace espalier::cli {
namespace {

constexpr double no_loss = 0.0005;  ///< What prints as 0.0 %.

std::string loss_text(double share) { return percent(std::max(0.0, share)); }

std::string header_text(const forecast::Degradation& degradation, const Topology& topology, Bytes size,
                        const std::string& profile) {
  const forecast::Outlook& healthy = degradation.healthy;
  std::string text = fmt::format("# {}  {}  {}", topology.name(), to_string(healthy.collective.kind),
                                 counted(healthy.collective.rank_count, "rank"));
  if (!healthy.collective.root.is_none()) text += "  root " + topology.rank_name(healthy.collective.root);
  if (healthy.fastest) text += "  " + format_size(size);
  if (!profile.empty()) text += "  profile " + profile;
  text += fmt::format("\n# whole: bound busbw {} GB/s{}", gigabytes_per_second(healthy.bound_busbw()),
                      floor_mark(healthy.bound));
  if (healthy.fastest) {
    text += fmt::format(", busbw {} GB/s by {}", gigabytes_per_second(healthy.busbw()), healthy.fastest->planner);
  }
  if (healthy.nccl) {
    text +=
        fmt::format(", {} GB/s by {}", gigabytes_per_second(healthy.nccl->busbw(healthy.collective)), healthy.nccl_by);
  }
  if (!healthy.fastest && !healthy.bound.what.empty()) text += "\n# why: " + healthy.bound.what;
  return text + "\n#\n";
}

std::string count_text(std::size_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

/// How many failures there are in all, and what becomes of them.
std::string summary_text(const forecast::Degradation& degradation) {
  std::size_t all = 0, harmless = 0, broken = 0;
  for (const forecast::Damage& damage : degradation.damages) {
    const std::size_t alike = damage.failure.alike.size();
    all += alike;
    if (!damage.outlook) broken += alike;
    if (damage.outlook && damage.loss < no_loss) harmless += alike;
  }
  if (all == 0) return "# nothing can fail\n";
  const bool has_repaired = std::ranges::any_of(degradation.damages, [](const forecast::Damage& damage) {
    return damage.outlook && damage.outlook->fastest && damage.outlook->fastest->is_repaired;
  });
  std::string text = fmt::format("# {}, {} different: {} cost nothing, {} cost something, {} cut ranks off\n",
                                 count_text(all, "single failure"), degradation.damages.size(), harmless,
                                 all - harmless - broken, broken);
  if (has_repaired)
    text += "# repaired: what failed is left out of the whole machine's plan; loads and latencies, not simulated\n";
  for (const forecast::Damage& damage : degradation.damages) {
    if (!damage.outlook) text += "# " + damage.broken.message + "\n";
  }
  return text;
}

/// "# an nvlink4 cable here is 18 NVLinks of 25 GB/s as one: ..." for each class of cables that are several.
std::string bundles_text(const forecast::Degradation& degradation, const Topology& topology) {
  std::map<std::string, std::string> notes;
  for (const forecast::Damage& damage : degradation.damages) {
    if (damage.failure.parts.links.empty()) continue;
    const Link& link = topology.link(damage.failure.parts.links.front());
    const NvLinks links = nvlinks_of(link);
    if (links.count < 2) continue;
    notes.emplace(
        link.link_class,
        fmt::format("# a cable of {} is {} NVLinks of {} as one, and fails with all of them; --slow {}={:.1f}% "
                    "is one of them down\n",
                    link.link_class, links.count, format_bandwidth(links.each), damage.failure.name,
                    100 - 100.0 / static_cast<double>(links.count)));
  }
  std::string text;
  for (const auto& [link_class, note] : notes) text += note;
  return text;
}

/// The part of NCCL's busbw on the whole machine that a failure costs it. Requires: NCCL runs there.
double nccl_loss(const forecast::Outlook& healthy, const forecast::Damage& damage) {
  const double whole = healthy.nccl->busbw(healthy.collective);
  if (!damage.outlook || !damage.outlook->nccl || whole <= 0) return 1;
  return 1 - damage.outlook->nccl->busbw(damage.outlook->collective) / whole;
}

nlohmann::ordered_json nccl_json(const forecast::Outlook& outlook) {
  return {{"by", outlook.nccl_by},
          {"time", outlook.nccl->elapsed.seconds()},
          {"busbw", outlook.nccl->busbw(outlook.collective)},
          {"chunk", outlook.nccl->chunk.count}};
}

nlohmann::ordered_json outlook_json(const forecast::Outlook& outlook) {
  const auto bound_rate = outlook.bound_busbw();
  nlohmann::ordered_json document = {{"ranks", outlook.collective.rank_count},
                                     {"bound", {{"time_per_byte", to_string(outlook.bound.time_per_byte)}}}};
  document["bound"]["busbw"] = bound_rate ? nlohmann::ordered_json(*bound_rate) : nlohmann::ordered_json();
  document["bound"]["floor"] = outlook.bound.is_floor;
  if (!outlook.fastest) return document;
  const RunReport& run = outlook.fastest->run;
  document["best"] = {{"algorithm", outlook.fastest->planner},
                      {"time", run.elapsed.seconds()},
                      {"algbw", run.algbw()},
                      {"busbw", run.busbw(outlook.collective)},
                      {"of_bound", run.of_bound(outlook.bound.time_per_byte, outlook.collective)},
                      {"chunk", run.chunk.count},
                      {"ahead", run.ahead},
                      {"kept", outlook.fastest->kept}};
  if (outlook.fastest->is_repaired) document["best"]["repaired"] = true;
  return document;
}

}  // namespace

Table degradation_table(const forecast::Degradation& degradation) {
  const bool has_schedules = degradation.healthy.fastest.has_value();
  Table table;
  table.add_column("failure", "", Table::Align::left);
  table.add_column("of", "", Table::Align::left);
  table.add_column("count");
  table.add_column("bound", "(GB/s)");
  table.add_column("loss", "(%)", Table::Align::right, "bound");
  if (has_schedules) {
    table.add_column("busbw", "(GB/s)");
    table.add_column("loss", "(%)", Table::Align::right, "busbw");
    table.add_column("by", "", Table::Align::left);
  }
  const bool has_nccl = degradation.healthy.nccl.has_value();
  if (has_nccl) {
    table.add_column("nccl", "(GB/s)");
    table.add_column("loss", "(%)", Table::Align::right, "nccl");
    table.add_column("by", "", Table::Align::left, "nccl");
  }
  for (const forecast::Damage& damage : degradation.damages) {
    std::vector<std::string> cells = {damage.failure.name, damage.failure.what,
                                      std::to_string(damage.failure.alike.size())};
    if (!damage.outlook) {
      cells.insert(cells.end(), {"-", "100.0"});
      if (has_schedules) cells.insert(cells.end(), {"-", "100.0", "cut off"});
      if (has_nccl) cells.insert(cells.end(), {"-", "100.0", "cut off"});
      table.add_row(std::move(cells));
      continue;
    }
    cells.push_back(gigabytes_per_second(damage.outlook->bound_busbw()));
    cells.push_back(loss_text(damage.bound_loss));
    if (const auto& fastest = damage.outlook->fastest) {
      cells.push_back(gigabytes_per_second(damage.outlook->busbw()));
      cells.push_back(loss_text(damage.loss));
      cells.push_back(fastest->planner + (fastest->kept ? ", as before" : fastest->is_repaired ? ", repaired" : ""));
    }
    if (has_nccl) {
      const auto& run = damage.outlook->nccl;
      cells.push_back(run ? gigabytes_per_second(run->busbw(damage.outlook->collective)) : "-");
      cells.push_back(loss_text(nccl_loss(degradation.healthy, damage)));
      cells.push_back(run ? damage.outlook->nccl_by : "nothing");
    }
    table.add_row(std::move(cells));
  }
  return table;
}

std::string degradation_text(const forecast::Degradation& degradation, const Topology& topology, Bytes size,
                             const std::string& profile) {
  return header_text(degradation, topology, size, profile) + degradation_table(degradation).text() + "#\n" +
         bundles_text(degradation, topology) + summary_text(degradation);
}

nlohmann::ordered_json degradation_json(const forecast::Degradation& degradation, const Topology& topology, Bytes size,
                                        const std::string& profile) {
  const Collective& collective = degradation.healthy.collective;
  nlohmann::ordered_json document = {{"schema", "espalier/degrade/1"},
                                     {"topology", topology.name()},
                                     {"collective", to_string(collective.kind)},
                                     {"ranks", collective.rank_count}};
  if (!collective.root.is_none()) document["root"] = topology.rank_name(collective.root);
  if (degradation.healthy.fastest) document["size"] = size.count;
  document["whole"] = outlook_json(degradation.healthy);
  const bool has_nccl = degradation.healthy.nccl.has_value();
  if (!profile.empty()) document["profile"] = profile;
  if (has_nccl) document["whole"]["nccl"] = nccl_json(degradation.healthy);
  document["failures"] = nlohmann::ordered_json::array();
  for (const forecast::Damage& damage : degradation.damages) {
    nlohmann::ordered_json entry = {{"failure", damage.failure.name},
                                    {"of", damage.failure.what},
                                    {"alike", damage.failure.alike},
                                    {"bound_loss", damage.bound_loss},
                                    {"loss", damage.loss}};
    if (damage.outlook) {
      entry.update(outlook_json(*damage.outlook));
    } else {
      entry["cut_off"] = damage.broken.message;
    }
    if (has_nccl) entry["nccl_loss"] = nccl_loss(degradation.healthy, damage);
    if (has_nccl && damage.outlook && damage.outlook->nccl) entry["nccl"] = nccl_json(*damage.outlook);
    document["failures"].push_back(std::move(entry));
  }
  return document;
}

}  // namespace espalier::cli
