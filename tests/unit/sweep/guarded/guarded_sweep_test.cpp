#include "sweep/guarded/guarded_sweep.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/check.h"
#include "sweep/row_text.h"
#include "tests/support/sanitized.h"
#include "topology/generate/generate.h"

namespace espalier::sweep {
namespace {

Spec spec_of_rings() {
  Spec spec;
  for (const std::int64_t ranks : {4, 5, 6}) {
    auto ring = generate_ring({.ranks = ranks});
    spec.machines.push_back({.topology = *std::move(ring)});
  }
  spec.collectives = {CollectiveKind::all_gather, CollectiveKind::broadcast};
  spec.algorithms = {"ring", "tree"};
  spec.sizes = {{1024}, {4096}};
  return spec;
}

std::vector<Row> rows_of(const std::function<Result<void>(const OnRow&)>& run) {
  std::vector<Row> rows;
  const auto done = run([&](Row row) -> Result<void> {
    row.timing.reset();
    rows.push_back(std::move(row));
    return {};
  });
  EXPECT_TRUE(done) << done.error().message;
  std::ranges::sort(rows, {}, &Row::key);
  return rows;
}

bool is_bad(const Key& key) {
  return key.collective == "broadcast" && key.algorithm == "tree" && key.size.count == 4096;
}

/// As run_sweep, but a check fails at some keys, after those that come before them.
Result<void> run_with_bug(const Spec& spec, const std::vector<Unit>& units, unsigned threads, const OnRow& on_row) {
  for (const Unit& unit : units) {
    const auto ran = run_sweep(spec, {unit}, threads, [&](Row row) -> Result<void> {
      ESPALIER_CHECK(!is_bad(row.key), "the bug of this test");
      return on_row(std::move(row));
    });
    if (!ran) return ran;
  }
  return {};
}

TEST(GuardedSweep, GivesTheRowsThatASweepGives) {
  const Spec spec = spec_of_rings();
  const auto units = *list_units(spec);
  const auto plain = rows_of([&](const OnRow& on_row) { return run_sweep(spec, units, 2, on_row); });
  GuardedSweep guarded(spec, units, 2);
  const auto rows = rows_of([&](const OnRow& on_row) { return guarded.read(on_row); });
  ASSERT_EQ(rows.size(), plain.size());
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_TRUE(rows[i].agrees_with(plain[i])) << describe(rows[i].key);
}

TEST(GuardedSweep, AnInternalErrorCostsItsRowsAndNoOthers) {
  if (ESPALIER_SANITIZED != 0) GTEST_SKIP() << "under a sanitizer the process is to end";
  const Spec spec = spec_of_rings();
  const auto units = *list_units(spec);
  const auto plain = rows_of([&](const OnRow& on_row) { return run_sweep(spec, units, 2, on_row); });
  GuardedSweep guarded(spec, units, 2, run_with_bug);
  const auto rows = rows_of([&](const OnRow& on_row) { return guarded.read(on_row); });
  ASSERT_EQ(rows.size(), plain.size());
  std::size_t bad = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].key, plain[i].key);
    if (!is_bad(rows[i].key)) {
      EXPECT_TRUE(rows[i].agrees_with(plain[i])) << describe(rows[i].key);
      continue;
    }
    ++bad;
    EXPECT_FALSE(rows[i].figures);
    EXPECT_TRUE(rows[i].reason.starts_with("internal error: ")) << rows[i].reason;
    EXPECT_NE(rows[i].reason.find("the bug of this test"), std::string::npos) << rows[i].reason;
  }
  EXPECT_EQ(bad, 3U);  // One for each ring.
}

TEST(GuardedSweep, AnErrorOfTheReaderEndsIt) {
  const Spec spec = spec_of_rings();
  const auto units = *list_units(spec);
  GuardedSweep guarded(spec, units, 1);
  const auto read = guarded.read([](const Row&) -> Result<void> { return fail(ErrorCode::unavailable, "full"); });
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "full");
}

}  // namespace
}  // namespace espalier::sweep
