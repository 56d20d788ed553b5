// Plans of MSCCL++. Each transfer is a put over a channel between two thread blocks: the sender's puts and signals, the
// receiver's waits. What is copied goes to its place; what is added goes to scratch of its own, from where the receiver
// adds it. A receiver says when a place may be written to. Thread blocks of one rank wait for each other by semaphores.
// Source: microsoft/mscclpp, src/core/executor.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "schedule/formats/msccl_chunks.h"
#include "schedule/formats/writers.h"
#include "schedule/formats/written_channels.h"

namespace espalier {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t max_mscclpp_chunks = 4096;
constexpr std::uint32_t max_mscclpp_channels = 32;
/// Limits of the executor: MAX_OPERATION and MAX_DEVICE_SEMAPHORES of src/core/include/execution_common.hpp.
constexpr std::size_t max_ops = 64, max_acquired = 16;
/// All thread blocks of a GPU have to run at once, one per multiprocessor: an A100 has 108.
constexpr std::size_t max_blocks_of_gpu = 108;
/// Operations that a transfer takes at most at one end: two waits, two barriers within the block, what it does, two
/// signals.
constexpr std::size_t ops_per_transfer = 8;

/// An operation that others of its rank wait for.
struct OpPlace {
  std::uint32_t block = 0;
  std::uint32_t number = 0;  ///< Of the transfer within its block.
};

struct WriterBlock {
  std::size_t peer = 0;
  std::size_t channel = 0;              ///< Among the rank's channels.
  std::map<char, std::size_t> buffers;  ///< Places of the peer's buffers in its references.
  std::vector<ordered_json> ops;
  std::uint32_t transfers = 0;
  std::map<std::uint32_t, std::uint32_t> awaited;  ///< By block of the same rank: how many of its transfers are over.
};

/// Who used a chunk at a rank last.
struct PlaceUse {
  std::optional<OpPlace> writer;
  std::vector<OpPlace> readers;
};

class MscclppWriter {
 public:
  MscclppWriter(const Schedule& schedule, std::int64_t unit, std::int64_t chunks, const WrittenChannels& channels)
      : schedule_(schedule),
        channels_(channels),
        unit_(unit),
        chunks_(chunks),
        buffers_(schedule.collective, chunks),
        gpus_(schedule.collective.rank_count) {}

  Result<std::string> write() {
    // Where chunks pass a rank is known before scratch for sums begins.
    for (const Transfer& transfer : schedule_.transfers) {
      each_run(transfer, [](std::int64_t, MscclChunk, MscclChunk, std::int64_t) {});
    }
    for (std::size_t rank = 0; rank < gpus_.size(); ++rank) gpus_[rank].scratch = buffers_.scratch(Rank(rank));
    for (std::size_t i = 0; i < schedule_.transfers.size(); ++i) {
      const Transfer& transfer = schedule_.transfers[i];
      each_run(transfer, [&](std::int64_t chunk, MscclChunk from, MscclChunk to, std::int64_t count) {
        add(transfer, channels_.numbers[i], chunk, from, to, count);
      });
    }
    if (schedule_.collective.kind == CollectiveKind::all_to_all) copy_own_blocks();
    if (auto checked = check_limits(); !checked) return tl::unexpected(checked.error());
    return document().dump(1) + "\n";
  }

 private:
  struct Gpu {
    std::vector<WriterBlock> blocks;
    std::vector<std::size_t> channels;                                          ///< The peer of each.
    std::map<std::pair<std::size_t, char>, std::size_t> remote_buffers;         ///< Places, by peer and buffer.
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> semaphores;  ///< By who waits for whom.
    std::int64_t scratch = 0;
  };
  struct Lane {
    std::uint32_t sender = 0, receiver = 0;
  };

  /// A run for chunks that lie side by side at both ends.
  template <class Use>
  void each_run(const Transfer& transfer, Use use) {
    const Rank src = schedule_.src(transfer), dst = schedule_.dst(transfer);
    const Slice& first = schedule_.slices[transfer.first_slice.index()];
    const Slice& last = schedule_.slices[transfer.first_slice.index() + transfer.slice_count - 1];
    const std::int64_t end = (last.offset + last.length) / unit_;
    for (std::int64_t chunk = first.offset / unit_; chunk < end;) {
      const MscclChunk from = buffers_.at(src, chunk), to = buffers_.at(dst, chunk);
      std::int64_t count = 1;
      for (; chunk + count < end; ++count) {
        const MscclChunk next_from = buffers_.at(src, chunk + count), next_to = buffers_.at(dst, chunk + count);
        if (next_from.buffer != from.buffer || next_from.offset != from.offset + count) break;
        if (next_to.buffer != to.buffer || next_to.offset != to.offset + count) break;
      }
      use(chunk, from, to, count);
      chunk += count;
    }
  }

