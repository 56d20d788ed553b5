#include "planners/nccl/search/nccl_search.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include "planners/nccl/search/channel_search.h"
#include "planners/nccl/search/nccl_speeds.h"

namespace espalier::planners {
namespace {

constexpr int max_heads = 32;

/// All runs for one pattern: from the highest rate downwards, ways farther and farther, until channels are found; then
/// upwards again with as many channels.
class GraphSearch {
 public:
  GraphSearch(NcclBox& box, GraphPattern pattern, int least, int most)
      : box_(box), speeds_(nccl_speeds(box.era(), box.is_one_of_several())) {
    best_.pattern = pattern;
    best_.min_channels = least;
    best_.max_channels = most;
  }

  NcclGraph run() {
    if (best_.pattern == GraphPattern::nvls && !begin_nvls()) return {};
    begin();
    search_down();
    search_up();
    if (best_.channels == 0 && best_.pattern != GraphPattern::nvls) give_up();
    best_.order.resize(static_cast<std::size_t>(best_.channels) * gpus());
    best_.nets.resize(box_.is_one_of_several() ? static_cast<std::size_t>(best_.channels) * 2 : 0);
    return best_;
  }

 private:
  [[nodiscard]] std::size_t gpus() const { return box_.gpus().size(); }
  [[nodiscard]] int capability() const { return box_.era().capability; }

  bool begin_nvls() {
    if (!box_.has_switch() || capability() < 90) return false;
    best_.max_channels = std::min(max_heads, static_cast<int>(gpus()));
    if (!box_.is_one_of_several()) best_.min_channels = best_.max_channels;
    return true;
  }

  void begin() {
    const bool is_ring = best_.pattern == GraphPattern::ring;
    if (gpus() == 1 && !is_ring) {
      crosses_ = box_.nets().size() > 1 && best_.pattern == GraphPattern::balanced_tree ? 2 : 0;
      best_.pattern = GraphPattern::tree;
    } else {
      const bool may_cross = is_ring || best_.pattern == GraphPattern::balanced_tree;
      crosses_ = box_.nets().size() > 1 && may_cross ? 2 : 0;
    }
    if (gpus() > 1) std::tie(min_inside_, max_inside_) = box_.gpu_ways();
    if (box_.is_one_of_several()) {
      std::tie(min_outside_, max_outside_) = box_.net_ways();
      max_inside_ = max_outside_;
    }
    constexpr std::uint32_t far_trees = 2029;  // Trees of older GPUs that come back through processors.
    if (box_.era().version >= far_trees && capability() < 90) max_outside_ = BoxWay::sys;
    best_.way_inside = min_inside_;
    best_.way_outside = min_outside_;
    tries_same_ = best_.pattern == GraphPattern::nvls ? 0 : 1;
    best_.same_channels = tries_same_;
    if (is_ring && box_.is_split() && best_.max_channels >= 2 && best_.min_channels == 1) best_.min_channels = 2;
    made_ = best_;
    float most = box_.max_of_gpu();
    if (gpus() > 1 && !is_ring) most *= static_cast<float>(gpus()) / static_cast<float>(gpus() - 1);
    while (speed_ + 1 < speeds_.size() && (speeds_[speed_] > box_.max_of_channel() ||
                                           speeds_[speed_] * static_cast<float>(best_.min_channels) > most)) {
      ++speed_;
    }
    made_.inside = made_.outside = speeds_[speed_];
  }

  /// Steps that are left; `no_steps_needed` where nothing better can be.
  int search_once() {
    constexpr int of_same = 1 << 8, of_any = 1 << 14;
    int steps = made_.same_channels != 0 ? of_same : of_any;
    budget_ -= steps;
    made_.channels = 0;
    search_channels(box_, made_, best_, steps);
    return steps;
  }

  [[nodiscard]] bool is_enough(int steps) const {
    return steps == no_steps_needed || static_cast<float>(best_.channels) * best_.outside >= box_.max_of_gpu();
  }

  void search_down() {
    for (;;) {
      const int steps = search_once();
      if (is_enough(steps) || !try_other(steps)) return;
    }
  }

  /// What is tried next, in this order; false: nothing more.
  bool try_other(int steps) {
    const bool is_dear = box_.maker() == ProcessorMaker::amd && made_.way_inside == BoxWay::sys;
    if (made_.same_channels == 1 && !is_dear) {
      made_.same_channels = 0;
      return true;
    }
    made_.same_channels = tries_same_;
    budget_ += steps;
    if (budget_ < 0 && best_.channels > 0) return false;
    if (capability() >= 90 && made_.pattern == GraphPattern::balanced_tree) {
      made_.pattern = GraphPattern::tree;
      return true;
    }
    made_.pattern = best_.pattern;
    if (try_farther()) return true;
    if (crosses_ == 2 && made_.cross_nic == 0 &&
        (best_.pattern == GraphPattern::ring || best_.pattern == GraphPattern::balanced_tree)) {
      made_.cross_nic = 2;
      return true;
    }
    made_.cross_nic = 0;
    constexpr float min_part = .49F;
    if (speed_ + 1 < speeds_.size() && (best_.channels == 0 || speeds_[speed_ + 1] / best_.outside > min_part)) {
      made_.inside = made_.outside = speeds_[++speed_];
      return true;
    }
    return false;
  }

