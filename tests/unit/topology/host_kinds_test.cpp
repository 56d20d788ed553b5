#include "topology/host_kinds.h"

#include <gtest/gtest.h>

#include "tests/support/read_good.h"
#include "topology/slow.h"
#include "topology/without.h"

namespace espalier {
namespace {

/// Boxes b0, a0, b1: of two GPUs, one, two.
Topology unlike_boxes() {
  return test::read_good(R"(
espalier: 1
name: unlike
nodes: [{id: spine, kind: switch}]
groups:
  - {id: "b[0-0]", host: true, nodes: [{id: "gpu[0-1]", kind: gpu}],
     links: [{between: [gpu0, gpu1], class: nvlink, bandwidth: 100 GB/s, latency: 1 us}]}
  - {id: "a[0-0]", host: true, nodes: [{id: gpu0, kind: gpu}]}
  - {id: "b[1-1]", host: true, nodes: [{id: "gpu[0-1]", kind: gpu}],
     links: [{between: [gpu0, gpu1], class: nvlink, bandwidth: 100 GB/s, latency: 1 us}]}
links:
  - {all: ["b[0-1].gpu[0-1]", spine], class: cable, bandwidth: 10 GB/s, latency: 1 us}
  - {between: [a0.gpu0, spine], class: cable, bandwidth: 10 GB/s, latency: 1 us}
)");
}

TEST(HostKinds, LikeMachinesAreOfOneKind) {
  const HostKinds kinds = find_host_kinds(unlike_boxes());
  EXPECT_EQ(kinds.in_order, (std::vector<std::uint32_t>{0, 1, 0}));
  EXPECT_EQ(kinds.of_host.at("b0"), kinds.of_host.at("b1"));
  EXPECT_NE(kinds.of_host.at("b0"), kinds.of_host.at("a0"));
}

TEST(HostKinds, WhatHappensToAMachineLeavesItsKind) {
  const Topology whole = unlike_boxes();
  const std::vector<std::string> lost = {"b0.gpu1-spine"}, slow = {"b1.gpu0-b1.gpu1=0.5"};
  const Topology rest = *without(whole, lost);
  EXPECT_EQ(rest.kinds_of_hosts()->in_order, (std::vector<std::uint32_t>{0, 1, 0}));
  EXPECT_EQ(slow_down(rest, slow)->kinds_of_hosts()->in_order, (std::vector<std::uint32_t>{0, 1, 0}));
  EXPECT_EQ(find_host_kinds(rest).in_order, (std::vector<std::uint32_t>{0, 1, 2}));
}

}  // namespace
}  // namespace espalier
