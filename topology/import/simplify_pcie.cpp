#include <algorithm>

#include "topology/import/finish.h"

namespace espalier {
namespace {

/// The links of each node, by place in the draft.
std::vector<std::vector<std::size_t>> links_by_node(const Draft& draft) {
  std::vector<std::vector<std::size_t>> links(draft.nodes.size());
  for (std::size_t i = 0; i < draft.links.size(); ++i) {
    links[draft.links[i].tail].push_back(i);
    links[draft.links[i].head].push_back(i);
  }
  return links;
}

std::size_t other_end(const DraftLink& link, std::size_t end) { return link.tail == end ? link.head : link.tail; }

/// The slower of two rates in a row; where one is not known, the other.
std::optional<Known<Bandwidth>> slower(const std::optional<Known<Bandwidth>>& a,
                                       const std::optional<Known<Bandwidth>>& b) {
  if (!a || !b) return a ? a : b;
  return a->value < b->value ? a : b;
}

}  // namespace

void simplify_pcie(Draft& draft) {
  auto links = links_by_node(draft);
  std::vector<bool> is_gone(draft.nodes.size(), false), is_cut(draft.links.size(), false);
  const auto cut = [&](std::size_t node, std::size_t link) { std::erase(links[node], link); };
  std::vector<std::size_t> waiting;
  for (std::size_t i = draft.nodes.size(); i-- > 0;) waiting.push_back(i);
  while (!waiting.empty()) {
    const std::size_t node = waiting.back();
    waiting.pop_back();
    if (is_gone[node] || draft.nodes[node].kind != NodeKind::pcie || links[node].size() > 2) continue;
    is_gone[node] = true;
    if (links[node].size() == 1) {
      const std::size_t link = links[node].front();
      const std::size_t other = other_end(draft.links[link], node);
      is_cut[link] = true;
      cut(other, link);
      waiting.push_back(other);
    } else if (links[node].size() == 2) {
      const std::size_t kept = links[node][0], dropped = links[node][1];
      const std::size_t near = other_end(draft.links[kept], node), far = other_end(draft.links[dropped], node);
      DraftLink& joined = draft.links[kept];
      joined.bandwidth = slower(joined.bandwidth, draft.links[dropped].bandwidth);
      joined.tail = near;
      joined.head = far;
      is_cut[dropped] = true;
      std::ranges::replace(links[far], dropped, kept);
    }
  }
  std::vector<std::size_t> place(draft.nodes.size());
  std::vector<DraftNode> nodes;
  for (std::size_t i = 0; i < draft.nodes.size(); ++i) {
    place[i] = nodes.size();
    if (!is_gone[i]) nodes.push_back(std::move(draft.nodes[i]));
  }
  std::vector<DraftLink> kept_links;
  for (std::size_t i = 0; i < draft.links.size(); ++i) {
    if (is_cut[i]) continue;
    DraftLink& link = kept_links.emplace_back(std::move(draft.links[i]));
    link.tail = place[link.tail];
    link.head = place[link.head];
  }
  draft.nodes = std::move(nodes);
  draft.links = std::move(kept_links);
}

}  // namespace espalier