  void add(const Transfer& transfer, std::uint32_t channel, std::int64_t chunk, MscclChunk from, MscclChunk to,
           std::int64_t count) {
    const std::size_t src = schedule_.src(transfer).index(), dst = schedule_.dst(transfer).index();
    const Lane lane = lane_of(src, dst, channel);
    WriterBlock &sender = gpus_[src].blocks[lane.sender], &receiver = gpus_[dst].blocks[lane.receiver];
    const bool adds = transfer.reduces != 0;
    const auto receiver_waits = waits_of(dst, chunk, count, true);
    MscclChunk target = to;
    if (adds) target = {'s', std::exchange(gpus_[dst].scratch, gpus_[dst].scratch + count)};
    // A place that is written to has to be free: its rank says so. Scratch for sums is free from the beginning.
    const bool asks = receiver.transfers == 0 || (!adds && !receiver_waits.empty());
    const bool has_waited = acquire(dst, lane.receiver, receiver_waits);
    if (asks) {
      if (has_waited) receiver.ops.push_back(named("nop"));
      receiver.ops.push_back(on_channel("rlxsignal"));
      sender.ops.push_back(on_channel("rlxwait"));
    }
    const bool sender_waits = acquire(src, lane.sender, waits_of(src, chunk, count, false));
    if (sender_waits || asks) sender.ops.push_back(named("nop"));
    ordered_json put = on_channel("put");
    put["src_buff"] = one(buffer(from, count));
    put["dst_buff"] = one(remote(src, sender, target, count));
    sender.ops.push_back(std::move(put));
    sender.ops.push_back(named("nop"));
    sender.ops.push_back(on_channel("signal"));
    receiver.ops.push_back(on_channel("wait"));
    receiver.ops.push_back(named("nop"));
    if (adds) {
      ordered_json sum = named("re");
      sum["src_buff"] = ordered_json::array({buffer(to, count), buffer(target, count)});
      sum["dst_buff"] = one(buffer(to, count));
      sum["reduce_op"] = "sum";
      receiver.ops.push_back(std::move(sum));
      receiver.ops.push_back(named("nop"));
    }
    const OpPlace sent{lane.sender, ++sender.transfers}, received{lane.receiver, ++receiver.transfers};
    for (std::int64_t i = 0; i < count; ++i) {
      use(src, chunk + i).readers.push_back(sent);
      use(dst, chunk + i) = {received, {}};
    }
    // Room for what later operations of the rank wait for.
    sender.ops.push_back(on_semaphores("sem_release", {}));
    receiver.ops.push_back(on_semaphores("sem_release", {}));
    release_places_[{src, lane.sender, sent.number}] = sender.ops.size() - 1;
    release_places_[{dst, lane.receiver, received.number}] = receiver.ops.size() - 1;
  }

  PlaceUse& use(std::size_t rank, std::int64_t chunk) { return uses_[{rank, chunk}]; }

  /// The last transfer of each block of the rank that has to be over.
  std::map<std::uint32_t, std::uint32_t> waits_of(std::size_t rank, std::int64_t chunk, std::int64_t count,
                                                  bool writes) {
    std::map<std::uint32_t, std::uint32_t> waits;
    const auto wait_for = [&](const OpPlace& place) {
      std::uint32_t& last = waits[place.block];
      last = std::max(last, place.number);
    };
    for (std::int64_t i = 0; i < count; ++i) {
      const PlaceUse& before = use(rank, chunk + i);
      if (before.writer) wait_for(*before.writer);
      if (!writes) continue;
      for (const OpPlace& reader : before.readers) wait_for(reader);
    }
    return waits;
  }

  /// Waits for other blocks of the rank, each by a semaphore of its own for the two; returns whether there is anything
  /// to wait for.
  bool acquire(std::size_t rank, std::uint32_t block, const std::map<std::uint32_t, std::uint32_t>& waits) {
    Gpu& gpu = gpus_[rank];
    std::vector<std::size_t> semaphores;
    for (const auto& [other, number] : waits) {
      if (other == block || gpu.blocks[block].awaited[other] >= number) continue;
      gpu.blocks[block].awaited[other] = number;
      const std::size_t semaphore =
          gpu.semaphores.emplace(std::pair{block, other}, gpu.semaphores.size()).first->second;
      gpu.blocks[other].ops[release_places_.at({rank, other, number})]["semaphore_ids"].push_back(semaphore);
      semaphores.push_back(semaphore);
    }
    for (std::size_t i = 0; i < semaphores.size(); i += max_acquired) {
      const std::size_t end = std::min(semaphores.size(), i + max_acquired);
      const auto begin = semaphores.begin();
      gpu.blocks[block].ops.push_back(on_semaphores(
          "sem_acquire", {begin + static_cast<std::ptrdiff_t>(i), begin + static_cast<std::ptrdiff_t>(end)}));
    }
    return !semaphores.empty();
  }

