#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/parallel.h"
#include "forecast/candidate_runs.h"
#include "forecast/degrade.h"
#include "planners/bounds/bound.h"
#include "tests/property/profile/machines.h"
#include "topology/generate/generate.h"

/// ESPALIER_DEGRADE_MEMBERS: how many of a class are asked.
namespace espalier::profile {
namespace {

struct Generated {
  std::string what;
  Result<Topology> topology;
  bool has_auto = true;  ///< Also asked for the best schedule.
};

/// What taking a part away leaves; zero where nothing is.
struct Answer {
  double bound = 0;  ///< busbw
  double best = 0;   ///< Seconds, as all that follows.
  double nccl = 0;
};

/// Whether two answers are one; wholes of elements and the last of a chunk's choice aside.
bool are_alike(double one, double two) {
  constexpr double rounding = 0.005;
  return std::abs(one - two) <= rounding * std::max(one, two);
}

Answer answer_of(const forecast::Outlook& outlook) {
  return {outlook.bound_busbw().value_or(0), outlook.fastest ? outlook.fastest->run.elapsed.seconds() : 0,
          outlook.nccl ? outlook.nccl->elapsed.seconds() : 0};
}

double seconds_of(forecast::Question question, const std::string& algorithm) {
  question.algorithms = {algorithm};
  const auto candidates = forecast::plan(question);
  if (!candidates || candidates->made.empty()) return 0;
  const auto ran =
      forecast::CandidateRuns(*question.machine, *candidates, question.how).run(algorithm, question.sizes[0]);
  return ran ? ran->report.elapsed.seconds() : 0;
}

/// As `--without NAME` has it.
std::optional<Answer> ask_without(const forecast::Question& question, const std::string& name, bool has_auto) {
  const auto rest = without(*question.machine, std::vector{name});
  if (!rest) return std::nullopt;
  forecast::Question on_rest = question;
  on_rest.machine = &*rest;
  const auto bound = planners::compute_bound(*rest, question.collective);
  EXPECT_TRUE(bound) << name;
  return Answer{to_double(question.collective.busbw_factor() / bound->time_per_byte),
                has_auto ? seconds_of(on_rest, "auto") : 0, seconds_of(on_rest, "nccl")};
}

/// The one that is shown, and so many others, spread over the class.
std::vector<std::string> some_members(const planners::Failure& failure, std::size_t count) {
  std::vector<std::string> some = {failure.alike.front()};
  const std::size_t others = failure.alike.size() - 1;
  for (std::size_t i = 0; i < std::min(count, others); ++i) {
    some.push_back(failure.alike[(i + 1) * others / std::min(count, others)]);
  }
  return some;
}

/// What degrade says of a class is what each of its members gives.
void check_classes(const Generated& made, CollectiveKind kind, Bytes size, std::size_t members,
                   const std::string& profile = "nccl-hopper") {
  ASSERT_TRUE(made.topology) << made.what;
  const auto of_profile = test::options_of({"", profile});
  forecast::Question question;
  question.machine = &*made.topology;
  question.collective = test::on(*made.topology, kind);
  question.sizes = {size};
  question.how.profile = std::make_shared<const forecast::Software>(
      forecast::Software{profile, of_profile.profile, of_profile.launch, {}});
  if (!made.has_auto) question.algorithms = {"ring"};
  const auto found = forecast::degrade(question, {.threads = usable_threads()});
  ASSERT_TRUE(found) << made.what << found.error().message;
  std::size_t asked = 0;
  for (const forecast::Damage& damage : found->damages) {
    for (const std::string& name : some_members(damage.failure, members)) {
      const std::string what = made.what + " " + std::string(to_string(kind)) + ": " + damage.failure.what + " " +
                               damage.failure.name + " and its like " + name;
      const auto of_member = ask_without(question, name, made.has_auto);
      ASSERT_EQ(damage.outlook.has_value(), of_member.has_value()) << what;
      if (!of_member) continue;
      ++asked;
      const Answer shown = answer_of(*damage.outlook);
      EXPECT_TRUE(are_alike(shown.bound, of_member->bound))
          << what << ": bound " << shown.bound << ", " << of_member->bound;
      EXPECT_TRUE(are_alike(shown.nccl, of_member->nccl)) << what << ": nccl " << shown.nccl << ", " << of_member->nccl;
      if (!made.has_auto) continue;
      // What was planned for the whole may go on, so no plan of the rest alone is better.
      EXPECT_LE(shown.best, of_member->best * 1.005) << what << ": best";
      if (!damage.outlook->fastest->kept) {
        EXPECT_TRUE(are_alike(shown.best, of_member->best))
            << what << ": best " << shown.best << ", " << of_member->best;
      }
    }
  }
  EXPECT_GT(asked, 0U) << made.what;
}

std::size_t members_asked(std::size_t otherwise) {
  const char* const text = std::getenv("ESPALIER_DEGRADE_MEMBERS");
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(Degrade, ShowsForEachClassWhatItsMembersGive) {
  const std::vector<Generated> all = {
      {"rail-boxes 3 x 4", generate_rail_boxes({.boxes = 3, .gpus_per_box = 4, .rails = 4, .spines = 2})},
      {"cluster 4 x 4", generate_cluster({.boxes = 4, .gpus = 4, .nics = 4}), false},
      {"leaf-spine 3 x 3", generate_leaf_spine({.leaves = 3, .ranks_per_leaf = 3})},
      {"fat tree of 4-port switches", generate_fat_tree({}), false},
  };
  for (const Generated& made : all) {
    check_classes(made, CollectiveKind::all_reduce, Bytes{16 << 20}, members_asked(2));
    check_classes(made, CollectiveKind::all_gather, Bytes{1 << 20}, members_asked(1));
  }
}

/// `topo degrade` and `simulate --without` plan alike: with packings of lower and of fewer trees, from nothing.
void check_shipped(const std::vector<test::Machine>& machines) {
  for (const test::Machine& machine : machines) {
    const Generated shipped{machine.name, test::read_machine(machine)};
    check_classes(shipped, CollectiveKind::all_reduce, Bytes{64 << 20}, members_asked(0), machine.profile);
  }
}

TEST(Degrade, OfShippedMachinesIsWhatSimulateWithoutGives) {
  check_shipped({{"dgx-h100", "nccl-hopper"}, {"dgx-a100-x2", "nccl-ampere"}});
}

TEST(Degrade, OfMoreShippedMachinesIsWhatSimulateWithoutGives) { check_shipped(test::machines()); }

TEST(Degrade, ShowsForEachClassOfLargeClustersWhatItsMembersGive) {
  std::vector<Generated> all;
  for (const std::int64_t boxes : {16, 64}) {
    const std::string count = std::to_string(boxes);
    all.push_back({"rail-boxes " + count + " x 8", generate_rail_boxes({.boxes = boxes, .spines = 4}), false});
    all.push_back({"cluster " + count + " x 8", generate_cluster({.boxes = boxes}), false});
  }
  all.push_back({"leaf-spine 16 x 8", generate_leaf_spine({.leaves = 16, .ranks_per_leaf = 8, .spines = 4}), false});
  all.push_back({"fat tree of 8-port switches", generate_fat_tree({.k = 8}), false});
  for (const Generated& made : all) check_classes(made, CollectiveKind::all_reduce, Bytes{64 << 20}, members_asked(4));
}

}  // namespace
}  // namespace espalier::profile
