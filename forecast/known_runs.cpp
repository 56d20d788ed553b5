#include "forecast/known_runs.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace espalier::forecast {

Result<sim::Report> KnownRuns::run(const Key& key, const SimulateUntil& simulate) {
  const auto report = find(key, no_deadline, simulate);
  if (!report) return tl::unexpected(report.error());
  ESPALIER_CHECK(*report != nullptr, "without a deadline nothing is late");
  return **report;
}

Result<std::optional<RunReport>> KnownRuns::run_until(const Key& key, Picoseconds deadline,
                                                      const SimulateUntil& simulate) {
  const auto report = find(key, deadline, simulate);
  if (!report) return tl::unexpected(report.error());
  if (*report == nullptr) return std::nullopt;
  return static_cast<const RunReport&>(**report);
}

Result<const sim::Report*> KnownRuns::find(const Key& key, Picoseconds deadline, const SimulateUntil& simulate) {
  {
    const std::scoped_lock lock(mutex_);
    if (const auto known = whole_.find(key); known != whole_.end()) return &known->second;
    if (const auto known = longer_.find(key); known != longer_.end() && known->second >= deadline) return nullptr;
  }
  auto report = simulate(deadline);
  if (!report) return tl::unexpected(report.error());
  const std::scoped_lock lock(mutex_);
  if (*report) return &whole_.try_emplace(key, **std::move(report)).first->second;
  Picoseconds& longer = longer_[key];
  longer = std::max(longer, deadline);
  return nullptr;
}

}  // namespace espalier::forecast
