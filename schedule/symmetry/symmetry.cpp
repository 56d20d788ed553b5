#include "schedule/rotation/rotation.h"

#include <algorithm>
#include <span>
#include <utility>

#include "schedule/slice_moves.h"

namespace espalier {
namespace {

/// Whether every transfer moves one slice, and every channel carries one.
bool has_lone_slices(const Schedule& schedule) {
  std::vector<SliceId> slice_of(schedule.channel_count());
  return std::ranges::all_of(schedule.transfers, [&](const Transfer& transfer) {
    SliceId& slice = slice_of[transfer.channel().index()];
    if (slice.is_none()) slice = transfer.first_slice;
    return transfer.slice_count == 1 && slice == transfer.first_slice;
  });
}

class RotationFinder {
 public:
  RotationFinder(const Schedule& schedule, const Topology& topology, MoveOrder order)
      : schedule_(schedule), topology_(topology), order_(order), moves_(schedule) {}

  /// Into so many parts, if there is one.
  std::optional<ScheduleRotation> find(std::uint32_t times) {
    ranks_on_ = schedule_.collective.rank_count / times;
    slices_on_ = schedule_.slices.size() / times;
    image_.assign(topology_.link_count(), LinkId());
    source_.assign(topology_.link_count(), LinkId());
    originals_.assign(schedule_.transfers.size(), TransferId());
    for (std::size_t slice = 0; slice < schedule_.slices.size(); ++slice) {
      if (!moves_on(slice, (slice + slices_on_) % schedule_.slices.size())) return std::nullopt;
    }
    if (!gather_links(times) || (order_ == MoveOrder::same && !keeps_order())) return std::nullopt;
    return ScheduleRotation{times, std::move(first_link_), std::move(originals_)};
  }

 private:
  [[nodiscard]] Rank one_part_on(Rank rank) const {
    return Rank((rank.index() + ranks_on_) % schedule_.collective.rank_count);
  }

  /// Whether what happens to one slice happens to another one part on; notes where links go and what is an image.
  bool moves_on(std::size_t slice, std::size_t next) {
    const std::span<const TransferId> ones = moves_.of(slice);
    const std::span<const TransferId> others = images_of(ones, moves_.of(next));
    if (ones.size() != others.size()) return false;
    for (std::size_t i = 0; i < ones.size(); ++i) {
      if (!is_image(schedule_.transfers[ones[i].index()], schedule_.transfers[others[i].index()])) return false;
      if (slice < slices_on_) originals_[ones[i].index()] = ones[i];
      if (next >= slices_on_) originals_[others[i].index()] = originals_[ones[i].index()];
    }
    return true;
  }

  /// Along trees a rank gets a slice from one other, and sends what it added up to one other.
  [[nodiscard]] static std::size_t place_of(Rank src, Rank dst, const Transfer& transfer) {
    return 2 * (transfer.reduces != 0 ? src : dst).index() + transfer.reduces;
  }

  /// The others in the order of the ones that they are images of; fewer where some are not.
  std::span<const TransferId> images_of(std::span<const TransferId> ones, std::span<const TransferId> others) {
    if (order_ == MoveOrder::same || ones.size() != others.size()) return others;
    by_place_.assign(2 * std::size_t{schedule_.collective.rank_count}, TransferId());
    for (const TransferId id : others) {
      const Transfer& other = schedule_.transfers[id.index()];
      TransferId& known = by_place_[place_of(schedule_.src(other), schedule_.dst(other), other)];
      if (!known.is_none()) return {};
      known = id;
    }
    images_.clear();
    for (const TransferId id : ones) {
      const Transfer& one = schedule_.transfers[id.index()];
      const Rank src = one_part_on(schedule_.src(one)), dst = one_part_on(schedule_.dst(one));
      const TransferId image = by_place_[place_of(src, dst, one)];
      if (image.is_none()) return {};
      images_.push_back(image);
    }
    return images_;
  }

