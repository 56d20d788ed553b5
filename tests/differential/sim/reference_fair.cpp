#include "tests/differential/sim/reference_fair.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "base/check.h"
#include "schedule/layout.h"
#include "schedule/relays.h"
#include "sim/core/jitter.h"
#include "tests/differential/sim/reference_chunks.h"

namespace espalier::test {
namespace {

__extension__ using Wide = __int128;

struct FlowChunk {
  std::size_t transfer = 0;
  std::uint32_t index = 0;
  ChunkBytes bytes;
  std::vector<std::size_t> shared;   ///< Links by id, then backplanes by node after them.
  std::optional<NodeId> reduced_at;  ///< Where it is added, if that takes time.
  std::uint32_t round = 0;
  bool keeps_step = false;  ///< Its lane shares something with another.
  std::int64_t latency = 0;
  std::int64_t overhead = 0;
  std::int64_t ready = 0;
  bool has_asked = false;     ///< Its source's processor, where messages cost that time.
  std::int64_t earliest = 0;  ///< Then: when it may begin.
  bool has_begun = false;
  bool has_turn = false;  ///< No other flow moves over its connection.
  std::int64_t begin = 0;
  std::int64_t taken = 0;  ///< When its destination's processor has handled it.
  Wide left = 0;           ///< Bytes x picoseconds per second x scale.
  Wide rate = 0;
  std::optional<std::int64_t> end;
  std::optional<std::int64_t> departed;
  std::optional<std::int64_t> arrived;
};

class FairReference {
 public:
  FairReference(const Schedule& schedule, const Topology& topology, const sim::Options& options, Picoseconds message)
      : schedule_(schedule),
        topology_(topology),
        options_(options),
        message_(message.count),
        jitter_(options.conditions.jitter_ppm, options.conditions.seed),
        rates_(topology.link_count() + topology.node_count(), 0) {
    for (std::size_t i = 0; i < topology.link_count(); ++i)
      rates_[i] = topology.links()[i].bandwidth().bytes_per_second;
    for (std::size_t i = 0; i < topology.node_count(); ++i) {
      rates_[topology.link_count() + i] = topology.nodes()[i].bandwidth.bytes_per_second;
    }
    std::int64_t fastest = 1;
    for (const std::int64_t rate : rates_) fastest = std::max(fastest, rate);
    for (const Node& node : topology.nodes()) fastest = std::max(fastest, node.reduce_bandwidth.bytes_per_second);
    for (const std::int64_t scale : {43'243'200, 720'720, 2'520, 60, 1}) {
      if (static_cast<Wide>(fastest) * scale >= (Wide{1} << 63U) - 1) continue;
      scale_ = scale;
      break;
    }
    make_chunks();
  }

  ReferenceRun run() {
    ReferenceRun result;
    while (std::ranges::any_of(chunks_, [](const FlowChunk& chunk) { return !chunk.arrived; })) {
      advance_to(next_moment());
      while (handle_first_due()) {
      }
      share();
    }
    for (const FlowChunk& chunk : chunks_) {
      result.elapsed = std::max(result.elapsed, *chunk.arrived);
      add_spans(chunk, result.spans);
    }
    std::ranges::sort(result.spans, [](const Span& a, const Span& b) {
      return std::tie(a.begin, a.lane, a.phase, a.transfer, a.chunk, a.end) <
             std::tie(b.begin, b.lane, b.phase, b.transfer, b.chunk, b.end);
    });
    return result;
  }

 private:
  void make_chunks() {
    cut_by_definition(schedule_, options_, [this](std::size_t t, std::uint32_t index, const ChunkBytes& bytes) {
      FlowChunk chunk;
      chunk.transfer = t;
      chunk.index = index;
      chunk.bytes = bytes;
      add_way(chunk, schedule_.transfers[t]);
      chunk.left = static_cast<Wide>(chunk.bytes.length()) * picoseconds_per_second * scale_;
      constexpr std::int64_t one = std::int64_t{1} << 32U;
      chunk.left += (chunk.left >> 32U) * jitter_.extra(one, static_cast<std::uint32_t>(t), chunk.index, 0);
      chunks_.push_back(chunk);
    });
    std::vector<std::uint32_t> counts(schedule_.transfers.size(), 0);
    for (const FlowChunk& chunk : chunks_) ++counts[chunk.transfer];
    const auto rounds = rounds_by_definition(schedule_, counts);
    const auto sharing = sharing_by_definition(schedule_, [this](std::size_t t) {
      FlowChunk way;
      add_way(way, schedule_.transfers[t]);
      std::vector<std::size_t> passed = way.shared;
      const std::size_t sums = topology_.link_count() + topology_.node_count();
      if (way.reduced_at) passed.push_back(sums + way.reduced_at->index());
      for (const Rank end : {schedule_.src(schedule_.transfers[t]), schedule_.dst(schedule_.transfers[t])}) {
        if (has_processor(end)) passed.push_back(sums + topology_.node_count() + end.index());
      }
      return passed;
    });
    for (FlowChunk& chunk : chunks_) {
      chunk.round = rounds[chunk.transfer] + chunk.index;
      chunk.keeps_step = sharing[chunk.transfer] != 0;
    }
  }

