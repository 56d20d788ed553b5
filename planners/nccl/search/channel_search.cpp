#include "planners/nccl/search/channel_search.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <vector>

namespace espalier::planners {
namespace {

/// Which GPU a channel goes to next.
enum class Order : std::uint8_t { best, as_numbered, as_before };

/// As std::round, which is a call of the C library and half of the search's time. Requires: below 2^31.
float rounded(float value) {
  constexpr float all_whole = 1 << 23;
  if (std::abs(value) >= all_whole) return value;
  const auto whole = static_cast<float>(static_cast<std::int32_t>(value));
  const float rest = value - whole;  // Exact.
  if (rest >= 0.5F) return whole + 1;
  return rest <= -0.5F ? whole - 1 : whole;
}

/// Where rates are taken from links, differences of floats are rounded.
float less(float rate, float taken) { return rounded((rate - taken) * 1000) / 1000; }

bool is_tree(GraphPattern pattern) { return pattern == GraphPattern::balanced_tree || pattern == GraphPattern::tree; }

/// How good the next GPUs are.
struct Score {
  std::uint32_t gpu = 0;
  int start = 0, hops = 0, rate = 0, net_hops = 0, slot_rate = 0, net_rate = 0;
};

bool is_better(const Score& a, const Score& b) {
  if (a.net_rate != b.net_rate) return a.net_rate > b.net_rate;
  if (a.slot_rate != b.slot_rate) return a.slot_rate > b.slot_rate;
  if (a.net_hops != b.net_hops) return a.net_hops < b.net_hops;
  if (a.rate != b.rate) return a.rate > b.rate;
  if (a.hops != b.hops) return a.hops < b.hops;
  return a.start < b.start;
}

/// One run of the search: all channels at one rate, within limits on how far ways may lead.
class ChannelSearch {
 public:
  ChannelSearch(NcclBox& box, Attempt& made, Attempt& best, int& steps)
      : box_(box), made_(made), best_(best), steps_(&steps), gpus_(box.gpus().size()), used_(gpus_, 0) {
    made_.order.assign(std::size_t{max_places} * gpus_, 0);
    made_.nets.assign(std::size_t{max_places} * 2, 0);
    for (const NcclBox::Net& net : box_.nets()) {
      std::vector<std::uint32_t>& same = same_card_.emplace_back();
      for (std::uint32_t i = 0; i < box_.nets().size(); ++i) {
        if (box_.nets()[i].card == net.card) same.push_back(i);
      }
    }
    nets_.resize((static_cast<std::size_t>(BoxWay::none) + 1) * (gpus_ + 1));
  }

  void run() { next_channel(); }

 private:
  static constexpr int max_places = 66;

  struct Turn {
    int to_net = -1;    ///< The step after which the channel has to reach a NIC.
    int to_first = -1;  ///< The step after which it has to be back at its first GPU.
    Order order = Order::best;
  };

  [[nodiscard]] Turn first_turn() const {
    Turn turn;
    const int last = static_cast<int>(gpus_) - 1;
    const bool is_ring = made_.pattern == GraphPattern::ring;
    if (box_.is_one_of_several()) {
      turn.to_net = is_ring ? last : 0;
    } else if (is_ring) {
      turn.to_first = last;
    }
    return turn;
  }

  [[nodiscard]] std::uint32_t& at(int channel, std::size_t step) {
    return made_.order[static_cast<std::size_t>(channel) * gpus_ + step];
  }

  /// Takes a rate from the links of a path, or gives it back where it is negative. Fails where one has not enough left.
  bool take_links(const BoxPath& path, std::uint32_t start, std::size_t count, float rate, std::size_t& taken) {
    float of_pcie = rate;
    const bool from_gpu = box_.node(start).kind == BoxNode::Kind::gpu;
    // Writes of GPUs through Intel's processors are cut into small packets.
    if (path.way == BoxWay::phb && from_gpu && box_.maker() == ProcessorMaker::intel) of_pcie = rate * 6 / 5;
    const bool counts_replies = box_.era().capability < 80 && !from_gpu;
    for (std::size_t i = 0; i < count; ++i) {
      BoxLink& link = box_.link(path.links[i]);
      const float forth = link.kind == BoxLink::Kind::pcie ? of_pcie : rate;
      const bool replies = counts_replies && box_.node(link.to).kind == BoxNode::Kind::gpu;
      const float back = replies ? forth / 8 : 0;
      BoxLink& reverse = box_.link(link.back);
      if (link.rate < forth || (back != 0 && reverse.rate < back)) {
        taken = i;
        return false;
      }
      link.rate = less(link.rate, forth);
      if (back != 0) reverse.rate = less(reverse.rate, back);
    }
    taken = count;
    return true;
  }