  static void step(BoxWay& way) { way = static_cast<BoxWay>(static_cast<int>(way) + 1); }

  bool try_farther() {
    const BoxWay max_inside = box_.is_one_of_several() ? made_.way_outside : max_inside_;
    if (made_.way_inside < max_inside && (best_.channels == 0 || made_.way_inside < best_.way_inside)) {
      step(made_.way_inside);
      if (made_.way_inside < BoxWay::none) return true;
    }
    made_.way_inside = min_inside_;
    if (box_.is_one_of_several() && made_.way_outside < max_outside_ &&
        (best_.channels == 0 || made_.way_outside < best_.way_outside || made_.way_outside < BoxWay::pxn)) {
      step(made_.way_outside);
      if (made_.way_outside < BoxWay::none) return true;
    }
    made_.way_outside = min_outside_;
    return false;
  }

  /// Few fast channels become twice as many of half the rate.
  void double_channels() {
    constexpr float fast = 25, fastest = 50;
    constexpr int few = 4;
    if (best_.channels == 0 || best_.pattern == GraphPattern::nvls || best_.inside < fast) return;
    if (capability() > 80 && best_.inside < fastest && best_.channels > few) return;
    const int channels = std::min(best_.channels * 2, best_.max_channels);
    const auto repeat = [&](std::vector<std::uint32_t>& of, std::size_t each) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(channels - best_.channels) * each; ++i) {
        of[static_cast<std::size_t>(best_.channels) * each + i] = of[i];
      }
    };
    repeat(best_.order, gpus());
    repeat(best_.nets, 2);
    const auto parts = static_cast<float>((channels + best_.channels - 1) / best_.channels);
    best_.inside /= parts;
    best_.outside /= parts;
    best_.channels = channels;
  }

  void search_up() {
    double_channels();
    made_ = best_;
    speed_ = 0;
    while (speed_ + 1 < speeds_.size() && speeds_[speed_] > best_.outside) ++speed_;
    made_.inside = made_.outside = speeds_[speed_];
    made_.min_channels = best_.channels;
    int steps = no_steps_needed;
    while (steps != 0 && speed_ > 0) {
      if (best_.pattern == GraphPattern::ring) {
        made_.inside = made_.outside = speeds_[--speed_];
      } else if (best_.pattern == GraphPattern::nvls && made_.outside == best_.outside &&
                 made_.outside < made_.inside * 2) {
        made_.min_channels = made_.max_channels = best_.channels;
        made_.outside = speeds_[--speed_];
      } else if (made_.inside == best_.inside && made_.inside < made_.outside * 2) {
        made_.inside = speeds_[--speed_];
      } else {
        return;
      }
      steps = search_once();
    }
  }

  /// One channel in the order of numbers.
  void give_up() {
    best_.order.assign(gpus(), 0);
    for (std::uint32_t i = 0; i < gpus(); ++i) best_.order[i] = i;
    constexpr float hardly = .1F;
    best_.inside = hardly;
    best_.way_inside = BoxWay::sys;
    const bool has_nets = !box_.nets().empty();
    constexpr std::uint32_t knows_nets = 2030;
    const bool is_joined = has_nets || box_.era().version < knows_nets;
    best_.outside = is_joined ? hardly : 0;
    best_.way_outside = is_joined ? BoxWay::sys : BoxWay::none;
    best_.nets.assign(2, 0);
    if (has_nets) {
      best_.nets[0] = box_.choose_nets(BoxWay::same, 0).front();
      best_.nets[1] = box_.choose_nets(BoxWay::same, static_cast<int>(gpus()) - 1).front();
    }
    best_.channels = 1;
  }

  NcclBox& box_;
  std::span<const float> speeds_;
  Attempt best_, made_;
  int crosses_ = 0;
  int tries_same_ = 1;
  BoxWay min_inside_ = BoxWay::same, max_inside_ = BoxWay::sys;
  BoxWay min_outside_ = BoxWay::pix, max_outside_ = BoxWay::sys;
  std::size_t speed_ = 0;
  std::int64_t budget_ = std::int64_t{1} << 19;
};

}  // namespace

std::string_view to_string(GraphPattern pattern) {
  switch (pattern) {
    case GraphPattern::balanced_tree: return "balanced_tree";
    case GraphPattern::tree: return "tree";
    case GraphPattern::ring: return "ring";
    case GraphPattern::nvls: return "nvls";
    case GraphPattern::none: break;
  }
  return "none";
}

BoxGraphs search_box(NcclBox box) {
  BoxGraphs found;
  found.ring = GraphSearch(box, GraphPattern::ring, 1, max_ring_channels).run();
  const int channels = found.ring.channels;
  found.tree = GraphSearch(box, GraphPattern::balanced_tree, channels, channels).run();
  if (box.switch_adds() && box.gpus().size() > 1) found.nvls = GraphSearch(box, GraphPattern::nvls, 1, 64).run();
  return found;
}

}  // namespace espalier::planners
