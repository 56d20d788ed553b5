#include "sim/link/service_watch.h"

#include <algorithm>

namespace espalier::sim {

void ServiceWatch::watch(std::span<const Watch> watches, std::size_t resources) {
  windows_.assign(watches.empty() ? 0 : resources, {});
  next_.assign(windows_.size(), 0);
  times_.clear();
  for (std::uint32_t i = 0; i < watches.size(); ++i) {
    windows_[watches[i].resource].push_back({watches[i].begin, watches[i].end, i});
  }
  for (std::vector<Window>& windows : windows_) {
    std::ranges::sort(windows, {}, [](const Window& window) { return std::pair(window.begin, window.watch); });
  }
}

void ServiceWatch::served(std::uint32_t resource, const Run& run, TransferId transfer, std::int64_t entry,
                          std::int64_t done) {
  const std::vector<Window>& windows = windows_[resource];
  std::size_t& next = next_[resource];
  while (next < windows.size() && windows[next].end <= entry) ++next;
  for (std::size_t i = next; i < windows.size() && windows[i].begin < done; ++i) {
    const std::int64_t time = std::min(done, windows[i].end) - std::max(entry, windows[i].begin);
    if (time <= 0) continue;
    const Schedule& schedule = run.program().schedule();
    const Transfer& served = schedule.transfers[transfer.index()];
    times_[{windows[i].watch, resource, run.id(), schedule.src(served), schedule.dst(served)}] += time;
  }
}

std::vector<Waited> ServiceWatch::take() const {
  std::vector<Waited> waited;
  waited.reserve(times_.size());
  for (const auto& [key, time] : times_) {
    const auto& [watch, resource, run, src, dst] = key;
    waited.push_back({watch, resource, run, src, dst, time});
  }
  return waited;
}

}  // namespace espalier::sim
