#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/counted.h"
#include "base/format_units.h"
#include "cli/flags/collective_flags.h"
#include "cli/flags/condition_flags.h"
#include "cli/flags/flag_values.h"
#include "cli/output/describe_repaired.h"
#include "cli/reports/describe_bound.h"
#include "cli/reports/explanation.h"
#include "report/verdict.h"
#include "schedule/relays.h"
#include "topology/bundles.h"
#include "topology/names/name_list.h"

namespace espalier::cli {
namespace {

constexpr double full = 0.9995;  ///< What prints as 100.0 %.

std::string duration(double seconds) {
  return format_duration({static_cast<std::int64_t>(seconds * static_cast<double>(picoseconds_per_second))});
}

std::string busbw_text(const Bound& bound, const Collective& collective) {
  const auto algbw = algbw_of(bound.time_per_byte);
  return gigabytes_per_second(algbw ? std::optional(*algbw * to_double(collective.busbw_factor())) : std::nullopt);
}

/// "7/8 S", "S", "14 S".
std::string share_of_size(const Rational& share) {
  if (share == 1) return "S";
  const std::string text = to_string(share);
  return (text.ends_with("/1") ? text.substr(0, text.size() - 2) : text) + " S";
}

std::string gigabytes(const BigInteger& rate) { return gigabytes_per_second(rate.convert_to<double>()); }

struct Sides {
  std::vector<std::string> inside;
  std::vector<std::string> outside;
};

Sides rank_sides(const Topology& topology, const Bound& bound) {
  Sides sides;
  for (std::size_t i = 0; i < topology.rank_count(); ++i) {
    const bool inside = std::ranges::find(bound.cut, topology.node_of(Rank(i))) != bound.cut.end();
    (inside ? sides.inside : sides.outside).push_back(topology.rank_name(Rank(i)));
  }
  return sides;
}

/// "5 nvlink2 links at 110 GB/s", "1 link of 5 GB/s".
std::string links_text(const std::string& name, const std::vector<LinkId>& links, const Topology& topology) {
  BigInteger rate = 0;
  for (const LinkId id : links) rate += topology.link(id).bandwidth().bytes_per_second;
  const char* noun = links.size() == 1 ? "link" : "links";
  if (!topology.link(links.front()).link_class.empty()) {
    return fmt::format("{} {} {} at {} GB/s", links.size(), name, noun, gigabytes(rate));
  }
  if (links.size() == 1) return fmt::format("1 link of {}", name);
  return fmt::format("{} links of {}, {} GB/s", links.size(), name, gigabytes(rate));
}

/// What crosses the cut: links by class, and backplanes.
std::string crossing_text(const planners::CutProof& proof, const Topology& topology) {
  std::map<std::string, std::vector<LinkId>> by_class;
  for (const LinkId id : proof.links) {
    const Link& link = topology.link(id);
    by_class[link.link_class.empty() ? format_bandwidth(link.bandwidth()) : link.link_class].push_back(id);
  }
  std::vector<std::string> terms;
  for (const auto& [name, links] : by_class) {
    std::vector<std::string> names;
    for (const LinkId link : links) names.push_back(topology.link_name(link));
    terms.push_back(fmt::format("{} ({})", links_text(name, links, topology), first_names(names, shown_links)));
  }
  std::vector<std::string> backplanes;
  backplanes.reserve(proof.backplanes.size());
  for (const NodeId node : proof.backplanes) backplanes.push_back(topology.node(node).id);
  if (!backplanes.empty()) terms.push_back("the backplane of " + summarize_names(backplanes));
  return fmt::format("{}", fmt::join(terms, " and "));
}

std::string limit_text(const Explanation& of) {
  if (of.bound.time_per_byte == 0) return "The limit: none, " + of.bound.what + "\n";
  const Collective& collective = of.schedule->collective;
  std::string text =
      fmt::format("The limit: busbw {} GB/s{}\n", busbw_text(of.bound, collective), floor_mark(of.bound));
  const double least = to_double(of.bound.time_per_byte) * static_cast<double>(of.size.count);
  if (of.proof) {
    const bool leaves = of.proof->direction == Direction::forward;
    const Sides sides = rank_sides(*of.topology, of.bound);
    text += fmt::format("  Inside the cut: {}. Outside: {}.\n", summarize_names(sides.inside),
                        summarize_names(sides.outside));
    text += fmt::format("  {} has to {} it, over {}.\n", share_of_size(of.proof->demand), leaves ? "leave" : "enter",
                        crossing_text(*of.proof, *of.topology));
    text += fmt::format("  So no schedule is faster than {} / {} GB/s: {} at {}.\n", share_of_size(of.proof->demand),
                        gigabytes(of.proof->capacity), duration(least), format_size(of.size));
    return text;
  }
  return text + fmt::format("  {}: {}.\n  So no schedule is faster than {} at {}.\n",
                            of.bound.cut.empty() ? "What binds" : "By counting", of.bound.what, duration(least),
                            format_size(of.size));
}

std::string fullest_text(const Explanation& of) {
  const double busy = to_double(of.loads.time_per_byte / of.bound.time_per_byte);
  std::vector<std::string> names;
  names.reserve(of.loads.bottleneck_links.size() + of.loads.bottleneck_nodes.size());
  const Bundles bundles(*of.topology);
  std::set<std::size_t> named;
  for (const LinkId link : of.loads.bottleneck_links) {
    const std::size_t bundle = bundles.bundle_of(link);
    if (named.insert(bundle).second) names.push_back(bundle_name(*of.topology, bundles, bundle));
  }
  for (const NodeId node : of.loads.bottleneck_nodes) names.push_back("the backplane of " + of.topology->node(node).id);
  const std::size_t count = names.size();
  const std::string list = first_names(names, shown_links);
  const std::string which = count == 1 ? fmt::format("{} is the fullest link", list)
                                       : fmt::format("{} links are the fullest ({})", count, list);
  return fmt::format("  {}: busy for {} % of the limit's time{}.\n", which, percent(busy),
                     busy < 1 / full ? ", so the loads alone would reach the limit" : "");
}

std::string shape_text(const planners::TravelShape& shape) {
  const std::string hops = fmt::format("{} hop{}", shape.hops, shape.hops == 1 ? "" : "s");
  if (shape.branches <= 1) return "Slices pass from rank to rank in chains of up to " + hops;
  const std::string branches = fmt::format("Slices branch up to {} ways and take up to {}", shape.branches, hops);
  return shape.in_chains > 0
             ? fmt::format("{}; {:.0f} % of the bytes travel in chains", branches, 100 * shape.in_chains)
             : branches;
}

std::string plan_text(const Explanation& of) {
  const Schedule& schedule = *of.schedule;
  const std::uint32_t channels = schedule.channel_count();
  std::string text = fmt::format("The plan: {}, {} on {}\n", schedule.algorithm,
                                 counted(of.candidate->transfer_count(), "transfer"), counted(channels, "channel"));
  if (of.schedule->transfers.size() != of.candidate->transfer_count()) {
    text = fmt::format("The plan: {}, {}, the images of {}\n", schedule.algorithm,
                       counted(of.candidate->transfer_count(), "transfer"),
                       counted(schedule.transfers.size(), "transfer"));
  }
  if (const std::string repaired = repaired_text(*of.candidate); !repaired.empty()) text += "  " + repaired.substr(2);
  if (schedule.transfers.empty()) return text;
  text += "  " + shape_text(of.shape) + ".\n";
  text += fullest_text(of);
  Table table;
  table.add_column("class", "", Table::Align::left);
  table.add_column("links");
  table.add_column("used");
  table.add_column("fullest", "(%)");
  table.add_column("mean", "(%)");
  for (const planners::ClassLoad& load : of.classes) {
    table.add_row({load.link_class, std::to_string(load.links), std::to_string(load.used), percent(load.most),
                   percent(load.mean)});
  }
  return of.classes.empty() ? text : text + table.text("    ");
}

std::string path_text(const forecast::RunLimits& limits) {
  const auto elapsed = static_cast<double>(limits.report.elapsed.count);
  const std::size_t steps = limits.report.critical_path.size();
  std::string text = fmt::format("  What the last byte waited for, in {} step{}:\n", steps, steps == 1 ? "" : "s");
  Table table;
  table.add_column("of the time", "(%)");
  table.add_column("time");
  table.add_column("went into", "", Table::Align::left);
  table.add_column("most of it at", "", Table::Align::left);
  constexpr double min_shown = 0.0005;
  for (const sim::PathTime& share : limits.path) {
    const double part = static_cast<double>(share.time.count) / elapsed;
    if (part < min_shown) continue;
    table.add_row({percent(part), format_duration(share.time), fmt::format("{} {}", to_string(share.use), share.where),
                   fmt::format("{} ({})", share.max_at, format_duration(share.max_time))});
  }
  text += table.text("    ");
  if (const std::uint32_t waits = limits.report.window_waits; waits > 0) {
    text +=
        fmt::format("  {} waited for chunks of lower rounds to leave first (--ahead {}).\n",
                    waits == 1 ? "One of these steps" : fmt::format("{} of these steps", waits), limits.report.ahead);
  }
  return text;
}

std::string full_links_text(const Explanation& of) {
  const std::vector<sim::LinkShare>& full_links = of.limits.full;
  if (full_links.empty()) return "  No link is busy for more than 90 % of the time.\n";
  std::vector<std::string> names;
  names.reserve(full_links.size());
  for (const sim::LinkShare& link : full_links) names.push_back(fmt::format("{} {} %", link.name, percent(link.share)));
  return fmt::format("  Busy for more than 90 % of the time: {} link{} ({}).\n", full_links.size(),
                     full_links.size() == 1 ? "" : "s", first_names(names, shown_links));
}

/// Whom the critical path waited for or shared with, by link or node, most first.
std::string sharing_text(const Explanation& of) {
  struct Place {
    std::string name;
    Picoseconds time;
    std::size_t flows = 0;
    std::set<Rank> sources;
  };
  std::vector<Place> places;
  for (const sim::SharedTime& shared : of.limits.report.shared) {
    const std::string name =
        shared.link.is_none() ? of.topology->node(shared.node).id : of.topology->link_name(shared.link);
    auto place = std::ranges::find(places, name, &Place::name);
    if (place == places.end()) place = places.insert(places.end(), {name, {}, 0, {}});
    place->time.count += shared.time.count;
    ++place->flows;
    place->sources.insert(shared.src);
  }
  std::ranges::stable_sort(places, [](const Place& a, const Place& b) { return a.time > b.time; });
  const bool is_fair = of.limits.model == sim::ModelKind::fair;
  std::string text;
  for (std::size_t i = 0; i < places.size() && i < shown_links; ++i) {
    std::vector<std::string> names;
    for (const Rank source : places[i].sources) names.push_back(end_name(*of.schedule, *of.topology, source));
    const std::string sources = summarize_names(names);
    text += is_fair ? fmt::format("  Over {} it shared with {} flow{} from {}: {}.\n", places[i].name, places[i].flows,
                                  places[i].flows == 1 ? "" : "s", sources, format_duration(places[i].time))
                    : fmt::format("  At {} it waited for what {} sent: {}.\n", places[i].name, sources,
                                  format_duration(places[i].time));
  }
  return text;
}

std::string simulation_text(const Explanation& of) {
  if (of.schedule->transfers.empty()) return {};
  const Collective& collective = of.schedule->collective;
  const sim::Report& report = of.limits.report;
  const std::string model =
      of.limits.model == sim::ModelKind::link ? "" : fmt::format(" (model {})", to_string(of.limits.model));
  const std::string profile = of.profile.empty() ? "" : ", profile " + of.profile;
  const std::string circumstances = profile + circumstances_text(of.circumstances, ", ");
  std::string text =
      fmt::format("{} at {}{}{}{}: {}, busbw {} GB/s, {} % of the limit, chunks of {}{}\n",
                  forecast::repairs_of(*of.candidate) != nullptr ? "By loads and latencies" : "Simulated",
                  format_size(of.size), of.type == to_string(usual_type) ? "" : " of " + of.type, model, circumstances,
                  format_duration(report.elapsed), gigabytes_per_second(report.busbw(collective)),
                  percent(report.of_bound(of.bound.time_per_byte, collective)), format_size(report.chunk),
                  report.ahead == 0 ? "" : fmt::format(", senders at most {} rounds ahead", report.ahead));
  if (of.limits.path.empty() || report.elapsed.count == 0) return text;
  return text + path_text(of.limits) + sharing_text(of) + full_links_text(of);
}

std::string improvements_text(const Explanation& of) {
  const auto elapsed = of.limits.report.elapsed;
  constexpr double min_shown = 0.0005;
  constexpr std::size_t max_shown = 8;
  Table table;
  table.add_column("saves", "(%)");
  table.add_column("time");
  table.add_column("with", "", Table::Align::left);
  std::size_t shown = 0;
  std::vector<std::string> useless;
  for (const forecast::Improvement& improvement : of.limits.improvements) {
    const double saved = 1 - static_cast<double>(improvement.elapsed.count) / static_cast<double>(elapsed.count);
    if (saved < min_shown) {
      useless.push_back(improvement.change);
    } else if (++shown <= max_shown) {
      table.add_row({percent(saved), format_duration(improvement.elapsed), improvement.change});
    }
  }
  if (of.limits.improvements.empty()) return {};
  std::string text = "What one change would save, simulated anew:\n";
  if (shown > 0) text += table.text("    ");
  if (!useless.empty()) {
    text += fmt::format("  Nothing: {}.\n", first_names(useless, max_shown, "; "));
  }
  return text;
}

std::string choice_text(const Explanation& of) {
  const auto own = std::ranges::find_if(of.trials, [&](const planners::Trial& trial) {
    return trial.candidate->planner == of.label && trial.run.has_value();
  });
  std::string why = of.why.empty() ? "" : fmt::format("Why NCCL takes {}: {}.\n", of.label, of.why);
  if (!of.profile.empty() && of.label.find("nvls") != std::string::npos)
    why += fmt::format("  {}\n", report::nvls_note);
  if (own == of.trials.end() || of.trials.size() == 1 || own->run->elapsed.count == 0) return why;
  const double seconds = own->run->elapsed.seconds();
  std::vector<std::string> others;
  for (const planners::Trial& trial : of.trials) {
    if (&trial == &*own) continue;
    others.push_back(trial.run
                         ? fmt::format("{} {:.2f}x", trial.candidate->planner, trial.run->elapsed.seconds() / seconds)
                         : fmt::format("{} > {:.2f}x", trial.candidate->planner, trial.min_time / seconds));
  }
  const bool wins = own == of.trials.begin() || of.trials.front().run->elapsed == own->run->elapsed;
  return why + fmt::format("Why {}: {} at {}. Times of others against its own:\n  {}\n", of.label,
                           wins ? "nothing is faster" : of.trials.front().candidate->planner + " is faster",
                           format_size(of.size), fmt::join(others, ", "));
}

std::string more_text(const Explanation& of) {
  if (of.more.empty()) return {};
  const Collective& collective = of.schedule->collective;
  Table table;
  table.add_column("more");
  table.add_column("of", "", Table::Align::left);
  table.add_column("beside", "", Table::Align::left);
  table.add_column("limit", "(GB/s)");
  table.add_column("gain", "(%)");
  std::size_t useful = 0;
  std::map<std::string, std::size_t> useless;  // the most cables by kind
  for (const planners::MoreCables& more : of.more) {
    if (more.bound.time_per_byte >= of.bound.time_per_byte) {
      useless[more.beside] = std::max(useless[more.beside], more.cables);
      continue;
    }
    const std::string beside =
        more.cables > 1 ? fmt::format("{} and {} more", more.beside, more.cables - 1) : more.beside;
    ++useful;
    const double gain = to_double(of.bound.time_per_byte / more.bound.time_per_byte) - 1;
    table.add_row({std::to_string(more.cables), more.what, beside, busbw_text(more.bound, collective), percent(gain)});
  }
  std::string text = fmt::format("What more cables would buy{}:\n",
                                 of.proof ? ", one beside each of a kind that crosses the cut" : "");
  if (useful > 0) text += table.text("    ");
  std::vector<std::string> names;
  names.reserve(useless.size());
  for (const auto& [beside, cables] : useless) {
    names.push_back(cables == 1 ? "1 beside " + beside : fmt::format("{} like {}", cables, beside));
  }
  if (!names.empty()) text += fmt::format("  Nothing: {}.\n", fmt::join(names, ", "));
  return text;
}

}  // namespace

Table improvements_table(const Explanation& of) {
  Table table;
  table.add_column("change", "", Table::Align::left);
  table.add_column("time", "(us)");
  table.add_column("saves", "(%)");
  const auto elapsed = static_cast<double>(std::max<std::int64_t>(of.limits.report.elapsed.count, 1));
  for (const forecast::Improvement& improvement : of.limits.improvements) {
    table.add_row({improvement.change, fmt::format("{:.2f}", improvement.elapsed.seconds() * 1e6),
                   percent(1 - static_cast<double>(improvement.elapsed.count) / elapsed)});
  }
  return table;
}

std::string explanation_text(const Explanation& of) {
  const Collective& collective = of.schedule->collective;
  std::string text = fmt::format(
      "{}: {} of {}{}{}\n", of.topology->name(), to_string(collective.kind), counted(collective.rank_count, "rank"),
      collective.root.is_none() ? "" : ", root " + of.topology->rank_name(collective.root), shares_text(collective));
  for (const std::string& part :
       {limit_text(of), plan_text(of), simulation_text(of), improvements_text(of), choice_text(of), more_text(of)}) {
    if (!part.empty()) text += "\n" + part;
  }
  return text;
}

}  // namespace espalier::cli
