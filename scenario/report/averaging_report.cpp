#include "scenario/report/averaging_report.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace espalier::scenario {

std::vector<AveragingSummary> summarize_averaging(const Job& job, const JobReport& report,
                                                  std::span<const AveragedUse> uses) {
  std::vector<AveragingSummary> summaries;
  for (const AveragedUse& use : uses) {
    if (use.vectors.empty()) continue;
    AveragingSummary summary{.label = job.label(use.vectors.front().label), .averaging = use.averaging};
    summary.times = use.vectors.size();
    summary.spectral_gap = 1;
    __int128 together = 0;
    for (const AveragedVector& vector : use.vectors) {
      std::int64_t start = std::numeric_limits<std::int64_t>::max(), end = 0;
      for (std::size_t task = vector.first; task < vector.end; ++task) {
        start = std::min(start, report.tasks[task].start);
        end = std::max(end, report.tasks[task].end);
      }
      together += end - start;
      summary.ranks = std::max(summary.ranks, job.ranks(vector.group).size());
      summary.rounds = std::max(summary.rounds, vector.rounds);
      summary.spectral_gap = std::min(summary.spectral_gap, vector.spectral_gap);
      summary.left = std::max(summary.left, std::pow(1 - vector.spectral_gap, static_cast<double>(vector.rounds)));
    }
    summary.mean = {static_cast<std::int64_t>(together / static_cast<std::int64_t>(summary.times))};
    summaries.push_back(std::move(summary));
  }
  return summaries;
}

std::int64_t max_bytes_sent(const JobReport& report, const Topology& topology) {
  std::vector<std::int64_t> sent(topology.rank_count(), 0);
  for (std::size_t i = 0; i < report.links.size(); ++i) {
    const Rank rank = topology.rank_of(topology.link(LinkId(i)).tail);
    if (!rank.is_none()) sent[rank.index()] += report.links[i].bytes;
  }
  return *std::ranges::max_element(sent);
}

}  // namespace espalier::scenario
