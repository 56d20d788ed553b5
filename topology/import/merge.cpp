#include "topology/import/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "topology/import/lines.h"

namespace espalier {
namespace {

void learn_node(DraftNode& to, const DraftNode& from) {
  if (to.bus.empty()) to.bus = from.bus;
  if (to.model.empty()) to.model = from.model;
  learn(to.port, from.port);
  learn(to.link_rate, from.link_rate);
  learn(to.links_up, from.links_up);
}

/// NVLinks that GPUs have by the description, against those that a tool saw up.
void compare_counts(Draft& machine) {
  std::vector<std::int64_t> counts(machine.nodes.size(), 0);
  for (const DraftLink& link : machine.links) {
    if (link.medium != Medium::nvlink) continue;
    counts[link.tail] += link.count;
    if (!link.one_way) counts[link.head] += link.count;
  }
  struct Difference {
    std::int64_t here = 0, up = 0;
    std::string source;
    auto operator<=>(const Difference&) const = default;
  };
  std::map<Difference, std::vector<std::string>> gpus;
  for (std::size_t i = 0; i < machine.nodes.size(); ++i) {
    const auto& up = machine.nodes[i].links_up;
    if (!up || up->value == counts[i]) continue;
    gpus[{counts[i], up->value, up->source}].push_back(machine.nodes[i].id);
  }
  for (const auto& [found, names] : gpus) {
    machine.warn(import_codes::contradiction, 0,
                 fmt::format("{} {} {} NVLinks here, and {} are up in {}", listed(names),
                             names.size() == 1 ? "has" : "each have", found.here, found.up, found.source),
                 "the files may be of different times; capture them again");
  }
}

void merge_into(Draft& machine, const Draft& other) {
  std::vector<std::optional<std::size_t>> same;
  for (const DraftNode& node : other.nodes) {
    same.push_back(machine.find(node));
    if (same.back()) learn_node(machine.nodes[*same.back()], node);
  }
  std::vector<Medium> known;
  for (const DraftLink& link : machine.links) known.push_back(link.medium);
  for (DraftLink link : other.links) {
    const bool is_known = std::ranges::find(known, link.medium) != known.end();
    if (is_known) {
      if (!same[link.tail] || !same[link.head]) continue;
      for (DraftLink& own : machine.links) {
        const bool joins = (own.tail == *same[link.tail] && own.head == *same[link.head]) ||
                           (own.tail == *same[link.head] && own.head == *same[link.tail]);
        if (!joins || own.medium != link.medium) continue;
        learn(own.bandwidth, link.bandwidth);
        learn(own.latency, link.latency);
      }
      continue;
    }
    for (const std::size_t end : {link.tail, link.head}) {
      if (!same[end]) same[end] = machine.add(other.nodes[end]);
    }
    link.tail = *same[link.tail];
    link.head = *same[link.head];
    machine.links.push_back(std::move(link));
  }
}

}  // namespace

Result<Draft> merge_drafts(std::vector<Draft> drafts) {
  const auto base =
      std::ranges::find_if(drafts, [](const Draft& draft) { return draft.scope != Draft::Scope::details; });
  if (base == drafts.end()) {
    return fail(ErrorCode::infeasible, drafts.front().file + " has values for a machine that no other file describes",
                "give what `nvidia-smi topo -m` prints, or a NCCL topology, beside it");
  }
  Draft machine = std::move(*base);
  for (Draft& draft : drafts) {
    if (&draft == &*base) continue;
    merge_into(machine, draft);
    for (Diagnostic& warning : draft.warnings) machine.warnings.push_back(std::move(warning));
  }
  compare_counts(machine);
  return machine;
}

}  // namespace espalier
