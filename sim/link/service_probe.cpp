#include "sim/link/service_probe.h"

#include <algorithm>

namespace espalier::sim {

void ServiceProbe::probe(std::span<const Probe> probes, std::size_t resources) {
  windows_.assign(probes.empty() ? 0 : resources, {});
  next_.assign(windows_.size(), 0);
  times_.clear();
  for (std::uint32_t i = 0; i < probes.size(); ++i) {
    windows_[probes[i].resource].push_back({probes[i].begin, probes[i].end, i});
  }
  for (std::vector<Window>& windows : windows_) {
    std::ranges::sort(windows, {}, [](const Window& window) { return std::pair(window.begin, window.probe); });
  }
}

void ServiceProbe::served(std::uint32_t resource, const Run& run, TransferId transfer, std::int64_t entry,
                          std::int64_t done) {
  const std::vector<Window>& windows = windows_[resource];
  std::size_t& next = next_[resource];
  while (next < windows.size() && windows[next].end <= entry) ++next;
  for (std::size_t i = next; i < windows.size() && windows[i].begin < done; ++i) {
    const std::int64_t time = std::min(done, windows[i].end) - std::max(entry, windows[i].begin);
    if (time <= 0) continue;
    const Schedule& schedule = run.compiled().schedule();
    const Transfer& served = schedule.transfers[transfer.index()];
    times_[{windows[i].probe, resource, run.id(), schedule.src(served), schedule.dst(served)}] += time;
  }
}

std::vector<Blame> ServiceProbe::take() const {
  std::vector<Blame> waited;
  waited.reserve(times_.size());
  for (const auto& [key, time] : times_) {
    const auto& [probe, resource, run, src, dst] = key;
    waited.push_back({probe, resource, run, src, dst, time});
  }
  return waited;
}

}  // namespace espalier::sim
