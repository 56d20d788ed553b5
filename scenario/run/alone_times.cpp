#include "scenario/run/alone_times.h"

#include <algorithm>

#include "base/check.h"

namespace espalier::scenario {

Result<std::int64_t> AloneTimes::find(const Plan& plan, const sim::RunOptions& options) {
  const Key key{&plan, options.size.count, options.chunk.count, options.element_size};
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  const auto run = model_->add(*plan.compiled, options);
  if (!run) return tl::unexpected(run.error());
  const std::uint32_t ranks = plan.planned->schedule.collective.rank_count;
  const std::int64_t begin = idle_from_;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) model_->enter(*run, Rank(rank), begin);
  ended_.clear();
  while (ended_.size() < ranks || model_->next_time() != sim::never) {
    ESPALIER_CHECK(model_->next_time() != sim::never, "a call alone on a whole network ends");
    model_->advance(ended_);
  }
  for (const sim::RankEnd& end : ended_) idle_from_ = std::max(idle_from_, end.time);
  return known_[key] = idle_from_ - begin;
}

}  // namespace espalier::scenario