  /// The thread blocks at both ends of a lane; others where those have no room for another transfer.
  Lane lane_of(std::size_t src, std::size_t dst, std::uint32_t channel) {
    const auto found = lanes_.find({src, dst, channel});
    if (found != lanes_.end()) {
      const std::size_t ops = std::max(gpus_[src].blocks[found->second.sender].ops.size(),
                                       gpus_[dst].blocks[found->second.receiver].ops.size());
      if (ops + ops_per_transfer <= max_ops) return found->second;
    }
    const Lane lane{add_block(src, dst), add_block(dst, src)};
    lanes_[{src, dst, channel}] = lane;
    return lane;
  }

  std::uint32_t add_block(std::size_t rank, std::size_t peer) {
    Gpu& gpu = gpus_[rank];
    WriterBlock& block = gpu.blocks.emplace_back();
    block.peer = peer;
    block.channel = gpu.channels.size();
    gpu.channels.push_back(peer);
    return static_cast<std::uint32_t>(gpu.blocks.size() - 1);
  }

  /// What stays at its rank goes from input to output.
  void copy_own_blocks() {
    const std::int64_t shard = chunks_ / schedule_.collective.rank_count;
    for (std::size_t rank = 0; rank < gpus_.size(); ++rank) {
      WriterBlock& block = gpus_[rank].blocks.emplace_back();
      block.peer = rank;
      const std::int64_t at = static_cast<std::int64_t>(rank) * shard;
      ordered_json copy = named("copy");
      copy["src_buff"] = one(buffer({'i', at}, shard));
      copy["dst_buff"] = one(buffer({'o', at}, shard));
      block.ops.push_back(std::move(copy));
    }
  }

  static ordered_json named(const char* name) {
    ordered_json op = ordered_json::object();
    op["name"] = name;
    return op;
  }
  static ordered_json one(ordered_json value) {
    ordered_json list = ordered_json::array();
    list.push_back(std::move(value));
    return list;
  }
  /// A block has one channel, the first of those that it refers to.
  static ordered_json on_channel(const char* name) {
    ordered_json op = named(name);
    op["channel_ids"] = one(0);
    op["channel_type"] = "memory";
    return op;
  }
  static ordered_json on_semaphores(const char* name, const std::vector<std::size_t>& semaphores) {
    ordered_json op = named(name);
    op["semaphore_ids"] = semaphores;
    return op;
  }
  static ordered_json buffer(MscclChunk chunk, std::int64_t count) {
    return {{"type", std::string(1, chunk.buffer)}, {"index", chunk.offset}, {"size", count}};
  }

  ordered_json remote(std::size_t rank, WriterBlock& block, MscclChunk chunk, std::int64_t count) {
    auto& known = gpus_[rank].remote_buffers;
    known.emplace(std::pair{block.peer, chunk.buffer}, known.size());
    const std::size_t place = block.buffers.emplace(chunk.buffer, block.buffers.size()).first->second;
    return {{"buffer_id", place}, {"index", chunk.offset}, {"size", count}};
  }

  Result<void> check_limits() {
    for (Gpu& gpu : gpus_) {
      if (gpu.blocks.size() > max_blocks_of_gpu) {
        return fail(
            ErrorCode::unsupported,
            fmt::format("a GPU has {} thread blocks, and {} run at once at most", gpu.blocks.size(), max_blocks_of_gpu),
            "plan with fewer trees (--max-trees), or another algorithm");
      }
      for (WriterBlock& block : gpu.blocks) {
        std::erase_if(block.ops, [](const ordered_json& op) {
          return op["name"] == "sem_release" && op["semaphore_ids"].empty();
        });
        for (const ordered_json& op : block.ops) {
          if (op["name"] != "sem_release" || op["semaphore_ids"].size() <= max_acquired) continue;
          return fail(ErrorCode::unsupported,
                      fmt::format("{} thread blocks wait for one, and MSCCL++'s executor takes {}",
                                  op["semaphore_ids"].size(), max_acquired),
                      "plan with fewer trees (--max-trees), or another algorithm");
        }
        if (block.ops.size() > max_ops) {
          return fail(ErrorCode::unsupported,
                      fmt::format("a thread block has {} operations, and MSCCL++'s executor takes {}", block.ops.size(),
                                  max_ops),
                      "plan with fewer trees (--max-trees), or another algorithm");
        }
      }
    }
    return {};
  }

