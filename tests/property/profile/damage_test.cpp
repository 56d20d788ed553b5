#include "tests/property/profile/machines.h"
#include "tests/support/forecast/run_nccl.h"

namespace espalier::profile {
namespace {

using test::machines;

constexpr std::array sizes = {Bytes{8 << 10}, Bytes{1 << 20}, Bytes{16 << 20}, Bytes{256 << 20}};
constexpr std::array kinds = {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::broadcast,
                              CollectiveKind::all_to_all};

std::string name_of(const Topology& topology, const Parts& parts) {
  std::string name;
  for (const NodeId node : parts.nodes) name += " " + topology.node(node).id;
  for (const LinkId link : parts.links) name += " " + topology.link_name(link);
  return name;
}

TEST(Damage, LikeDamageGivesEqualPredictions) {
  std::size_t compared = 0, moved = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    Random random(seed);
    const test::Machine& machine = test::one_of(random, machines());
    const Topology topology = test::read_machine(machine);
    const std::vector<Cable> cables = find_cables(topology);
    const test::Failing failing = test::any_damage(random, topology, cables);
    const std::vector<std::uint32_t> image = test::any_symmetry(random, topology, cables);
    test::Failing like;
    for (const NodeId node : failing.nodes) like.nodes.emplace_back(image[node.index()]);
    for (const std::size_t cable : failing.cables) {
      like.cables.push_back(image[topology.node_count() + cable] - topology.node_count());
    }
    const Parts parts = test::parts_of(failing, cables), other = test::parts_of(like, cables);
    const auto one = without(topology, parts, "some"), two = without(topology, other, "some");
    ASSERT_EQ(one.has_value(), two.has_value());
    if (!one) continue;
    const CollectiveKind kind = test::one_of(random, kinds);
    // A symmetry may move the root.
    if (has_root(kind)) continue;
    const Bytes size = test::one_of(random, sizes);
    const auto options = test::options_of(machine);
    const auto first = espalier::test::run_nccl(*one, test::on(*one, kind), size, options);
    const auto second = espalier::test::run_nccl(*two, test::on(*two, kind), size, options);
    const std::string what = machine.name + " " + std::string(to_string(kind)) + " " + std::to_string(size.count) +
                             " without" + name_of(topology, parts) + " or" + name_of(topology, other);
    ASSERT_EQ(first.has_value(), second.has_value()) << what;
    if (!first) continue;
    EXPECT_EQ(first->by, second->by) << what;
    EXPECT_EQ(first->run.elapsed.count, second->run.elapsed.count) << what;
    ++compared;
    if (name_of(topology, parts) != name_of(topology, other)) ++moved;
  }
  EXPECT_GT(compared, 40U);
  EXPECT_GT(moved, compared / 2);
}

}  // namespace
}  // namespace espalier::profile