  /// Goes from one node to another `times` over, or takes that back where it is negative.
  bool go(std::uint32_t from, std::uint32_t to, float times) {
    const BoxPath& path = box_.path(from, to);
    const auto is_inside = [&](std::uint32_t node) {
      const BoxNode::Kind kind = box_.node(node).kind;
      return kind == BoxNode::Kind::gpu || kind == BoxNode::Kind::nvswitch;
    };
    const bool inside = is_inside(from) && is_inside(to);
    const BoxWay most = inside ? made_.way_inside : made_.way_outside;
    const float rate = (inside ? made_.inside : made_.outside) * times;
    if (path.way == BoxWay::none) return false;
    if (times == 1 && (path.way > most || (is_tree(made_.pattern) && box_.path(to, from).way > most))) return false;
    std::size_t taken = 0;
    if (!take_links(path, from, path.links.size(), rate, taken)) {
      take_links(path, from, taken, -rate, taken);
      return false;
    }
    made_.hops += static_cast<int>(times) * path.count();
    return true;
  }

  [[nodiscard]] std::uint32_t node_of(std::uint32_t gpu) const { return box_.gpus()[gpu].node; }
  [[nodiscard]] std::uint32_t node_of_net(std::uint32_t net) const { return box_.nets()[net].node; }

  void next_channel() {
    const Turn turn = first_turn();
    if (box_.is_one_of_several()) {
      begin_at_nets(turn);
      return;
    }
    if (made_.pattern == GraphPattern::nvls) {
      start_at(static_cast<std::uint32_t>(made_.channels), turn);
      return;
    }
    if (made_.channels == 0) {
      start_at(0, with(turn, Order::as_numbered));
    } else {
      start_at(at(made_.channels - 1, 0), with(turn, Order::as_before));
    }
    if (made_.same_channels != 0 && made_.channels > 0) return;
    for (std::uint32_t gpu = 0; gpu < gpus_; ++gpu) start_at(gpu, turn);
  }

  static Turn with(Turn turn, Order order) {
    turn.order = order;
    return turn;
  }

  void start_at(std::uint32_t gpu, const Turn& turn) {
    used_[gpu] ^= flag();
    visit(gpu, 0, turn);
    used_[gpu] ^= flag();
  }

  [[nodiscard]] std::uint64_t flag() const { return std::uint64_t{1} << made_.channels; }

  void try_gpu(std::uint32_t from, std::uint32_t gpu, std::size_t step, const Turn& turn) {
    if (!go(from, node_of(gpu), 1)) return;
    used_[gpu] ^= flag();
    visit(gpu, step, turn);
    used_[gpu] ^= flag();
    go(from, node_of(gpu), -1);
  }

  void finish_channel() {
    ++made_.channels;
    if (is_better_than_best()) {
      best_ = made_;
      if (made_.channels == made_.max_channels) *steps_ = no_steps_needed;
    }
    if (made_.channels < made_.max_channels) next_channel();
    --made_.channels;
  }

  [[nodiscard]] bool is_better_than_best() const {
    if (made_.channels < made_.min_channels) return false;
    const auto all = [](const Attempt& of, float rate) { return static_cast<float>(of.channels) * rate; };
    if (made_.pattern == GraphPattern::nvls) {
      const bool is_more = made_.channels > best_.channels && made_.channels <= static_cast<int>(gpus_);
      return is_more || all(made_, made_.outside) > all(best_, best_.outside);
    }
    if (all(made_, made_.inside) != all(best_, best_.inside))
      return all(made_, made_.inside) > all(best_, best_.inside);
    return made_.pattern == best_.pattern && made_.cross_nic == best_.cross_nic && made_.hops < best_.hops;
  }

  void visit(std::uint32_t gpu, std::size_t step, const Turn& turn) {
    if (*steps_ <= 0) return;
    --*steps_;
    if (step == gpus_) {
      finish_channel();
      return;
    }
    at(made_.channels, step) = gpu;
    if (static_cast<int>(step) == turn.to_net) {
      leave_by_net(gpu, step, turn);
    } else if (made_.pattern == GraphPattern::nvls) {
      pull_from_switch(gpu);
    } else if (step + 1 < gpus_) {
      const std::size_t begin = pending_.size();
      add_next_gpus(gpu, step, turn);
      const std::size_t end = pending_.size();
      for (std::size_t i = begin; i < end; ++i) try_gpu(node_of(gpu), pending_[i], step + 1, turn);
      pending_.resize(begin);
    } else if (static_cast<int>(step) == turn.to_first) {
      const std::uint32_t first = at(made_.channels, 0);
      if (!go(node_of(gpu), node_of(first), 1)) return;
      visit(first, step + 1, {turn.to_net, -1, turn.order});
      go(node_of(gpu), node_of(first), -1);
    } else {
      visit(gpu, gpus_, {-1, -1, turn.order});
    }
  }

