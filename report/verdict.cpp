#include "report/verdict.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/bandwidth_chart.h"
#include "report/html_text.h"
#include "schedule/parts.h"

namespace espalier::report {
namespace {

constexpr std::size_t named_links = 4;

const FastestAt& best_of(const PlanReport& report) {
  return *std::ranges::max_element(report.fastest, {}, [&](const FastestAt& fastest) {
    return bus_bandwidth(report.collective, fastest.size, fastest.seconds);
  });
}

std::string best_sentence(const PlanReport& report, const FastestAt& best) {
  const double busbw = bus_bandwidth(report.collective, best.size, best.seconds) / 1e9;
  std::string text =
      fmt::format("{} on {} is predicted to reach a bus bandwidth of {:.2f} GB/s, with {} at {}",
                  to_string(report.collective.kind), report.topology->name(), busbw, best.name, size_text(best.size));
  if (report.bound.time_per_byte == 0) return text + ".";
  const double bound = to_double(report.collective.busbw_factor()) / to_double(report.bound.time_per_byte) / 1e9;
  return text + fmt::format(": {:.1f} % of the {:.2f} GB/s that no schedule can exceed.",
                            100 * part_of_bound(report.bound.time_per_byte, report.collective, best.size,
                                                report.element_size, best.seconds),
                            bound);
}

/// "Fastest: tree from 1 KiB to 16 KiB, ring at 1 MiB."
std::string fastest_sentence(const std::vector<FastestAt>& fastest) {
  std::string text = "Fastest: ";
  for (std::size_t first = 0; first < fastest.size();) {
    std::size_t last = first;
    while (last + 1 < fastest.size() && fastest[last + 1].name == fastest[first].name) ++last;
    text += fmt::format("{}{} {} {}", first == 0 ? "" : ", ", fastest[first].name, last > first ? "from" : "at",
                        size_text(fastest[first].size));
    if (last > first) text += " to " + size_text(fastest[last].size);
    first = last + 1;
  }
  return text + ".";
}

/// What the run that the verdict speaks of is limited by.
std::string limits_sentence(const FastestAt& best) {
  std::string text = fmt::format("Busiest links of {} at {}: ", best.name, size_text(best.size));
  for (std::size_t i = 0; i < std::min(best.busiest.size(), named_links); ++i) {
    text += fmt::format("{}{} {:.0f} %", i == 0 ? "" : ", ", best.busiest[i].name, 100 * best.busiest[i].share);
  }
  return text + ".";
}

}  // namespace

std::vector<std::string> verdict_of(const PlanReport& report) {
  std::vector<std::string> sentences;
  if (!report.fastest.empty()) {
    sentences.push_back(best_sentence(report, best_of(report)));
    if (best_of(report).name.find("nvls") != std::string::npos) sentences.emplace_back(nvls_note);
    if (report.predicted.size() > 1) sentences.push_back(fastest_sentence(report.fastest));
  }
  if (!report.cut.empty()) {
    sentences.push_back(fmt::format("The bound is proven by the cut {}: {}.", report.cut, report.bound.what));
  } else if (!report.bound.what.empty()) {
    sentences.push_back(fmt::format("The bound: {}.", report.bound.what));
  }
  if (!report.fastest.empty() && !best_of(report).busiest.empty())
    sentences.push_back(limits_sentence(best_of(report)));
  sentences.insert(sentences.end(), report.doubts.begin(), report.doubts.end());
  if (report.measured) {
    sentences.insert(sentences.end(), report.measured->findings.begin(), report.measured->findings.end());
  }
  return sentences;
}

}  // namespace espalier::report
