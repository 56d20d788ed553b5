#include "sim/known_runs.h"

#include <algorithm>
#include <utility>

namespace espalier::sim {

Result<const Report*> KnownRuns::run(const Key& key, Picoseconds deadline,
                                     const std::function<Result<Report>()>& simulate) {
  {
    const std::scoped_lock lock(mutex_);
    if (const auto known = whole_.find(key); known != whole_.end()) return &known->second;
    if (const auto known = longer_.find(key); known != longer_.end() && known->second >= deadline) return nullptr;
  }
  auto report = simulate();
  if (!report) return tl::unexpected(report.error());
  const std::scoped_lock lock(mutex_);
  if (report->is_whole) return &whole_.try_emplace(key, std::move(*report)).first->second;
  Picoseconds& longer = longer_[key];
  longer = std::max(longer, report->elapsed);
  return nullptr;
}

}  // namespace espalier::sim
