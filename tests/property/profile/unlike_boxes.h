#pragma once

#include <fmt/format.h>

#include <array>
#include <string>

#include "tests/property/profile/machines.h"
#include "tests/support/read_good.h"

namespace espalier::profile::test {

/// A cluster as it grows over years: two or three kinds of boxes, which differ in their GPUs, NICs and rates, on one
/// switch or two. Eight to 24 ranks.
inline std::string unlike_boxes_text(Random& random) {
  struct Nics {
    int of_gpus, rate, pcie;
  };
  constexpr std::array all_gpus = {2, 4, 8};
  constexpr std::array all_nics = {Nics{1, 50, 64}, Nics{1, 25, 32}, Nics{2, 25, 32}, Nics{2, 50, 64}, Nics{2, 25, 64}};
  const auto spines = static_cast<int>(1 + random.below(2));
  std::string text = "espalier: 1\nname: unlike\nnodes: [{id: \"spine[0-1]\", kind: switch}]\ngroups:\n", uplinks;
  int ranks = 0;
  for (char kind = 'a'; (ranks < 8 || kind < 'c') && kind < 'd'; ++kind) {
    const int gpus = one_of(random, all_gpus);
    const Nics& of = one_of(random, all_nics);
    const int nics = gpus / of.of_gpus;
    const int boxes = gpus == 8 ? 1 : static_cast<int>(1 + random.below(2));
    ranks += boxes * gpus;
    text += fmt::format("  - id: \"{}[0-{}]\"\n    host: true\n", kind, boxes - 1) +
            fmt::format(
                "    nodes: [{{id: \"gpu[0-{}]\", kind: gpu}}, {{id: \"nic[0-{}]\", kind: nic}}, "
                "{{id: nvswitch, kind: switch}}]\n    links:\n",
                gpus - 1, nics - 1) +
            fmt::format("      - {{all: [\"gpu[0-{}]\", nvswitch], class: nvlink, bandwidth: {} GB/s}}\n", gpus - 1,
                        random.below(2) == 0 ? 300 : 450);
    for (int gpu = 0; gpu < gpus; ++gpu) {
      text += fmt::format("      - {{between: [gpu{}, nic{}], class: pcie, bandwidth: {} GB/s}}\n", gpu,
                          gpu / of.of_gpus, of.pcie);
    }
    for (int spine = 0; spine < spines; ++spine) {
      uplinks += fmt::format("  - {{all: [\"{}[0-{}].nic[0-{}]\", spine{}], class: cable, bandwidth: {} GB/s}}\n", kind,
                             boxes - 1, nics - 1, spine, of.rate);
    }
  }
  return text + "links:\n" + uplinks +
         "classes:\n  nvlink: {latency: 500 ns}\n  pcie: {latency: 300 ns}\n  cable: {latency: 600 ns}\n";
}

inline Topology unlike_boxes(Random& random) { return espalier::test::read_good(unlike_boxes_text(random)); }

}  // namespace espalier::profile::test
