#include "cli/reports/lab_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/counted.h"
#include "base/format_units.h"
#include "cli/flags/collective_flags.h"
#include "cli/reports/describe_bound.h"

namespace espalier::cli {
namespace {

double busbw_of(Bytes size, double seconds, const Collective& collective) {
  return static_cast<double>(size.count) / seconds * to_double(collective.busbw_factor());
}

std::string whole_microseconds(double seconds) { return fmt::format("{:.0f}", seconds * 1e6); }

std::string gigabytes(double rate) { return fmt::format("{:.4f}", rate / 1e9); }

bool is_calibration_size(const LabReport& report, Bytes size) {
  return report.calibration && std::ranges::find(report.calibration->sizes, size) != report.calibration->sizes.end();
}

/// "12.5 GB/s > 125 MB/s": the fastest link before and after scaling.
std::string fastest_link_text(const LabReport& report) {
  std::size_t fastest = 0;
  const auto links = report.original->links();
  for (std::size_t link = 1; link < links.size(); ++link) {
    if (links[link].bandwidth() > links[fastest].bandwidth()) fastest = link;
  }
  return fmt::format("{} has {} instead of {}", report.original->link_name(LinkId(fastest)),
                     format_bandwidth(report.scaled->topology.link(LinkId(fastest)).bandwidth()),
                     format_bandwidth(links[fastest].bandwidth()));
}

std::string header_text(const LabReport& report) {
  const Collective& collective = report.collective;
  std::string text = fmt::format("# {}  {}  {}  {}", report.original->name(), to_string(collective.kind),
                                 counted(collective.rank_count, "rank"), report.type);
  if (!collective.root.is_none()) text += "  root " + report.original->rank_name(collective.root);
  text += shares_text(collective) + "\n";
  text += fmt::format("# lab: rates x {} ({}); what is simulated is that network\n",
                      lab::format_scale(report.scaled->factor), fastest_link_text(report));
  if (!report.scaled->left_out.empty()) {
    text += fmt::format("# left out of both: {}\n", fmt::join(report.scaled->left_out, ", "));
  }
  if (report.calibration) {
    text += fmt::format(
        "# calibrated: links reach {:.1f} % of their rate and take {}, to {:.1f} % on the sizes it is from\n",
        100 * report.calibration->efficiency, format_duration(report.calibration->latency),
        100 * report.calibration->residual);
  }
  return text + "#\n";
}

std::string orders_text(const LabReport& report) {
  if (report.algorithms.size() < 2) return {};
  const std::vector<LabOrder> orders = orders_of(report);
  const auto agreeing = std::ranges::count_if(orders, &LabOrder::agrees);
  std::string text = fmt::format("# order of the algorithms: the same at {} of {} sizes\n", agreeing, orders.size());
  for (const LabOrder& order : orders) {
    if (order.agrees()) continue;
    text += fmt::format("#   {}: simulated {}; measured {}\n", format_size(order.size),
                        fmt::join(order.simulated, " < "), fmt::join(order.measured, " < "));
  }
  return text;
}

/// "packing over ring at 64 MiB: 2.24x simulated, 2.10x measured": what the best gains over the worst.
std::string gain_text(const LabReport& report) {
  if (report.algorithms.size() < 2 || report.sizes.empty()) return {};
  const std::size_t first = report.results.size() - report.algorithms.size();
  const auto last_row = report.results.begin() + static_cast<std::ptrdiff_t>(first);
  const auto [best, worst] =
      std::minmax_element(last_row, report.results.end(),
                          [](const LabResult& one, const LabResult& other) { return one.simulated < other.simulated; });
  return fmt::format("# {} over {} at {}: {:.2f}x simulated, {:.2f}x measured\n", best->algorithm, worst->algorithm,
                     format_size(best->size), worst->simulated / best->simulated,
                     worst->measured.time / best->measured.time);
}

std::string errors_text(const LabReport& report) {
  std::string text =
      fmt::format("# median error of the simulation{}: {:.1f} %",
                  report.calibration ? ", on other sizes than it is calibrated from" : "", 100 * median_error(report));
  for (std::size_t i = 0; i < report.algorithms.size() && report.algorithms.size() > 1; ++i) {
    text += fmt::format("{}{} {:.1f} %", i == 0 ? " (" : ", ", report.algorithms[i],
                        100 * median_error(report, report.algorithms[i]));
  }
  return text + (report.algorithms.size() > 1 ? ")\n" : "\n");
}

nlohmann::ordered_json figures_json(Bytes size, double seconds, const Collective& collective) {
  return {{"time", seconds},
          {"algbw", static_cast<double>(size.count) / seconds},
          {"busbw", busbw_of(size, seconds, collective)}};
}

}  // namespace

std::int64_t LabReport::wrong() const {
  std::int64_t sum = 0;
  for (const LabResult& result : results) sum += result.measured.wrong.value_or(0);
  return sum;
}

std::vector<LabOrder> orders_of(const LabReport& report) {
  std::vector<LabOrder> orders;
  const std::size_t columns = report.algorithms.size();
  for (std::size_t first = 0; first < report.results.size(); first += columns) {
    std::vector<const LabResult*> row;
    for (std::size_t i = first; i < first + columns; ++i) row.push_back(&report.results[i]);
    const auto names = [&](const auto& time) {
      std::ranges::stable_sort(row, {}, time);
      std::vector<std::string> sorted;
      for (const LabResult* result : row) sorted.push_back(result->algorithm);
      return sorted;
    };
    LabOrder order{row.front()->size, {}, {}};
    order.simulated = names([](const LabResult* result) { return result->simulated; });
    order.measured = names([](const LabResult* result) { return result->measured.time; });
    orders.push_back(std::move(order));
  }
  return orders;
}

double median_error(const LabReport& report, const std::string& algorithm) {
  std::vector<double> errors;
  for (const LabResult& result : report.results) {
    const bool asked = algorithm.empty() || result.algorithm == algorithm;
    if (asked && !is_calibration_size(report, result.size)) errors.push_back(std::abs(result.error()));
  }
  if (errors.empty()) return 0;
  std::ranges::sort(errors);
  const std::size_t middle = errors.size() / 2;
  return errors.size() % 2 == 1 ? errors[middle] : (errors[middle - 1] + errors[middle]) / 2;
}

Table lab_table(const LabReport& report) {
  Table table;
  table.add_column("size", "(B)");
  table.add_column("count", "(elements)");
  table.add_column("algorithm", "", Table::Align::left);
  table.add_column("simulated", "(us)");
  table.add_column("measured", "(us)");
  table.add_column("error", "(%)");
  table.add_column("busbw", "sim (GB/s)");
  table.add_column("busbw", "real (GB/s)");
  table.add_column("#wrong");
  for (const LabResult& result : report.results) {
    table.add_row({std::to_string(result.size.count), std::to_string(result.size.count / report.element_size),
                   result.algorithm, whole_microseconds(result.simulated), whole_microseconds(result.measured.time),
                   fmt::format("{:+.1f}", 100 * result.error()),
                   gigabytes(busbw_of(result.size, result.simulated, report.collective)),
                   gigabytes(busbw_of(result.size, result.measured.time, report.collective)),
                   result.measured.wrong ? std::to_string(*result.measured.wrong) : "N/A"});
  }
  return table;
}

std::string lab_text(const LabReport& report) {
  std::string text = header_text(report) + lab_table(report).text() + "#\n" + orders_text(report) + gain_text(report) +
                     errors_text(report);
  for (const planners::Refusal& refusal : report.refused) {
    text += fmt::format("# no {}: {}\n", refusal.planner, refusal.error.message);
  }
  return text;
}

nlohmann::ordered_json lab_json(const LabReport& report) {
  nlohmann::ordered_json document;
  document["schema"] = "espalier/lab/1";
  document["topology"] = report.original->name();
  document["collective"] = to_string(report.collective.kind);
  document["ranks"] = report.collective.rank_count;
  if (!report.collective.root.is_none()) document["root"] = report.original->rank_name(report.collective.root);
  add_shares(document, report.collective);
  document["scale"] = to_string(report.scaled->factor);
  document["left_out"] = report.scaled->left_out;
  document["links"] = nlohmann::ordered_json::array();
  for (std::size_t link = 0; link < report.scaled->topology.link_count(); ++link) {
    document["links"].push_back({{"link", report.scaled->topology.link_name(LinkId(link))},
                                 {"bandwidth", report.scaled->topology.link(LinkId(link)).bandwidth().bytes_per_second},
                                 {"latency", report.scaled->topology.link(LinkId(link)).latency.seconds()}});
  }
  if (report.calibration) {
    nlohmann::ordered_json sizes = nlohmann::ordered_json::array();
    for (const Bytes size : report.calibration->sizes) sizes.push_back(size.count);
    document["calibration"] = {{"efficiency", report.calibration->efficiency},
                               {"latency", report.calibration->latency.seconds()},
                               {"residual", report.calibration->residual},
                               {"sizes", sizes}};
  }
  document["results"] = nlohmann::ordered_json::array();
  for (const LabResult& result : report.results) {
    document["results"].push_back({{"size", result.size.count},
                                   {"count", result.size.count / report.element_size},
                                   {"type", report.type},
                                   {"algorithm", result.algorithm},
                                   {"chunk", result.pacing.chunk.count},
                                   {"ahead", result.pacing.ahead},
                                   {"simulated", figures_json(result.size, result.simulated, report.collective)},
                                   {"measured", figures_json(result.size, result.measured.time, report.collective)},
                                   {"error", result.error()},
                                   {"wrong", nullptr}});
    if (result.measured.wrong) document["results"].back()["wrong"] = *result.measured.wrong;
  }
  document["orders"] = nlohmann::ordered_json::array();
  for (const LabOrder& order : orders_of(report)) {
    document["orders"].push_back({{"size", order.size.count},
                                  {"simulated", order.simulated},
                                  {"measured", order.measured},
                                  {"agrees", order.agrees()}});
  }
  document["median_error"] = median_error(report);
  document["refused"] = nlohmann::ordered_json::array();
  for (const planners::Refusal& refusal : report.refused) {
    document["refused"].push_back(
        {{"algorithm", refusal.planner}, {"reason", refusal.error.message}, {"help", refusal.error.help}});
  }
  return document;
}

}  // namespace espalier::cli