  [[nodiscard]] ordered_json document() const {
    const bool in_place = schedule_.collective.kind != CollectiveKind::all_to_all;
    ordered_json plan = {{"name", fmt::format("{}_{}", to_string(schedule_.collective.kind), schedule_.algorithm)},
                         {"collective", *msccl_name(schedule_.collective.kind)},
                         {"protocol", "Simple"},
                         {"inplace", in_place},
                         {"reuse_resources", false},
                         {"gpus", ordered_json::array()},
                         {"num_threads_per_block", 1024},
                         {"use_double_scratch_buffer", false},
                         {"buffer_alignment", 16},
                         {"min_message_size", 0},
                         {"max_message_size", std::numeric_limits<std::uint64_t>::max()}};
    for (std::size_t rank = 0; rank < gpus_.size(); ++rank) plan["gpus"].push_back(gpu_document(rank));
    return plan;
  }

  [[nodiscard]] ordered_json gpu_document(std::size_t rank) const {
    const Gpu& gpu = gpus_[rank];
    ordered_json blocks = ordered_json::array();
    for (std::size_t i = 0; i < gpu.blocks.size(); ++i) {
      const WriterBlock& block = gpu.blocks[i];
      ordered_json channels = ordered_json::array(), references = ordered_json::array();
      if (block.peer != rank) channels.push_back({{"channel_type", "memory"}, {"channel_ids", one(block.channel)}});
      std::vector<std::size_t> ids(block.buffers.size());
      for (const auto& [buffer, place] : block.buffers) ids[place] = gpu.remote_buffers.at({block.peer, buffer});
      if (!ids.empty()) references.push_back({{"access_channel_type", "memory"}, {"remote_buffer_ids", ids}});
      blocks.push_back({{"id", i}, {"ops", block.ops}, {"channels", channels}, {"remote_buffer_refs", references}});
    }
    ordered_json channels = ordered_json::array(), buffers = ordered_json::array(), semaphores = ordered_json::array();
    if (!gpu.channels.empty()) channels.push_back({{"channel_type", "memory"}, {"connected_to", gpu.channels}});
    std::vector<std::pair<std::size_t, char>> remote(gpu.remote_buffers.size());
    for (const auto& [buffer, place] : gpu.remote_buffers) remote[place] = buffer;
    for (const auto& [peer, letter] : remote) {
      buffers.push_back({{"rank", peer}, {"type", std::string(1, letter)}, {"access_channel_types", one("memory")}});
    }
    for (std::size_t i = 0; i < gpu.semaphores.size(); ++i) {
      semaphores.push_back(ordered_json::object({{"init_value", 0}}));
    }
    return {{"id", rank},
            {"input_chunks", buffers_.inputs()},
            {"output_chunks", buffers_.outputs()},
            {"scratch_chunks", gpu.scratch},
            {"threadblocks", blocks},
            {"channels", channels},
            {"remote_buffers", buffers},
            {"semaphores", semaphores}};
  }

  const Schedule& schedule_;
  const WrittenChannels& channels_;
  std::int64_t unit_, chunks_;
  MscclBuffers buffers_;
  std::vector<Gpu> gpus_;
  std::map<std::tuple<std::size_t, std::size_t, std::uint32_t>, Lane> lanes_;
  std::map<std::pair<std::size_t, std::int64_t>, PlaceUse> uses_;
  /// Where a block's operations release semaphores after a transfer, by rank, block and number of the transfer.
  std::map<std::tuple<std::size_t, std::uint32_t, std::uint32_t>, std::size_t> release_places_;
};

}  // namespace

Result<ExportedFile> write_mscclpp(const Schedule& schedule, const Topology& topology) {
  if (auto refused = refuse_inputs(schedule, "an MSCCL++ plan"); !refused) return tl::unexpected(refused.error());
  const auto cut = cut_msccl_chunks(schedule, topology, "MSCCL++", max_mscclpp_chunks);
  if (!cut) return tl::unexpected(cut.error());
  // The more channels, the more goes on at once, as far as a GPU has room for their thread blocks.
  WrittenChannels channels = number_channels(schedule, max_mscclpp_channels);
  for (std::uint32_t most = std::min(max_mscclpp_channels, std::max(channels.max_lanes, 1U));; most -= 1) {
    channels = number_channels(schedule, most);
    auto text = MscclppWriter(schedule, cut->unit, cut->chunks, channels).write();
    if (text) return ExportedFile{"", *std::move(text), lost_by(schedule, channels, "MSCCL++")};
    if (most == 1) return tl::unexpected(text.error());
  }
}

}  // namespace espalier
