#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>

#include "planners/nccl/search/nccl_box.h"

namespace espalier::planners {
namespace {

constexpr float same_rate = 5000;  // GB/s, where nothing limits.
constexpr std::uint32_t max_channels = 64;

BoxWay farther(BoxWay a, BoxWay b) { return std::max(a, b); }

BoxWay way_of(BoxLink::Kind kind) {
  switch (kind) {
    case BoxLink::Kind::nvlink: return BoxWay::nvl;
    case BoxLink::Kind::c2c: return BoxWay::c2c;
    case BoxLink::Kind::pcie: return BoxWay::pix;
    case BoxLink::Kind::processors: return BoxWay::sys;
    case BoxLink::Kind::network: break;
  }
  return BoxWay::same;
}

/// Numbers that count up spread over a power of two of places as far as they can.
std::uint32_t spread(std::uint32_t number, std::uint32_t places) {
  std::uint32_t mirrored = 0;
  for (std::uint32_t bit = 1, mirror = places >> 1; bit < places; bit <<= 1, mirror >>= 1) {
    if (number & bit) mirrored |= mirror;
  }
  return mirrored;
}

BoxWay merged(BoxWay a, BoxWay b) {
  const bool by_chip = std::max(a, b) == BoxWay::phb && std::min(a, b) == BoxWay::c2c;
  return by_chip ? BoxWay::p2c : std::max(a, b);
}

/// The nodes to which a path is best: the fastest, then the nearest.
template <class PathOf>
std::vector<std::uint32_t> nearest(std::size_t count, const PathOf& path_of) {
  std::vector<std::uint32_t> found;
  BoxWay way = BoxWay::none;
  float rate = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const BoxPath& path = path_of(i);
    if (path.rate > rate || (path.rate == rate && path.way < way)) {
      rate = path.rate;
      way = path.way;
      found.clear();
    }
    if (path.rate == rate && path.way == way) found.push_back(i);
  }
  return found;
}

template <class PathOf>
std::pair<BoxWay, BoxWay> range_of(std::size_t from, std::size_t to, const PathOf& path_of) {
  BoxWay least = BoxWay::sys, most = BoxWay::same;
  for (std::size_t i = 0; i < from; ++i) {
    for (std::size_t j = 0; j < to; ++j) {
      const BoxPath* const path = path_of(i, j);
      if (path == nullptr) continue;
      least = std::min(least, path->way);
      most = std::max(most, path->way);
    }
  }
  return {least, most};
}

}  // namespace

std::string_view to_string(BoxWay way) {
  constexpr std::array<std::string_view, 12> names = {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB",
                                                      "P2C", "PXN", "PHB", "SYS", "NET", "DIS"};
  return names[static_cast<std::size_t>(way)];
}

/// From 2.30 on a nearer way is better, then a faster one, then a shorter one; before, the first that was found unless
/// another of as many hops is faster.
bool NcclBox::improves(const BoxPath& known, BoxWay way, float rate, int count) const {
  constexpr std::uint32_t nearest_first = 2030;
  if (era_.version < nearest_first) {
    return (known.rate == 0 || known.count() >= count) && known.rate < rate;
  }
  if (way != known.way) return way < known.way;
  return known.rate < rate || (known.rate == rate && known.count() > count);
}

/// Breadth first from the node that paths lead to.
void NcclBox::set_paths(std::uint32_t base) {
  std::vector<BoxPath>& paths = paths_[base];
  paths.assign(nodes_.size(), {});
  paths[base].rate = same_rate;
  paths[base].way = BoxWay::same;
  std::vector<std::uint32_t> level = {base}, next;
  while (!level.empty()) {
    next.clear();
    for (const std::uint32_t at : level) {
      const BoxNode& node = nodes_[at];
      const BoxPath path = paths[at];
      for (const std::uint32_t id : node.out) {
        const BoxLink& link = links_[id];
        const BoxNode& far = nodes_[link.to];
        const bool hands_on = at != base && node.kind == BoxNode::Kind::gpu;
        // Through a GPU only from one NVLink to another, and only once.
        if (hands_on && (link.kind != BoxLink::Kind::nvlink || far.kind != BoxNode::Kind::gpu || path.count() > 1)) {
          continue;
        }
        BoxWay way = way_of(link.kind);
        if (node.kind == BoxNode::Kind::pcie && far.kind == BoxNode::Kind::pcie) way = BoxWay::pxb;
        const bool at_processor = node.kind == BoxNode::Kind::processor || far.kind == BoxNode::Kind::processor;
        if (link.kind == BoxLink::Kind::pcie && at_processor) way = BoxWay::phb;
        if (hands_on && path.way == BoxWay::nvl && way == BoxWay::nvl) way = BoxWay::nvb;
        way = farther(path.way, way);
        const float rate = std::min(path.rate, link.rate);
        BoxPath& known = paths[link.to];
        if (!improves(known, way, rate, path.count() + 1)) continue;
        known.links = {link.back};
        known.links.insert(known.links.end(), path.links.begin(), path.links.end());
        known.rate = rate;
        known.way = way;
        if (std::ranges::find(next, link.to) == next.end()) next.push_back(link.to);
      }
    }
    std::swap(level, next);
  }
}

