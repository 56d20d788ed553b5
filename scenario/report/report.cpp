#include "scenario/report/report.h"

#include <algorithm>
#include <map>

namespace espalier::scenario {

std::vector<CallSummary> summarize_calls(const Job& job, const JobReport& report) {
  std::vector<CallSummary> summaries;
  std::map<std::pair<LabelId, CollectiveKind>, std::size_t> index;
  for (std::size_t i = 0; i < job.calls().size(); ++i) {
    const Call& call = job.calls()[i];
    const CallTime& time = report.calls[i];
    const CollectiveKind kind = call.is_eager ? CollectiveKind::send_recv : call.kind;
    const auto [at, is_new] = index.emplace(std::pair(call.label, kind), summaries.size());
    if (is_new) summaries.push_back({.label = job.label(call.label), .kind = kind});
    CallSummary& summary = summaries[at->second];
    ++summary.calls;
    summary.bytes = summary.bytes + call.size;
    summary.group_size = std::max(summary.group_size, static_cast<std::uint32_t>(job.ranks(call.group).size()));
    const double seconds = Picoseconds{time.duration()}.seconds();
    const double slowdown = time.alone > 0 ? seconds / Picoseconds{time.alone}.seconds() : 1;
    summary.mean_seconds += seconds;
    summary.mean_slowdown += slowdown;
    summary.exposed += Picoseconds{time.exposed}.seconds();
    if (slowdown <= summary.worst_slowdown) continue;
    summary.worst_slowdown = slowdown;
    summary.worst = CallId(i);
  }
  const double whole = report.elapsed.seconds() * static_cast<double>(summarize_ranks(job, report).ranks);
  for (CallSummary& summary : summaries) {
    summary.exposed = whole > 0 ? summary.exposed / whole : 0;
    summary.mean_seconds /= static_cast<double>(summary.calls);
    summary.mean_slowdown /= static_cast<double>(summary.calls);
  }
  return summaries;
}

RankSummary summarize_ranks(const Job& job, const JobReport& report) {
  std::vector<bool> works(report.ranks.size(), false);
  for (const Task& task : job.tasks()) works[task.rank.index()] = true;
  RankSummary summary;
  summary.ranks = static_cast<std::size_t>(std::ranges::count(works, true));
  if (summary.ranks == 0 || report.elapsed.count == 0) return summary;
  const double whole = static_cast<double>(report.elapsed.count) * static_cast<double>(summary.ranks);
  for (std::size_t i = 0; i < works.size(); ++i) {
    if (!works[i]) continue;
    summary.compute += static_cast<double>(report.ranks[i].compute) / whole;
    summary.exposed += static_cast<double>(report.ranks[i].exposed) / whole;
    summary.waiting += static_cast<double>(report.ranks[i].waiting) / whole;
    summary.idle += static_cast<double>(report.ranks[i].idle) / whole;
  }
  return summary;
}

std::vector<LinkBusy> busiest_links(const JobReport& report, std::size_t count) {
  std::vector<LinkBusy> links;
  if (report.elapsed.count == 0) return links;
  for (std::size_t i = 0; i < report.links.size(); ++i) {
    if (report.links[i].bytes == 0) continue;
    const double share = static_cast<double>(report.links[i].busy.count) / static_cast<double>(report.elapsed.count);
    links.push_back({LinkId(i), std::min(share, 1.0)});
  }
  std::ranges::stable_sort(links, std::greater<>(), &LinkBusy::share);
  links.resize(std::min(count, links.size()));
  return links;
}

}  // namespace espalier::scenario
