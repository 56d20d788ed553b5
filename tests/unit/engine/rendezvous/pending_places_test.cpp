// Who stays among connections that have not authenticated: places are few, and no source may take them from others.
#include "engine/rendezvous/pending_places.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "base/random.h"

namespace espalier::engine::rendezvous {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds longest{5000};
constexpr milliseconds least = PendingPlaces::min_stay;
const PendingPlaces::Time begin{};

TEST(PendingPlaces, HaveRoomForSoManyAndNoMore) {
  PendingPlaces places(3, longest);
  for (PendingPlaces::Id id = 0; id < 3; ++id) EXPECT_TRUE(places.admit(id, "a", begin).is_admitted);
  EXPECT_FALSE(places.admit(3, "a", begin).is_admitted);
  places.remove(1);
  EXPECT_TRUE(places.admit(4, "a", begin).is_admitted);
}

TEST(PendingPlaces, TheOldestGoesOnceItHadItsTime) {
  PendingPlaces places(2, longest);
  places.admit(0, "a", begin);
  places.admit(1, "a", begin + milliseconds(1));
  EXPECT_FALSE(places.admit(2, "a", begin + least - milliseconds(1)).is_admitted);
  const auto admission = places.admit(3, "a", begin + least);
  EXPECT_TRUE(admission.is_admitted);
  EXPECT_EQ(admission.evicted, 0U);
}

TEST(PendingPlaces, AFloodFromOneSourceCostsThatSourceOnly) {
  PendingPlaces places(4, longest);
  places.admit(0, "rank", begin);
  for (PendingPlaces::Id id = 1; id < 100; ++id) places.admit(id, "flood", begin + milliseconds(id));
  // A second rank from a third address comes in at once, for a connection of the flood; the first rank stays.
  const auto admission = places.admit(100, "other", begin + milliseconds(100));
  EXPECT_TRUE(admission.is_admitted);
  EXPECT_EQ(admission.evicted, 1U);
  for (PendingPlaces::Id id = 101; id < 5000; ++id) {
    const auto next = places.admit(id, "flood", begin + milliseconds(id));
    if (next.evicted) {
      EXPECT_NE(*next.evicted, 0U);
      EXPECT_NE(*next.evicted, 100U);
    }
  }
}

TEST(PendingPlaces, EndAfterTheLongestStay) {
  PendingPlaces places(4, longest);
  EXPECT_FALSE(places.next_deadline().has_value());
  places.admit(0, "a", begin);
  places.admit(1, "a", begin + milliseconds(7));
  EXPECT_EQ(places.next_deadline(), begin + longest);
  EXPECT_FALSE(places.expired(begin + longest - milliseconds(1)).has_value());
  EXPECT_EQ(places.expired(begin + longest), 0U);
  places.remove(0);
  EXPECT_EQ(places.next_deadline(), begin + longest + milliseconds(7));
}

TEST(PendingPlaces, NobodyNewIsEvictedForWantOfDescriptors) {
  PendingPlaces places(4, longest);
  EXPECT_FALSE(places.evict(begin).has_value());
  places.admit(0, "a", begin);
  places.admit(1, "b", begin + milliseconds(1));
  places.admit(2, "b", begin + milliseconds(2));
  EXPECT_FALSE(places.evict(begin + least).has_value());
  EXPECT_EQ(places.evict(begin + least + milliseconds(1)), 1U);  // The oldest of the source that holds the most.
}

/// Random comings and goings, against the promises of the class as they are written.
TEST(PendingPlaces, KeepTheirPromises) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    constexpr std::size_t room = 8;
    PendingPlaces places(room, longest);
    struct Entry {
      std::string source;
      PendingPlaces::Time since;
    };
    std::map<PendingPlaces::Id, Entry> present;
    const auto held = [&](const std::string& source) {
      return std::ranges::count_if(present, [&](const auto& entry) { return entry.second.source == source; });
    };
    PendingPlaces::Time now = begin;
    for (PendingPlaces::Id id = 0; id < 2000; ++id) {
      now += milliseconds(random.below(30));
      if (!present.empty() && random.below(4) == 0) {
        const auto gone = std::next(present.begin(), static_cast<std::ptrdiff_t>(random.below(present.size())));
        places.remove(gone->first);
        present.erase(gone);
      }
      const std::string source(1, static_cast<char>('a' + random.below(5)));
      const auto admission = places.admit(id, source, now);
      if (admission.evicted) {
        const Entry victim = present.at(*admission.evicted);
        // It had its time, or its source held more than the newcomer's does now.
        EXPECT_TRUE(now - victim.since >= least || held(victim.source) > held(source) + 1);
        EXPECT_EQ(present.size(), room);
        present.erase(*admission.evicted);
      }
      if (admission.is_admitted) {
        present.emplace(id, Entry{source, now});
      } else {
        EXPECT_EQ(present.size(), room);
      }
      EXPECT_LE(present.size(), room);
    }
  }
}

}  // namespace
}  // namespace espalier::engine::rendezvous