void NcclBox::divert(std::uint32_t through, std::uint32_t from, std::uint32_t to, bool through_gpu) {
  const BoxPath &first = paths_[through][from], &second = paths_[to][through];
  BoxPath path = first;
  path.links.insert(path.links.end(), second.links.begin(), second.links.end());
  path.way = through_gpu ? BoxWay::pxn : merged(first.way, second.way);
  path.rate = std::min(first.rate, second.rate);
  paths_[to][from] = std::move(path);
}

std::uint32_t NcclBox::local_processor(std::size_t gpu) const {
  const std::uint32_t node = gpus_[gpu].node;
  const auto found =
      nearest(processors_.size(), [&](std::size_t i) -> const BoxPath& { return paths_[processors_[i]][node]; });
  std::uint32_t best = processors_[found.empty() ? 0 : found.front()];
  for (const std::uint32_t i : found) {
    if (paths_[processors_[i]][node].count() < paths_[best][node].count()) best = processors_[i];
  }
  return best;
}

/// GPUs beyond PCIe switches reach each other through the memory of a processor; two GPUs under AMD's do not.
void NcclBox::divert_distant_gpus() {
  const bool is_pair_at_amd = maker_ == ProcessorMaker::amd && gpus_.size() <= 2;
  const BoxWay most = is_pair_at_amd ? BoxWay::sys : BoxWay::pxb;
  for (std::size_t g = 0; g < gpus_.size(); ++g) {
    for (std::size_t p = 0; p < gpus_.size(); ++p) {
      if (gpu_path(p, g).way <= most) continue;
      divert(local_processor(g), gpus_[p].node, gpus_[g].node, false);
    }
  }
}

std::vector<std::uint32_t> NcclBox::local_nets(std::size_t gpu) const {
  return nearest(nets_.size(), [&](std::size_t n) -> const BoxPath& { return to_net(gpu, n); });
}

std::vector<std::uint32_t> NcclBox::local_gpus(std::size_t net) const {
  return nearest(gpus_.size(), [&](std::size_t g) -> const BoxPath& { return from_net(net, g); });
}

std::optional<std::uint32_t> NcclBox::local_net(std::size_t gpu, std::uint32_t channel) const {
  const std::vector<std::uint32_t> near = local_nets(gpu);
  if (near.empty()) return std::nullopt;
  const auto count = static_cast<std::uint32_t>(near.size());
  const auto sharing = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(local_gpus(near.front()).size()));
  constexpr std::uint32_t counts_within = 2030;
  std::uint32_t net = gpus_[gpu].number;
  if (era_.version >= counts_within) net %= sharing;
  if (std::has_single_bit(count)) net = spread(net, count);
  net += channel % ((count + sharing - 1) / sharing);
  return near[net % count];
}

int NcclBox::find_local_gpu(std::size_t net) const {
  const std::vector<std::uint32_t> near = local_gpus(net);
  for (std::uint32_t channel = 0; channel < max_channels; ++channel) {
    for (const std::uint32_t gpu : near) {
      if (local_net(gpu, channel) == static_cast<std::uint32_t>(net)) return static_cast<int>(gpu);
    }
  }
  return -1;
}

/// Whether a GPU's memory is in reach of a NIC.
bool NcclBox::is_near_net(std::size_t gpu, std::size_t net) const { return to_net(gpu, net).way <= BoxWay::p2c; }

/// NICs that another GPU is nearer to are reached through it (PXN), where NVLink leads there.
void NcclBox::divert_nets() {
  for (std::size_t n = 0; n < nets_.size(); ++n) {
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
      const int local = find_local_gpu(n);
      if (local < 0 || static_cast<std::size_t>(local) == g) continue;
      const auto near = static_cast<std::size_t>(local);
      const bool is_joined = gpu_path(near, g).way <= BoxWay::nvl;
      const bool gains = to_net(near, n).rate > to_net(g, n).rate || to_net(g, n).way > BoxWay::pxn;
      if (!is_near_net(near, n) || !is_joined || !gains) continue;
      divert(gpus_[near].node, gpus_[g].node, nets_[n].node, true);
    }
  }
  for (std::size_t n = 0; n < nets_.size(); ++n) nets_[n].local_gpu = find_local_gpu(n);
}

void NcclBox::find_paths() {
  paths_.assign(nodes_.size(), {});
  for (const std::uint32_t processor : processors_) set_paths(processor);
  for (const Gpu& gpu : gpus_) set_paths(gpu.node);
  for (const Net& net : nets_) set_paths(net.node);
  if (switch_) set_paths(*switch_);
  divert_distant_gpus();
  divert_nets();
  find_limits();
}

