#include "tests/differential/sim/reference_simulator.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "base/check.h"
#include "schedule/layout.h"
#include "schedule/relays.h"
#include "tests/differential/sim/reference_chunks.h"

namespace espalier::test {
namespace {

struct Server {
  Bandwidth rate;
  std::int64_t latency = 0;
  std::int64_t free_at = 0;
  std::int64_t message = 0;  ///< Of a processor: per chunk.
};

struct Chunk {
  std::size_t transfer = 0;
  std::uint32_t index = 0;
  ChunkBytes bytes;
  std::vector<std::string> servers;  ///< Names: "link 3", "backplane 2", "processor 2", "reduce 2".
  std::size_t served = 0;            ///< How many of them have taken it.
  std::optional<std::int64_t> next_ask;
  std::uint32_t round = 0;
  bool keeps_step = false;  ///< Its lane shares something with another.
  std::int64_t ready = 0;
  std::int64_t last_byte = 0;
  std::int64_t travel = 0;  ///< Latencies of the servers that have taken it.
  std::int64_t first_byte_at_destination = 0;
  std::optional<std::int64_t> departed;
  std::optional<std::int64_t> arrived;
};

class Reference {
 public:
  Reference(const Schedule& schedule, const Topology& topology, const sim::Options& options, Picoseconds message)
      : schedule_(schedule), topology_(topology), options_(options) {
    run_.links.resize(topology.link_count());
    make_servers();
    for (std::size_t i = 0; i < topology.rank_count() && message.count > 0; ++i) {
      servers_["processor " + std::to_string(topology.node_of(Rank(i)).index())] = {{}, 0, 0, message.count};
    }
    make_chunks();
  }

  ReferenceRun run() {
    while (Chunk* next = find_first_asking()) serve(*next);
    for (const Chunk& chunk : chunks_) {
      ESPALIER_CHECK(chunk.arrived.has_value(), "no chunk waits for ever");
      run_.elapsed = std::max(run_.elapsed, *chunk.arrived);
    }
    std::ranges::sort(run_.spans, [](const Span& a, const Span& b) {
      return std::tie(a.begin, a.lane, a.phase, a.transfer, a.chunk, a.end) <
             std::tie(b.begin, b.lane, b.phase, b.transfer, b.chunk, b.end);
    });
    return run_;
  }

 private:
  void make_servers() {
    for (std::size_t i = 0; i < topology_.link_count(); ++i) {
      const Link& link = topology_.links()[i];
      servers_["link " + std::to_string(i)] = {link.bandwidth(), link.latency.count, 0, 0};
    }
    for (std::size_t i = 0; i < topology_.node_count(); ++i) {
      const Node& node = topology_.nodes()[i];
      if (node.bandwidth.bytes_per_second > 0) servers_["backplane " + std::to_string(i)] = {node.bandwidth, 0, 0, 0};
      if (node.reduce_bandwidth.bytes_per_second > 0) {
        servers_["reduce " + std::to_string(i)] = {node.reduce_bandwidth, 0, 0, 0};
      }
    }
  }

  std::vector<std::string> servers_on(const Transfer& transfer) const {
    std::vector<std::string> names;
    const auto add = [&](const char* kind, NodeId node) {
      const std::string name = kind + (" " + std::to_string(node.index()));
      if (servers_.contains(name)) names.push_back(name);
    };
    add("processor", node_of_end(schedule_, topology_, schedule_.src(transfer)));
    add("backplane", node_of_end(schedule_, topology_, schedule_.src(transfer)));
    for (const LinkId link : schedule_.route(transfer.route).links) {
      names.push_back("link " + std::to_string(link.index()));
      add("backplane", topology_.link(link).head);
    }
    add("processor", node_of_end(schedule_, topology_, schedule_.dst(transfer)));
    if (transfer.action() == Action::reduce) add("reduce", node_of_end(schedule_, topology_, schedule_.dst(transfer)));
    return names;
  }

  void make_chunks() {
    cut_by_definition(schedule_, options_, [this](std::size_t t, std::uint32_t index, const ChunkBytes& bytes) {
      Chunk chunk;
      chunk.transfer = t;
      chunk.index = index;
      chunk.bytes = bytes;
      chunk.servers = servers_on(schedule_.transfers[t]);
      chunks_.push_back(chunk);
    });
    std::vector<std::uint32_t> counts(schedule_.transfers.size(), 0);
    for (const Chunk& chunk : chunks_) ++counts[chunk.transfer];
    const auto rounds = rounds_by_definition(schedule_, counts);
    const auto sharing =
        sharing_by_definition(schedule_, [this](std::size_t t) { return servers_on(schedule_.transfers[t]); });
    for (Chunk& chunk : chunks_) {
      chunk.round = rounds[chunk.transfer] + chunk.index;
      chunk.keeps_step = sharing[chunk.transfer] != 0;
    }
  }

  using Lane = std::tuple<ChannelId, Rank, Rank>;

  Lane lane_of(const Chunk& chunk) const {
    const Transfer& transfer = schedule_.transfers[chunk.transfer];
    return {transfer.channel(), schedule_.src(transfer), schedule_.dst(transfer)};
  }

  bool share_lane(const Chunk& a, const Chunk& b) const { return lane_of(a) == lane_of(b); }

  /// docs/simulator.md, "Rounds".
  bool must_leave_before(const Chunk& other, const Chunk& chunk) const {
    return options_.ahead > 0 && chunk.keeps_step && other.keeps_step && other.round + options_.ahead < chunk.round &&
           schedule_.src(schedule_.transfers[other.transfer]) == schedule_.src(schedule_.transfers[chunk.transfer]);
  }

