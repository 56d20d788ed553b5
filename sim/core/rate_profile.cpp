#include "sim/core/rate_profile.h"

#include <algorithm>
#include <map>

#include "sim/limits.h"

namespace espalier::sim {
RateProfile::RateProfile(std::vector<RateChange> changes) {
  std::ranges::stable_sort(changes, {}, &RateChange::at);
  pieces_.push_back({0, whole_ppm});
  for (const RateChange& change : changes) {
    if (pieces_.back().begin == change.at.count) {
      pieces_.back().rate_ppm = change.rate_ppm;
    } else {
      pieces_.push_back({change.at.count, change.rate_ppm});
    }
  }
}

std::size_t RateProfile::piece_at(std::int64_t time) const {
  const auto after = std::ranges::upper_bound(pieces_, time, {}, &Piece::begin);
  return static_cast<std::size_t>(after - pieces_.begin()) - 1;
}

std::int32_t RateProfile::rate_at(std::int64_t time) const { return pieces_[piece_at(time)].rate_ppm; }

std::int64_t RateProfile::finish(std::int64_t begin, std::int64_t busy) const {
  __int128 left = static_cast<__int128>(busy) * whole_ppm;
  __int128 at = begin;
  for (std::size_t i = piece_at(begin); left > 0; ++i) {
    const __int128 rate = pieces_[i].rate_ppm;
    const bool is_last = i + 1 == pieces_.size();
    const __int128 done = is_last ? left : std::min(left, (pieces_[i + 1].begin - at) * rate);
    if (rate == 0 && is_last) return never;
    if (done == left) {
      at += (left + rate - 1) / rate;
      break;
    }
    left -= done;
    at = pieces_[i + 1].begin;
  }
  return at > max_simulated_time ? never : static_cast<std::int64_t>(at);
}

RateProfiles::RateProfiles(std::span<const RateChange> changes, std::size_t link_count) {
  if (changes.empty()) return;
  std::map<LinkId, std::vector<RateChange>> by_link;
  for (const RateChange& change : changes) by_link[change.link].push_back(change);
  of_link.assign(link_count, none);
  for (auto& [link, of_one] : by_link) {
    profiles.emplace_back(std::move(of_one));
    of_link[link.index()] = static_cast<std::uint32_t>(profiles.size());
  }
}

}  // namespace espalier::sim