void NcclBox::find_limits() {
  if (!is_inter_ && gpus_.size() == 1) {
    max_of_channel_ = max_of_gpu_ = same_rate;
    return;
  }
  for (std::size_t g = 0; g < gpus_.size(); ++g) {
    const std::size_t ends = is_inter_ ? nets_.size() : gpus_.size();
    for (std::size_t i = 0; i < ends; ++i) {
      const BoxPath& path = is_inter_ ? to_net(g, i) : gpu_path(g, i);
      if (path.count() > 0) max_of_channel_ = std::max(max_of_channel_, path.rate);
    }
    float fabric = 0, slot = 0;
    for (const std::uint32_t id : nodes_[gpus_[g].node].out) {
      if (links_[id].kind == BoxLink::Kind::nvlink) fabric += links_[id].rate;
      if (links_[id].kind == BoxLink::Kind::pcie) slot = links_[id].rate;
    }
    max_of_gpu_ = std::max({max_of_gpu_, fabric, slot});
  }
}

std::vector<std::uint32_t> NcclBox::choose_nets(BoxWay way, int gpu) const {
  std::vector<std::uint32_t> chosen;
  const auto add = [&](std::uint32_t net) {
    if (std::ranges::find(chosen, net) == chosen.end()) chosen.push_back(net);
  };
  const auto is_asked_for = [&](std::size_t g) { return gpu < 0 || static_cast<std::size_t>(gpu) == g; };
  for (std::size_t g = 0; g < gpus_.size(); ++g) {
    if (!is_asked_for(g)) continue;
    const std::optional<std::uint32_t> first = local_net(g, 0);
    for (std::uint32_t channel = 0; first && channel < max_channels; ++channel) {
      const std::uint32_t net = *local_net(g, channel);
      if (channel > 0 && net == *first) break;
      add(net);
    }
  }
  for (int t = 0; t <= static_cast<int>(way); ++t) {
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
      if (!is_asked_for(g)) continue;
      for (std::uint32_t n = 0; n < nets_.size() && n < max_channels; ++n) {
        if (to_net(g, n).way == static_cast<BoxWay>(t)) add(n);
      }
    }
  }
  return chosen;
}

std::pair<BoxWay, BoxWay> NcclBox::gpu_ways() const {
  return range_of(gpus_.size(), gpus_.size(),
                  [&](std::size_t i, std::size_t j) { return i == j ? nullptr : &gpu_path(i, j); });
}

std::pair<BoxWay, BoxWay> NcclBox::net_ways() const {
  return range_of(gpus_.size(), nets_.size(), [&](std::size_t i, std::size_t j) { return &to_net(i, j); });
}

bool NcclBox::is_split() const {
  std::vector<std::size_t> group(gpus_.size());
  for (std::size_t g = 0; g < gpus_.size(); ++g) group[g] = g;
  for (std::size_t g = 0; g < gpus_.size(); ++g) {
    for (std::size_t p = g + 1; p < gpus_.size(); ++p) {
      if (gpu_path(g, p).way == BoxWay::nvl) group[p] = group[g];
    }
  }
  std::size_t groups = 0;
  for (std::size_t g = 0; g < gpus_.size(); ++g) groups += std::ranges::count(group, g) > 1 ? 1U : 0U;
  return groups == 2;
}

float NcclBox::min_net_rate(std::size_t gpu) const {
  const std::optional<std::uint32_t> first = local_net(gpu, 0);
  if (!first) return 0;
  float least = to_net(gpu, *first).rate;
  for (std::uint32_t channel = 1; channel < max_channels; ++channel) {
    const std::uint32_t net = *local_net(gpu, channel);
    if (net == *first) break;
    least = std::min(least, to_net(gpu, net).rate);
  }
  return least;
}

float NcclBox::slot_rate(std::size_t gpu) const {
  for (const std::uint32_t id : nodes_[gpus_[gpu].node].out) {
    if (links_[id].kind == BoxLink::Kind::pcie) return std::min(links_[id].rate, links_[links_[id].back].rate);
  }
  return -1;
}

std::string NcclBox::signature() const {
  std::string text = fmt::format("{} {} {} {};", is_inter_, switch_adds_, static_cast<int>(maker_), era_.capability);
  for (const BoxNode& node : nodes_) text += fmt::format("{},", static_cast<int>(node.kind));
  for (const BoxLink& link : links_) {
    text += fmt::format("{}-{}-{}-{} ", link.from, link.to, static_cast<int>(link.kind), link.rate);
  }
  for (const Gpu& gpu : gpus_)
    text += fmt::format("g{}:{} ", gpu.number, gpu.rank.index() - gpus_.front().rank.index());
  for (const Net& net : nets_) {
    const auto same = std::ranges::find(nets_, net.card, &Net::card);
    text += fmt::format("n{}:{} ", net.rate, same - nets_.begin());
  }
  return text;
}

}  // namespace espalier::planners