  void add_way(FlowChunk& chunk, const Transfer& transfer) const {
    const auto visit = [&](NodeId node) {
      const std::size_t backplane = topology_.link_count() + node.index();
      if (rates_[backplane] > 0) chunk.shared.push_back(backplane);
    };
    visit(node_of_end(schedule_, topology_, schedule_.src(transfer)));
    for (const LinkId link : schedule_.route(transfer.route).links) {
      chunk.shared.push_back(link.index());
      chunk.latency += topology_.link(link).latency.count;
      chunk.overhead += topology_.link(link).overhead.count;
      visit(topology_.link(link).head);
    }
    const NodeId end = node_of_end(schedule_, topology_, schedule_.dst(transfer));
    const bool takes_time = topology_.node(end).reduce_bandwidth.bytes_per_second > 0;
    if (transfer.action() == Action::reduce && takes_time) chunk.reduced_at = end;
  }

  /// docs/simulator.md, "Rounds".
  bool must_leave_before(const FlowChunk& other, const FlowChunk& chunk) const {
    return options_.ahead > 0 && chunk.keeps_step && other.keeps_step && other.round + options_.ahead < chunk.round &&
           schedule_.src(schedule_.transfers[other.transfer]) == schedule_.src(schedule_.transfers[chunk.transfer]);
  }

  /// Whether a rank's processor handles what this end of a chunk's way sends or gets.
  [[nodiscard]] bool has_processor(Rank end) const { return message_ > 0 && end.index() < topology_.rank_count(); }

  /// When the processor is done with a chunk that asks at `time`, the `step`-th of its way.
  std::int64_t handle(const FlowChunk& chunk, Rank rank, std::int64_t time, std::size_t step) {
    std::int64_t& free_at = processors_[rank.index()];
    const auto number = static_cast<std::uint32_t>(chunk.transfer);
    const std::int64_t extra = jitter_.extra(message_, number, chunk.index, static_cast<std::uint32_t>(step));
    return free_at = std::max(time, free_at) + message_ + extra;
  }

  /// When the chunk asks its source's processor, or without one its bytes begin to flow; nothing while that is not
  /// known. Sets `ready`, and `earliest` to when it asks.
  std::optional<std::int64_t> find_begin(std::size_t position) {
    FlowChunk& chunk = chunks_[position];
    const Transfer& mine = schedule_.transfers[chunk.transfer];
    std::int64_t ready = 0;
    std::int64_t known = 0;
    for (const FlowChunk& other : chunks_) {
      if (!must_leave_before(other, chunk)) continue;
      if (!other.end) return std::nullopt;
      known = std::max(known, *other.end);
      ready = std::max(ready, *other.departed);
    }
    for (std::size_t i = 0; i < position; ++i) {
      const FlowChunk& other = chunks_[i];
      const Transfer& theirs = schedule_.transfers[other.transfer];
      bool needs_departure = mine.channel() == theirs.channel() && schedule_.src(mine) == schedule_.src(theirs) &&
                             schedule_.dst(mine) == schedule_.dst(theirs);
      bool needs_arrival = false;
      const bool common_bytes = chunk.bytes.shares_bytes(other.bytes);
      if (other.transfer != chunk.transfer && common_bytes) {
        const bool both_reduce = mine.action() == Action::reduce && theirs.action() == Action::reduce;
        if (schedule_.dst(theirs) == schedule_.src(mine)) needs_arrival = true;
        if (schedule_.dst(theirs) == schedule_.dst(mine) && !both_reduce) needs_arrival = true;
        if (schedule_.src(theirs) == schedule_.dst(mine)) needs_departure = true;
      }
      if (!needs_arrival && !needs_departure) continue;
      if (!other.end) return std::nullopt;
      known = std::max(known, *other.end);
      if (needs_arrival) ready = std::max(ready, *other.arrived);
      if (needs_departure) ready = std::max(ready, *other.departed);
    }
    chunk.ready = ready;
    chunk.earliest = ready + chunk.overhead;
    if (!has_processor(schedule_.src(mine))) chunk.earliest += chunk.latency;
    return std::max(chunk.earliest, known);
  }