  /// When the sender may hand over a chunk; nothing while that is not known. `position` is the chunk's in program
  /// order.
  std::optional<std::int64_t> find_ready_time(std::size_t position) const {
    const Chunk& chunk = chunks_[position];
    const Transfer& mine = schedule_.transfers[chunk.transfer];
    std::int64_t ready = 0;
    for (const Chunk& other : chunks_) {
      if (!must_leave_before(other, chunk)) continue;
      if (!other.departed) return std::nullopt;
      ready = std::max(ready, *other.departed);
    }
    for (std::size_t i = 0; i < position; ++i) {
      const Chunk& other = chunks_[i];
      const Transfer& theirs = schedule_.transfers[other.transfer];
      bool needs_departure = share_lane(chunk, other);
      bool needs_arrival = false;
      const bool common_bytes = chunk.bytes.shares_bytes(other.bytes);
      if (other.transfer != chunk.transfer && common_bytes) {
        const bool both_reduce = mine.action() == Action::reduce && theirs.action() == Action::reduce;
        if (schedule_.dst(theirs) == schedule_.src(mine)) needs_arrival = true;
        if (schedule_.dst(theirs) == schedule_.dst(mine) && !both_reduce) needs_arrival = true;
        if (schedule_.src(theirs) == schedule_.dst(mine)) needs_departure = true;
      }
      if ((needs_arrival && !other.arrived) || (needs_departure && !other.departed)) return std::nullopt;
      if (needs_arrival) ready = std::max(ready, *other.arrived);
      if (needs_departure) ready = std::max(ready, *other.departed);
    }
    return ready;
  }

  std::int64_t overheads_of(const Chunk& chunk) const {
    std::int64_t overheads = 0;
    for (const LinkId link : schedule_.route(schedule_.transfers[chunk.transfer].route).links) {
      overheads += topology_.link(link).overhead.count;
    }
    return overheads;
  }

  Chunk* find_first_asking() {
    Chunk* first = nullptr;
    for (std::size_t i = 0; i < chunks_.size(); ++i) {
      Chunk& chunk = chunks_[i];
      if (chunk.arrived) continue;
      if (chunk.served == 0) {
        const auto ready = find_ready_time(i);
        if (!ready) continue;
        chunk.ready = *ready;
        chunk.next_ask = std::max(*ready + overheads_of(chunk), held_until_[lane_of(chunk)]);
        chunk.last_byte = *chunk.next_ask;
      }
      // Chunks are in program order, so of two that ask at once the first one found goes first.
      if (first == nullptr || *chunk.next_ask < *first->next_ask) first = &chunk;
    }
    return first;
  }

  void serve(Chunk& chunk) {
    const std::string name = chunk.servers[chunk.served++];
    Server& server = servers_[name];
    const bool is_processor = server.message > 0;
    const std::int64_t busy =
        is_processor ? server.message : transfer_time(Bytes{chunk.bytes.length()}, server.rate).count;
    const std::int64_t entry = std::max(*chunk.next_ask, server.free_at);
    const std::int64_t leave = std::max(entry + busy, chunk.last_byte);
    std::int64_t& held_until = held_until_[lane_of(chunk)];
    held_until = std::max(held_until, entry - chunk.travel);
    // A processor lets a chunk go on when it is done with it; everything else cuts through.
    const std::int64_t head = is_processor ? leave : entry + server.latency;
    chunk.travel += head - entry;
    server.free_at = entry + busy;
    chunk.next_ask = head;
    chunk.last_byte = leave + server.latency;
    const bool is_link = name.starts_with("link ");
    const Transfer& transfer = schedule_.transfers[chunk.transfer];
    if (is_link) {
      const std::size_t link = std::stoul(name.substr(5));
      run_.links[link].bytes += chunk.bytes.length();
      run_.links[link].busy = run_.links[link].busy + Picoseconds{busy};
      add_span(chunk, Phase::wire, link, entry, entry + busy);
      chunk.first_byte_at_destination = *chunk.next_ask;
      if (!chunk.departed) {
        chunk.departed = leave;
        add_span(chunk, Phase::send, schedule_.src(transfer).index(), chunk.ready, leave);
      }
    }
    const std::size_t dst = schedule_.dst(transfer).index();
    if (name.starts_with("reduce ")) {
      add_span(chunk, Phase::reduce, dst, entry, leave);
      chunk.arrived = leave;
      return;
    }
    const bool reduces_next = chunk.served < chunk.servers.size() && chunk.servers[chunk.served].starts_with("reduce ");
    if (chunk.served < chunk.servers.size() && !reduces_next) return;
    add_span(chunk, Phase::recv, dst, chunk.first_byte_at_destination, chunk.last_byte);
    if (reduces_next) {
      chunk.next_ask = chunk.last_byte;
    } else {
      chunk.arrived = chunk.last_byte;
    }
  }

  void add_span(const Chunk& chunk, Phase phase, std::size_t lane, std::int64_t begin, std::int64_t end) {
    run_.spans.push_back({static_cast<std::uint32_t>(lane), TransferId(chunk.transfer), chunk.index, phase,
                          Picoseconds{begin}, Picoseconds{end}});
  }

  const Schedule& schedule_;
  const Topology& topology_;
  const sim::Options& options_;
  std::map<std::string, Server> servers_;
  std::map<Lane, std::int64_t> held_until_;  ///< When a lane's next chunk may ask for its first server.
  std::vector<Chunk> chunks_;                ///< In program order.
  ReferenceRun run_;
};

}  // namespace

ReferenceRun simulate_by_definition(const Schedule& schedule, const Topology& topology, const sim::Options& options,
                                    Picoseconds message) {
  return Reference(schedule, topology, options, message).run();
}

}  // namespace espalier::test
