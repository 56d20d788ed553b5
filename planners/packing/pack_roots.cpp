#include "planners/packing/pack_roots.h"

#include <optional>
#include <utility>

#include "planners/packing/find/finders.h"
#include "planners/packing/select.h"

namespace espalier::planners {

Result<std::vector<Arborescence>> pack_roots(const PackingProblem& problem) {
  std::optional<std::vector<Arborescence>> best;
  Error refusal;
  for (const Finder& finder : finders()) {
    if (!finder.applies(problem, best)) continue;
    Result<std::vector<Arborescence>> found = finder.propose(problem, best);
    if (found) {
      select_better(problem.topology(), best, *std::move(found));
    } else {
      refusal = found.error();
    }
  }
  if (!best) return tl::unexpected(std::move(refusal));
  return *std::move(best);
}

}  // namespace espalier::planners