  std::int64_t next_moment() {
    std::optional<std::int64_t> first;
    const auto consider = [&](std::int64_t time) { first = first ? std::min(*first, time) : time; };
    bool moves = false;
    for (std::size_t i = 0; i < chunks_.size(); ++i) {
      const FlowChunk& chunk = chunks_[i];
      if (chunk.end) continue;
      if (chunk.has_asked && !chunk.has_begun) {
        consider(std::max(chunk.earliest, now_));
        continue;
      }
      if (!chunk.has_begun) {
        if (const auto begin = find_begin(i)) consider(*begin);
        continue;
      }
      moves = true;
      if (chunk.rate > 0) consider(now_ + static_cast<std::int64_t>((chunk.left + chunk.rate - 1) / chunk.rate));
    }
    for (const sim::RateChange& change : options_.conditions.changes) {
      if (moves && change.at.count > now_) consider(change.at.count);
    }
    ESPALIER_CHECK(first.has_value(), "no chunk waits for ever");
    return *first;
  }

  void advance_to(std::int64_t time) {
    for (FlowChunk& chunk : chunks_) {
      if (chunk.has_begun && !chunk.end) chunk.left -= chunk.rate * (time - now_);
    }
    now_ = time;
  }

  /// Lets the first chunk in program order that begins or ends now do so.
  bool handle_first_due() {
    for (std::size_t i = 0; i < chunks_.size(); ++i) {
      FlowChunk& chunk = chunks_[i];
      if (chunk.end) continue;
      const Rank src = schedule_.src(schedule_.transfers[chunk.transfer]);
      if (!chunk.has_asked) {
        const auto asked = find_begin(i);
        if (!asked || *asked != now_) continue;
        chunk.has_asked = true;
        if (!has_processor(src)) continue_at(chunk, now_);
        if (has_processor(src)) continue_at(chunk, handle(chunk, src, chunk.earliest, 0) + chunk.latency);
        return true;
      }
      if (!chunk.has_begun) {
        if (chunk.earliest > now_) continue;
        chunk.has_begun = true;
        chunk.begin = now_;
        chunk.has_turn =
            chunk.bytes.length() == 0 || std::ranges::none_of(chunks_, [&](const FlowChunk& other) {
              return other.has_turn && !other.end && other.bytes.length() > 0 && have_one_connection(other, chunk);
            });
        if (chunk.has_turn) take(chunk);
        return true;
      }
      if (chunk.left > 0) continue;
      finish(chunk);
      give_turn(chunk);
      return true;
    }
    return false;
  }

  /// Flows of one run from one end to another over the same links.
  [[nodiscard]] bool have_one_connection(const FlowChunk& a, const FlowChunk& b) const {
    const Route mine = schedule_.route(schedule_.transfers[a.transfer].route);
    const Route theirs = schedule_.route(schedule_.transfers[b.transfer].route);
    return mine.src == theirs.src && mine.dst == theirs.dst && std::ranges::equal(mine.links, theirs.links);
  }

  /// Of those that wait for the connection of a flow that ended, the first to begin moves; of several, in program
  /// order.
  void give_turn(const FlowChunk& ended) {
    FlowChunk* first = nullptr;
    for (FlowChunk& chunk : chunks_) {
      if (!chunk.has_begun || chunk.has_turn || !have_one_connection(chunk, ended)) continue;
      if (first == nullptr || chunk.begin < first->begin) first = &chunk;
    }
    if (first == nullptr || ended.bytes.length() == 0) return;
    first->has_turn = true;
    take(*first);
  }

  /// The destination's processor handles a chunk whose bytes begin to flow.
  void take(FlowChunk& chunk) {
    const Transfer& transfer = schedule_.transfers[chunk.transfer];
    if (!has_processor(schedule_.dst(transfer))) return;
    const std::size_t step = chunk.shared.size() + (has_processor(schedule_.src(transfer)) ? 1 : 0);
    chunk.taken = handle(chunk, schedule_.dst(transfer), now_, step);
  }

  /// It begins then, or at once where that is over.
  void continue_at(FlowChunk& chunk, std::int64_t time) const { chunk.earliest = std::max(time, now_); }