  [[nodiscard]] bool may_go(std::uint32_t gpu, std::uint32_t next) const {
    return next != gpu && box_.gpu_path(gpu, next).count() != 0 && (used_[next] & flag()) == 0;
  }

  /// Where the channel may go from a GPU, the best first, behind what is pending already.
  void add_next_gpus(std::uint32_t gpu, std::size_t step, const Turn& turn) {
    if (turn.order == Order::as_numbered) return pending_.push_back(static_cast<std::uint32_t>(step) + 1);
    if (turn.order == Order::as_before) return pending_.push_back(at(made_.channels - 1, step + 1));
    if (box_.has_switch()) return add_neighbours(gpu);
    const int by_net = turn.to_net == -1 ? 0 : turn.to_net == static_cast<int>(step) + 1 ? 1 : -1;
    scores_.clear();
    for (std::uint32_t i = 1; i < gpus_; ++i) {
      const auto next = static_cast<std::uint32_t>((gpu + i) % gpus_);
      if (!may_go(gpu, next)) continue;
      const BoxPath& path = box_.gpu_path(gpu, next);
      Score score{next, static_cast<int>(i), path.count(), static_cast<int>(path.rate)};
      if (by_net != 0) {
        const BoxPath& of_net = box_.from_net(made_.nets[static_cast<std::size_t>(made_.channels) * 2], next);
        score.net_hops = of_net.count();
        score.slot_rate = static_cast<int>(box_.slot_rate(next));
        score.net_rate = static_cast<int>(of_net.rate);
      }
      // Few, and all different: each is put where it belongs.
      scores_.insert(std::ranges::upper_bound(scores_, score, is_better), score);
    }
    const bool are_alike = std::ranges::all_of(scores_, [&](const Score& score) {
      return score.rate == scores_.front().rate && score.hops == scores_.front().hops;
    });
    if (by_net == -1 && are_alike) std::ranges::reverse(scores_);
    for (const Score& score : scores_) pending_.push_back(score.gpu);
  }

  /// Through switches channels go to the next or the one before, by number.
  void add_neighbours(std::uint32_t gpu) {
    const auto before = static_cast<std::uint32_t>((gpu + gpus_ - 1) % gpus_);
    const auto behind = static_cast<std::uint32_t>((gpu + 1) % gpus_);
    const auto add = [&](std::uint32_t next) {
      if (may_go(gpu, next)) pending_.push_back(next);
    };
    if (made_.pattern == GraphPattern::ring) {
      if (before != behind) add(before);
      add(behind);
    } else if (made_.pattern == GraphPattern::balanced_tree) {
      add(behind);
      if (before != behind) add(before);
    } else {
      add(behind);
    }
  }

  void leave_by_net(std::uint32_t gpu, std::size_t step, const Turn& turn) {
    const std::uint32_t start = made_.nets[static_cast<std::size_t>(made_.channels) * 2];
    for (const std::uint32_t net : nets(made_.way_outside, static_cast<int>(gpu))) {
      if (!may_leave_by(net, start, step)) continue;
      Turn next = turn;
      next.to_net = -1;
      const float whole = made_.outside;
      const bool is_balanced = made_.pattern == GraphPattern::balanced_tree;
      if (is_balanced) {
        if (step == 0) next.to_net = 1;
        made_.outside /= 2;
      }
      const bool reaches = go(node_of(gpu), node_of_net(net), 1);
      made_.outside = whole;
      if (!reaches) continue;
      made_.nets[static_cast<std::size_t>(made_.channels) * 2 + 1] = net;
      visit(gpu, step, next);
      if (is_balanced) made_.outside /= 2;
      go(node_of(gpu), node_of_net(net), -1);
      made_.outside = whole;
    }
  }

  [[nodiscard]] bool may_leave_by(std::uint32_t net, std::uint32_t start, std::size_t step) const {
    const auto channel = static_cast<std::size_t>(made_.channels);
    const std::vector<NcclBox::Net>& all = box_.nets();
    if (made_.pattern == GraphPattern::tree && net != start) return false;
    if (made_.pattern == GraphPattern::ring && made_.cross_nic == 2) {
      if (made_.channels % 2 == 1 && net != made_.nets[(channel - 1) * 2]) return false;
    } else if (made_.cross_nic == 0 && net != start && all[net].card != all[start].card) {
      return false;
    }
    return made_.pattern != GraphPattern::balanced_tree || step == 0 || net == made_.nets[channel * 2 + 1];
  }