  bool is_image(const Transfer& one, const Transfer& other) {
    const Route from = schedule_.route(one.route);
    const Route to = schedule_.route(other.route);
    return one.action() == other.action() && to.src == one_part_on(from.src) && to.dst == one_part_on(from.dst) &&
           std::ranges::equal(from.links, to.links, [&](LinkId link, LinkId image) { return note(link, image); });
  }

  /// Whether a link can go to this one.
  bool note(LinkId link, LinkId image) {
    LinkId& known = image_[link.index()];
    if (known == image) return true;
    LinkId& source = source_[image.index()];
    if (!known.is_none() || !source.is_none() || !are_alike(topology_.link(link), topology_.link(image))) return false;
    known = image;
    source = link;
    return true;
  }

  /// The first link of each round stands for the others. False where one comes back too early.
  bool gather_links(std::uint32_t times) {
    first_link_.assign(topology_.link_count(), LinkId());
    for (std::size_t i = 0; i < first_link_.size(); ++i) {
      if (!first_link_[i].is_none()) continue;
      first_link_[i] = LinkId(i);
      if (image_[i].is_none()) continue;
      std::uint32_t length = 1;
      for (LinkId at = image_[i]; at != LinkId(i); at = image_[at.index()], ++length) {
        if (at.is_none()) return false;
        first_link_[at.index()] = LinkId(i);
      }
      if (length != times) return false;
    }
    return true;
  }

  [[nodiscard]] bool keeps_order() const {
    std::vector<TransferId> latest(topology_.link_count());
    for (std::size_t i = 0; i < schedule_.transfers.size(); ++i) {
      for (const LinkId link : schedule_.route(schedule_.transfers[i].route).links) {
        const TransferId before = std::exchange(latest[link.index()], originals_[i]);
        if (!before.is_none() && before >= originals_[i]) return false;
      }
    }
    return true;
  }

  const Schedule& schedule_;
  const Topology& topology_;
  MoveOrder order_;
  SliceMoves moves_;
  std::size_t ranks_on_ = 0;
  std::size_t slices_on_ = 0;
  std::vector<LinkId> image_;   // by link: the one that it goes to, if any transfer passes it
  std::vector<LinkId> source_;  // by link: the one that goes to it
  std::vector<LinkId> first_link_;
  std::vector<TransferId> originals_;
  std::vector<TransferId> by_place_;  // of the slice at hand
  std::vector<TransferId> images_;
};

}  // namespace

bool are_alike(const Link& one, const Link& other) {
  return one.bandwidth() == other.bandwidth() && one.latency == other.latency && one.overhead == other.overhead;
}

std::optional<ScheduleRotation> find_rotation(const Schedule& schedule, const Topology& topology, MoveOrder order) {
  const std::uint32_t ranks = schedule.collective.rank_count;
  if (schedule.transfers.empty() || !schedule.relays.empty() || !has_lone_slices(schedule)) return std::nullopt;
  RotationFinder finder(schedule, topology, order);
  for (std::uint32_t times = ranks; times > 1; --times) {
    if (ranks % times != 0 || schedule.slices.size() % times != 0) continue;
    if (auto found = finder.find(times)) return found;
  }
  return std::nullopt;
}

void put_images_together(Schedule& schedule, const Topology& topology) {
  if (find_rotation(schedule, topology, MoveOrder::same)) return;
  const auto rotation = find_rotation(schedule, topology, MoveOrder::any);
  if (!rotation) return;
  const std::size_t slices_on = schedule.slices.size() / rotation->times;
  std::vector<std::uint32_t> place(schedule.transfers.size(), 0);  // of the part's transfers: among these
  std::uint32_t places = 0;
  for (std::size_t i = 0; i < schedule.transfers.size(); ++i) {
    if (rotation->originals[i] == TransferId(i)) place[i] = places++;
  }
  std::vector<Transfer> ordered(schedule.transfers.size());
  for (std::size_t i = 0; i < schedule.transfers.size(); ++i) {
    const Transfer& transfer = schedule.transfers[i];
    const std::size_t part = transfer.first_slice.index() / slices_on;
    ordered[std::size_t{place[rotation->originals[i].index()]} * rotation->times + part] = transfer;
  }
  schedule.transfers = std::move(ordered);
}

}  // namespace espalier