  void finish(FlowChunk& chunk) {
    const Transfer& transfer = schedule_.transfers[chunk.transfer];
    const std::size_t processors = has_processor(schedule_.src(transfer)) ? 1 : 0;
    chunk.end = now_;
    chunk.departed = now_ - chunk.latency;
    chunk.arrived = now_;
    std::size_t passed = chunk.shared.size() + processors;
    if (has_processor(schedule_.dst(transfer))) {
      chunk.arrived = std::max(now_, chunk.taken);
      ++passed;
    }
    if (!chunk.reduced_at) return;
    std::int64_t& free_at = reductions_[chunk.reduced_at->index()];
    const Bandwidth rate = topology_.node(*chunk.reduced_at).reduce_bandwidth;
    const std::int64_t busy = transfer_time(Bytes{chunk.bytes.length()}, rate).count;
    const auto steps = static_cast<std::uint32_t>(passed);
    free_at = std::max(*chunk.arrived, free_at) + busy +
              jitter_.extra(busy, static_cast<std::uint32_t>(chunk.transfer), chunk.index, steps);
    chunk.arrived = free_at;
    added_from_[{chunk.transfer, chunk.index}] =
        free_at - busy - jitter_.extra(busy, static_cast<std::uint32_t>(chunk.transfer), chunk.index, steps);
  }

  [[nodiscard]] Wide capacity(std::size_t resource) const {
    Wide whole = static_cast<Wide>(rates_[resource]) * scale_;
    std::int64_t latest = -1;
    Wide now = whole;
    for (const sim::RateChange& change : options_.conditions.changes) {
      if (change.link.index() != resource || change.at.count > now_ || change.at.count < latest) continue;
      latest = change.at.count;
      now = change.rate_ppm == 0 ? 0 : std::max<Wide>(1, whole * change.rate_ppm / 1'000'000);
    }
    return now;
  }

  /// The rounds of "Shares" for all flows.
  void share() {
    std::vector<FlowChunk*> waiting;
    for (FlowChunk& chunk : chunks_) {
      if (chunk.has_turn && !chunk.end) waiting.push_back(&chunk);
    }
    std::vector<Wide> left;
    for (std::size_t i = 0; i < rates_.size(); ++i) left.push_back(capacity(i));
    while (!waiting.empty()) {
      const auto level = [&](std::size_t resource) {
        Wide flows = 0;
        for (const FlowChunk* chunk : waiting) flows += std::ranges::count(chunk->shared, resource);
        return capacity(resource) == 0 ? Wide{0} : std::max<Wide>(1, left[resource] / flows);
      };
      std::map<std::size_t, Wide> levels;
      for (const FlowChunk* chunk : waiting) {
        for (const std::size_t resource : chunk->shared) levels[resource] = 0;
      }
      for (auto& [resource, value] : levels) value = level(resource);
      const Wide lowest = std::ranges::min_element(levels, {}, [](const auto& entry) { return entry.second; })->second;
      std::vector<FlowChunk*> still;
      for (FlowChunk* chunk : waiting) {
        if (std::ranges::none_of(chunk->shared, [&](std::size_t r) { return levels[r] == lowest; })) {
          still.push_back(chunk);
          continue;
        }
        chunk->rate = lowest;
        for (const std::size_t resource : chunk->shared) left[resource] = std::max<Wide>(0, left[resource] - lowest);
      }
      waiting = still;
    }
  }

  void add_spans(const FlowChunk& chunk, std::vector<Span>& spans) {
    const Transfer& transfer = schedule_.transfers[chunk.transfer];
    const auto add = [&](Phase phase, std::size_t lane, std::int64_t begin, std::int64_t end) {
      spans.push_back({static_cast<std::uint32_t>(lane), TransferId(chunk.transfer), chunk.index, phase,
                       Picoseconds{begin}, Picoseconds{end}});
    };
    add(Phase::send, schedule_.src(transfer).index(), chunk.ready, *chunk.departed);
    for (const LinkId link : schedule_.route(transfer.route).links)
      add(Phase::wire, link.index(), chunk.begin, *chunk.end);
    add(Phase::recv, schedule_.dst(transfer).index(), chunk.begin, *chunk.end);
    if (!chunk.reduced_at) return;
    add(Phase::reduce, schedule_.dst(transfer).index(), added_from_[{chunk.transfer, chunk.index}], *chunk.arrived);
  }

  const Schedule& schedule_;
  const Topology& topology_;
  const sim::Options& options_;
  std::int64_t message_;
  sim::Jitter jitter_;
  std::vector<std::int64_t> rates_;  // of links, then of backplanes; 0: none
  std::int64_t scale_ = 1;
  std::int64_t now_ = 0;
  std::vector<FlowChunk> chunks_;                   // in program order
  std::map<std::size_t, std::int64_t> processors_;  // by rank: when it is done with all that came
  std::map<std::size_t, std::int64_t> reductions_;  // by node: when it is done with all that came
  std::map<std::pair<std::size_t, std::uint32_t>, std::int64_t> added_from_;
};

}  // namespace

ReferenceRun simulate_fair_by_definition(const Schedule& schedule, const Topology& topology,
                                         const sim::Options& options, Picoseconds message) {
  return FairReference(schedule, topology, options, message).run();
}

}  // namespace espalier::test