  const std::vector<std::uint32_t>& nets(BoxWay way, int gpu) {
    auto& known = nets_[static_cast<std::size_t>(way) * (gpus_ + 1) + static_cast<std::size_t>(gpu + 1)];
    if (!known) known = box_.choose_nets(way, gpu);
    return *known;
  }

  void begin_at_nets(const Turn& turn) {
    const auto rate = static_cast<float>(static_cast<int>(made_.outside));
    const std::vector<std::uint32_t>& all = nets(made_.way_outside, -1);
    const auto channel = static_cast<std::size_t>(made_.channels);
    bool has_head = false;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (made_.pattern == GraphPattern::nvls && has_head) break;
      const std::uint32_t net = all[(channel + i) % all.size()];
      if (box_.nets()[net].rate < rate) continue;
      const bool is_second = made_.pattern == GraphPattern::ring && made_.cross_nic == 2 && made_.channels % 2 == 1;
      if (is_second && net != made_.nets[(channel - 1) * 2 + 1]) continue;
      made_.nets[channel * 2] = net;
      take_from_card(net, rate);
      if (made_.pattern == GraphPattern::nvls) {
        has_head = try_head(net, all.size(), turn) || has_head;
      } else {
        begin_at(net, turn);
      }
      take_from_card(net, -rate);
    }
  }

  void take_from_card(std::uint32_t of, float rate) {
    for (const std::uint32_t net : same_card_[of]) box_.nets()[net].rate -= rate;
  }

  /// A GPU is the head of one channel at most.
  bool try_head(std::uint32_t net, std::size_t nets, const Turn& turn) {
    const int gpu = box_.nets()[net].local_gpu;
    if (static_cast<std::size_t>(made_.channels) >= nets || gpu < 0) return false;
    for (int channel = 0; channel < made_.channels; ++channel) {
      if (at(channel, 0) == static_cast<std::uint32_t>(gpu)) return false;
    }
    try_gpu(node_of_net(net), static_cast<std::uint32_t>(gpu), 0, turn);
    return true;
  }

  void begin_at(std::uint32_t net, const Turn& turn) {
    const std::uint32_t from = node_of_net(net);
    if (made_.channels > 0 && made_.same_channels != 0) {
      try_gpu(from, at(made_.channels - 1, 0), 0, with(turn, Order::as_before));
      return;
    }
    if (made_.channels == 0 && !box_.has_switch()) {
      // As they are numbered, in steps that do not count.
      int steps = 1 << 10;
      int* const counted = steps_;
      steps_ = &steps;
      try_gpu(from, 0, 0, with(turn, Order::as_numbered));
      steps_ = counted;
      if (steps == no_steps_needed) *steps_ = no_steps_needed;
    }
    const int local = box_.nets()[net].local_gpu;
    if (local >= 0) try_gpu(from, static_cast<std::uint32_t>(local), 0, turn);
    for (const std::uint32_t gpu : box_.local_gpus(net)) {
      if (static_cast<int>(gpu) != local) try_gpu(from, gpu, 0, turn);
    }
  }

  /// The switch sends every GPU a part, and the head its own beside; and takes as much from them.
  void pull_from_switch(std::uint32_t head) {
    const std::uint32_t hub = box_.switch_node();
    const auto times = [&](std::uint32_t gpu) { return gpu == head ? 2.F : 1.F; };
    std::uint32_t given = 0, taken = 0;
    while (given < gpus_ && go(hub, node_of(given), times(given))) ++given;
    if (given == gpus_) {
      while (taken < gpus_ && go(node_of(taken), hub, times(taken))) ++taken;
      if (taken == gpus_) visit(0, gpus_, {-1, -1, Order::best});
    }
    while (taken > 0) {
      --taken;
      go(node_of(taken), hub, -times(taken));
    }
    while (given > 0) {
      --given;
      go(hub, node_of(given), -times(given));
    }
  }

  NcclBox& box_;
  Attempt& made_;
  Attempt& best_;
  int* steps_;
  std::size_t gpus_;
  std::vector<std::uint64_t> used_;
  std::vector<std::vector<std::uint32_t>> same_card_;            // by NIC: those of its card
  std::vector<std::optional<std::vector<std::uint32_t>>> nets_;  // by way, then GPU
  std::vector<std::uint32_t> pending_;                           // GPUs to try, of all steps
  std::vector<Score> scores_;
};

}  // namespace

void search_channels(NcclBox& box, Attempt& made, Attempt& best, int& steps) {
  ChannelSearch(box, made, best, steps).run();
}

}  // namespace espalier::planners
