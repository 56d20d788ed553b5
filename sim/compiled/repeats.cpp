#include "sim/compiled/repeats.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "schedule/layout.h"
#include "schedule/slice_moves.h"

namespace espalier::sim {
namespace {

/// Whether slices are alike and nothing but links takes time.
bool is_plain(const Schedule& schedule, const Topology& topology) {
  const auto adds_time = [](const Node& node) {
    return node.bandwidth.bytes_per_second != 0 || node.reduce_bandwidth.bytes_per_second != 0;
  };
  if (schedule.transfers.empty() || !schedule.relays.empty() || std::ranges::any_of(topology.nodes(), adds_time)) {
    return false;
  }
  const std::int64_t length = schedule.slices.front().length;
  if (!std::ranges::all_of(schedule.slices, [&](const Slice& slice) { return slice.length == length; })) return false;
  std::vector<SliceId> slice_of(schedule.channel_count());
  return std::ranges::all_of(schedule.transfers, [&](const Transfer& transfer) {
    SliceId& slice = slice_of[transfer.channel().index()];
    if (slice.is_none()) slice = transfer.first_slice;
    return transfer.slice_count == 1 && slice == transfer.first_slice;
  });
}

bool are_alike(const Link& one, const Link& other) {
  return one.bandwidth() == other.bandwidth() && one.latency == other.latency && one.overhead == other.overhead;
}

class RepeatFinder {
 public:
  RepeatFinder(const Schedule& schedule, const Topology& topology)
      : schedule_(schedule), topology_(topology), moves_(schedule) {}

  /// The part that happens so many times, if one does.
  std::optional<Repeats> find(std::uint32_t times) {
    ranks_on_ = schedule_.collective.rank_count / times;
    slices_on_ = schedule_.slices.size() / times;
    image_.assign(topology_.link_count(), LinkId());
    source_.assign(topology_.link_count(), LinkId());
    for (std::size_t slice = 0; slice < schedule_.slices.size(); ++slice) {
      if (!moves_on(moves_.of(slice), moves_.of((slice + slices_on_) % schedule_.slices.size()))) return std::nullopt;
    }
    if (!gather_links(times) || !keeps_order()) return std::nullopt;
    Repeats repeats{times, schedule_, {}};
    std::erase_if(repeats.part.transfers,
                  [&](const Transfer& transfer) { return transfer.first_slice.index() >= slices_on_; });
    for (std::size_t i = 0; i < topology_.node_count(); ++i) repeats.places.nodes.emplace_back(i);
    repeats.places.links = std::move(place_);
    return repeats;
  }

 private:
  [[nodiscard]] Rank one_part_on(Rank rank) const {
    return Rank((rank.index() + ranks_on_) % schedule_.collective.rank_count);
  }

  /// Whether what happens to one slice happens to another one part on; notes where links go.
  bool moves_on(std::span<const TransferId> ones, std::span<const TransferId> others) {
    return std::ranges::equal(ones, others, [&](TransferId a, TransferId b) {
      const Transfer& one = schedule_.transfers[a.index()];
      const Transfer& other = schedule_.transfers[b.index()];
      const Route from = schedule_.route(one.route);
      const Route to = schedule_.route(other.route);
      return one.action() == other.action() && to.src == one_part_on(from.src) && to.dst == one_part_on(from.dst) &&
             std::ranges::equal(from.links, to.links, [&](LinkId link, LinkId image) { return note(link, image); });
    });
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
    place_.assign(topology_.link_count(), LinkId());
    for (std::size_t i = 0; i < place_.size(); ++i) {
      if (!place_[i].is_none()) continue;
      place_[i] = LinkId(i);
      if (image_[i].is_none()) continue;
      std::uint32_t length = 1;
      for (LinkId at = image_[i]; at != LinkId(i); at = image_[at.index()], ++length) place_[at.index()] = LinkId(i);
      if (length != times) return false;
    }
    return true;
  }

  [[nodiscard]] bool keeps_order() const {
    std::vector<std::uint32_t> next_move(schedule_.slices.size(), 0);
    std::vector<TransferId> latest(topology_.link_count());
    return std::ranges::all_of(schedule_.transfers, [&](const Transfer& transfer) {
      const std::size_t slice = transfer.first_slice.index();
      const TransferId in_part = moves_.of(slice % slices_on_)[next_move[slice]++];
      return std::ranges::all_of(schedule_.route(transfer.route).links, [&](LinkId link) {
        const TransferId before = std::exchange(latest[link.index()], in_part);
        return before.is_none() || before < in_part;
      });
    });
  }

  const Schedule& schedule_;
  const Topology& topology_;
  SliceMoves moves_;
  std::size_t ranks_on_ = 0;
  std::size_t slices_on_ = 0;
  std::vector<LinkId> image_;   // by link: the one that it goes to, if any transfer passes it
  std::vector<LinkId> source_;  // by link: the one that goes to it
  std::vector<LinkId> place_;
};

}  // namespace

std::optional<Repeats> find_repeats(const Schedule& schedule, const Topology& topology) {
  const std::uint32_t ranks = schedule.collective.rank_count;
  if (!is_plain(schedule, topology)) return std::nullopt;
  RepeatFinder finder(schedule, topology);
  for (std::uint32_t times = ranks; times > 1; --times) {
    if (ranks % times != 0 || schedule.slices.size() % times != 0) continue;
    if (auto found = finder.find(times)) return found;
  }
  return std::nullopt;
}

bool are_slices_alike(const Schedule& schedule, Bytes size, std::int64_t element_size) {
  const auto layout = Layout::make(schedule, size, element_size);
  if (!layout) return false;
  const auto bytes = [&](std::size_t slice) { return layout->range(SliceId(slice), 1).length(); };
  for (std::size_t slice = 1; slice < schedule.slices.size(); ++slice) {
    if (bytes(slice) != bytes(0)) return false;
  }
  return true;
}

}  // namespace espalier::sim
