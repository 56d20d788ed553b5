// A box's own calls under the paths that software takes: NICs beside the NVLink change nothing for them.

#include <gtest/gtest.h>

#include <array>

#include "scenario/run/run_job.h"
#include "tests/support/read_good.h"
#include "tests/unit/scenario/jobs.h"

namespace espalier::scenario {
namespace {

/// Two boxes of four GPUs on NVLink, with so many NICs (1 or 2), each on a PCIe switch that GPUs share.
Topology boxes(int nics) {
  const std::string slots = nics == 1 ? "bus[0,0,0,0]" : "bus[0,0,1,1]";
  return espalier::test::read_good(R"(
espalier: 1
name: boxes
parameters: {nics: )" + std::to_string(nics) +
                                   R"(}
classes:
  nvlink: {bandwidth: 100 GB/s, latency: 300 ns}
  bus: {bandwidth: 50 GB/s, latency: 200 ns}
  cable: {bandwidth: 50 GB/s, latency: 600 ns}
nodes: [{id: leaf, kind: switch}]
groups:
  - id: "box[0-1]"
    host: true
    nodes:
      - {id: "gpu[0-3]", kind: gpu}
      - {id: nvswitch, kind: switch}
      - {id: bus, count: $nics, kind: pcie}
      - {id: nic, count: $nics, kind: nic}
    links:
      - {all: ["gpu[0-3]", nvswitch], class: nvlink}
      - {zip: ["gpu[0-3]", ")" + slots +
                                   R"("], class: bus}
      - {zip: ["nic[*]", "bus[*]"], class: bus}
      - {all: ["nic[*]", leaf], class: cable}
)");
}

/// How long an all_reduce of box 0 takes while gpu0 sends to the other box, and alone.
CallTime tensor_call(const Topology& topology, planners::Paths paths) {
  constexpr std::int64_t megabytes = 64 << 20;
  Job job;
  const std::array box{Rank(0), Rank(1), Rank(2), Rank(3)};
  const CallId tensor = job.add_call(
      {.size = {megabytes}, .group = job.add_group({box.begin(), box.end()}), .label = job.add_label("tensor")});
  const CallId data = test::add_message(job, 0, 4, megabytes);
  const auto add = [&](Rank rank, CallId call, std::uint16_t stream) {
    Task task{.call = call, .label = job.call(call).label, .stream = stream, .kind = TaskKind::call};
    task.rank = rank;
    job.add_task(task, {});
  };
  for (const Rank rank : box) add(rank, tensor, 0);
  for (const Rank rank : {Rank(0), Rank(4)}) add(rank, data, 1);
  RunSettings settings;
  settings.paths = paths;
  return test::run_checked(job, topology, {}, settings).calls[tensor.index()];
}

TEST(PathsOfCalls, NicsLeaveACallInsideABoxAlone) {
  using planners::Paths;
  const CallTime one = tensor_call(boxes(1), Paths::software), two = tensor_call(boxes(2), Paths::software);
  // Neither how many NICs there are nor what they carry shows.
  EXPECT_EQ(one.duration(), one.alone);
  EXPECT_EQ(two.duration(), two.alone);
  EXPECT_EQ(one.alone, two.alone);
  // A rank sends 2 x 3/4 of 64 MiB over 100 GB/s: no box is faster than its NVLink.
  const auto least = static_cast<std::int64_t>(1.5 * (64 << 20) * 10);  // picoseconds
  EXPECT_GE(one.alone, least);
  // Where every path counts, the PCIe beside it makes the call faster than that, and others' data slow it down.
  const CallTime any = tensor_call(boxes(2), Paths::any);
  EXPECT_LT(any.alone, least);
  EXPECT_GT(any.duration(), any.alone);
}

}  // namespace
}  // namespace espalier::scenario
