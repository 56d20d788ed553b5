#include "engine/rendezvous/pending_places.h"

#include <sys/resource.h>

#include <algorithm>

namespace espalier::engine::rendezvous {

PendingPlaces::BySource::const_iterator PendingPlaces::largest_source() const {
  return std::ranges::max_element(by_source_, [](const auto& one, const auto& other) {
    if (one.second.size() != other.second.size()) return one.second.size() < other.second.size();
    return *one.second.begin() > *other.second.begin();
  });
}

PendingPlaces::Admission PendingPlaces::admit(Id id, const std::string& source, Time now) {
  Admission admission{true, std::nullopt};
  if (all_.size() >= places_) {
    const auto own = by_source_.find(source);
    const std::size_t held = own == by_source_.end() ? 0 : own->second.size();
    const auto largest = largest_source();
    const Id oldest = *largest->second.begin();
    const bool is_unfair = largest->second.size() > held + 1;
    if (!is_unfair && now - all_.at(oldest).since < min_stay) return {};
    remove(oldest);
    admission.evicted = oldest;
  }
  by_source_[source].insert(id);
  all_.emplace(id, Place{source, now});
  return admission;
}

std::optional<PendingPlaces::Id> PendingPlaces::evict(Time now) {
  if (all_.empty()) return std::nullopt;
  const Id oldest = *largest_source()->second.begin();
  if (now - all_.at(oldest).since < min_stay) return std::nullopt;
  remove(oldest);
  return oldest;
}

void PendingPlaces::remove(Id id) {
  const auto at = all_.find(id);
  if (at == all_.end()) return;
  const auto source = by_source_.find(at->second.source);
  source->second.erase(id);
  if (source->second.empty()) by_source_.erase(source);
  all_.erase(at);
}

void PendingPlaces::clear() {
  all_.clear();
  by_source_.clear();
}

std::optional<PendingPlaces::Id> PendingPlaces::expired(Time now) const {
  if (all_.empty() || now < all_.begin()->second.since + longest_stay_) return std::nullopt;
  return all_.begin()->first;
}

std::optional<PendingPlaces::Time> PendingPlaces::next_deadline() const {
  if (all_.empty()) return std::nullopt;
  return all_.begin()->second.since + longest_stay_;
}

std::size_t pending_places_for(std::size_t due) {
  constexpr std::size_t fewest = 16;
  constexpr std::size_t spare = 256;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return due + spare;
  return std::min(due + spare, std::max<std::size_t>(fewest, limit.rlim_cur / 4));
}

}  // namespace espalier::engine::rendezvous
