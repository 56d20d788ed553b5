// MSCCL XML. A thread block has one peer, and sends to it or receives from it over one channel; its steps are those of
// the schedule in program order. What a step waits for in another thread block is written as that block and step; a
// step that waits for several has steps that do nothing before it.

#include <fmt/format.h>

#include <map>
#include <set>
#include <tuple>

#include "schedule/formats/msccl_chunks.h"
#include "schedule/formats/writers.h"
#include "schedule/formats/written_channels.h"

namespace espalier {
namespace {

constexpr std::int64_t max_msccl_chunks = 4096;
/// Limits of the executors in NCCL's forks: microsoft/msccl, src/include/msccl.h.
constexpr std::int64_t max_count = 71;
constexpr std::size_t max_steps = 256;
constexpr std::uint32_t max_msccl_channels = 32;

struct StepPlace {
  std::uint32_t block = 0;
  std::uint32_t step = 0;
};

struct MscclStep {
  std::string_view type;
  MscclChunk src, dst;
  std::int64_t count = 0;
  std::optional<StepPlace> after;
  bool is_awaited = false;
};

struct ThreadBlock {
  std::int64_t send = -1, receive = -1;
  std::uint32_t channel = 0;
  std::vector<MscclStep> steps;
};

/// Who used a chunk at a rank last.
struct ChunkUse {
  std::optional<StepPlace> writer;
  std::vector<StepPlace> readers;
};

class MscclWriter {
 public:
  MscclWriter(const Schedule& schedule, const WrittenChannels& channels, const ExportOptions& options,
              std::int64_t unit, std::int64_t chunks)
      : schedule_(schedule),
        channels_of_(channels),
        options_(options),
        unit_(unit),
        buffers_(schedule.collective, chunks),
        chunks_(chunks),
        gpus_(schedule.collective.rank_count) {}

  Result<std::string> write() {
    if (auto ordered = check_inputs_lead(); !ordered) return tl::unexpected(ordered.error());
    // Inputs leave before anything is added to them: receptions wait for those that read what they change.
    for (std::size_t i = 0; i < schedule_.transfers.size(); ++i) {
      const bool reads_input = schedule_.transfers[i].reads_input != 0;
      if (reads_input)
        add_transfer(schedule_.transfers[i], channels_of_.numbers[i], {.sends = true, .receives = false});
    }
    for (std::size_t i = 0; i < schedule_.transfers.size(); ++i) {
      const bool sends = schedule_.transfers[i].reads_input == 0;
      add_transfer(schedule_.transfers[i], channels_of_.numbers[i], {.sends = sends, .receives = true});
    }
    if (schedule_.collective.kind == CollectiveKind::all_to_all) copy_own_blocks();
    if (auto checked = check_limits(); !checked) return tl::unexpected(checked.error());
    return text();
  }

 private:
  /// Which ends of a transfer are added.
  struct Ends {
    bool sends = false;
    bool receives = false;
  };

  /// The k-th step that sends on a channel goes with the k-th that receives, so inputs, which leave first, have to be
  /// first on their channel.
  [[nodiscard]] Result<void> check_inputs_lead() const {
    std::set<std::tuple<Rank, Rank, std::uint32_t>> begun;
    for (std::size_t i = 0; i < schedule_.transfers.size(); ++i) {
      const Transfer& transfer = schedule_.transfers[i];
      const std::tuple lane(schedule_.src(transfer), schedule_.dst(transfer), channels_of_.numbers[i]);
      if (transfer.reads_input == 0) {
        begun.insert(lane);
      } else if (begun.contains(lane)) {
        return fail(ErrorCode::unsupported, "MSCCL sends no input behind other data on one channel",
                    "plan with another algorithm");
      }
    }
    return {};
  }

  /// A step per run of chunks that lie side by side at both ends.
  void add_transfer(const Transfer& transfer, std::uint32_t channel, Ends ends) {
    const Rank src = schedule_.src(transfer), dst = schedule_.dst(transfer);
    const Slice& first = schedule_.slices[transfer.first_slice.index()];
    const Slice& last = schedule_.slices[transfer.first_slice.index() + transfer.slice_count - 1];
    const std::int64_t end = (last.offset + last.length) / unit_;
    for (std::int64_t chunk = first.offset / unit_; chunk < end;) {
      const MscclChunk from = buffers_.at(src, chunk), to = buffers_.at(dst, chunk);
      std::int64_t count = 1;
      for (; count < max_count && chunk + count < end; ++count) {
        const MscclChunk next_from = buffers_.at(src, chunk + count), next_to = buffers_.at(dst, chunk + count);
        if (next_from.buffer != from.buffer || next_from.offset != from.offset + count) break;
        if (next_to.buffer != to.buffer || next_to.offset != to.offset + count) break;
      }
      const bool adds = transfer.reduces != 0;
      if (ends.sends) send(src, dst, channel, chunk, {.type = "s", .src = from, .dst = to, .count = count});
      if (ends.receives) {
        receive(dst, src, channel, chunk,
                {.type = adds ? "rrc" : "r", .src = adds ? to : from, .dst = to, .count = count});
      }
      chunk += count;
    }
  }

  void send(Rank rank, Rank peer, std::uint32_t channel, std::int64_t chunk, MscclStep step) {
    const std::uint32_t block = block_of(rank, static_cast<std::int64_t>(peer.index()), -1, channel);
    std::map<std::uint32_t, std::uint32_t> waits;
    for (std::int64_t i = 0; i < step.count; ++i) wait_for(waits, use(rank, chunk + i).writer);
    const std::int64_t count = step.count;
    const StepPlace place = append(rank, block, std::move(step), waits);
    for (std::int64_t i = 0; i < count; ++i) use(rank, chunk + i).readers.push_back(place);
  }

  void receive(Rank rank, Rank peer, std::uint32_t channel, std::int64_t chunk, MscclStep step) {
    const std::uint32_t block = block_of(rank, -1, static_cast<std::int64_t>(peer.index()), channel);
    std::map<std::uint32_t, std::uint32_t> waits;
    for (std::int64_t i = 0; i < step.count; ++i) {
      const ChunkUse& before = use(rank, chunk + i);
      wait_for(waits, before.writer);
      for (const StepPlace& reader : before.readers) wait_for(waits, reader);
    }
    const std::int64_t count = step.count;
    const StepPlace place = append(rank, block, std::move(step), waits);
    for (std::int64_t i = 0; i < count; ++i) use(rank, chunk + i) = {place, {}};
  }

  /// The last step of each block that has to be over.
  static void wait_for(std::map<std::uint32_t, std::uint32_t>& waits, const std::optional<StepPlace>& place) {
    if (!place) return;
    const auto [known, is_new] = waits.emplace(place->block, place->step);
    if (!is_new) known->second = std::max(known->second, place->step);
  }

  StepPlace append(Rank rank, std::uint32_t block, MscclStep step,
                   const std::map<std::uint32_t, std::uint32_t>& waits) {
    std::vector<ThreadBlock>& blocks = gpus_[rank.index()];
    std::vector<StepPlace> others;
    for (const auto& [other, at] : waits) {
      if (other != block) others.push_back({other, at});
    }
    for (std::size_t i = 0; i < others.size(); ++i) {
      blocks[others[i].block].steps[others[i].step].is_awaited = true;
      if (i + 1 < others.size()) blocks[block].steps.push_back({.type = "nop", .after = others[i]});
    }
    if (!others.empty()) step.after = others.back();
    blocks[block].steps.push_back(std::move(step));
    return {block, static_cast<std::uint32_t>(blocks[block].steps.size() - 1)};
  }

  /// What stays at its rank goes from input to output.
  void copy_own_blocks() {
    const std::int64_t ranks = schedule_.collective.rank_count, shard = chunks_ / ranks;
    for (std::size_t rank = 0; rank < gpus_.size(); ++rank) {
      const std::uint32_t block = block_of(Rank(rank), -1, -1, 0);
      for (std::int64_t done = 0; done < shard; done += max_count) {
        const std::int64_t at = static_cast<std::int64_t>(rank) * shard + done;
        append(Rank(rank), block,
               {.type = "cpy", .src = {'i', at}, .dst = {'o', at}, .count = std::min(max_count, shard - done)}, {});
      }
    }
  }

  std::uint32_t block_of(Rank rank, std::int64_t send, std::int64_t receive, std::uint32_t channel) {
    std::vector<ThreadBlock>& blocks = gpus_[rank.index()];
    const auto [place, is_new] = places_.emplace(std::tuple{rank, send, receive, channel}, blocks.size());
    if (is_new) blocks.push_back({send, receive, channel, {}});
    return static_cast<std::uint32_t>(place->second);
  }

  ChunkUse& use(Rank rank, std::int64_t chunk) { return uses_[{rank, chunk}]; }

  Result<void> check_limits() const {
    if (options_.dialect == "astra") return {};
    for (const auto& blocks : gpus_) {
      for (const ThreadBlock& block : blocks) {
        if (block.steps.size() <= max_steps) continue;
        return fail(
            ErrorCode::unsupported,
            fmt::format("a thread block has {} steps, and MSCCL's executor takes {}", block.steps.size(), max_steps),
            "plan with fewer trees (--max-trees), or write the dialect astra");
      }
    }
    return {};
  }

  std::string text() const {
    std::uint32_t channels = 1;
    for (const auto& blocks : gpus_) {
      for (const ThreadBlock& block : blocks) channels = std::max(channels, block.channel + 1);
    }
    const bool in_place = schedule_.collective.kind != CollectiveKind::all_to_all;
    std::string xml = fmt::format(
        R"(<algo name="{}" proto="Simple" nchannels="{}" nchunksperloop="{}" ngpus="{}" coll="{}" inplace="{}")",
        name(), channels, chunks_, gpus_.size(), *msccl_name(schedule_.collective.kind), in_place ? 1 : 0);
    if (options_.dialect != "astra") {
      xml += fmt::format(R"( outofplace="{}" minBytes="0" maxBytes="9223372036854775807")", in_place ? 0 : 1);
    }
    if (options_.dialect == "rccl") xml += fmt::format(R"( nthreadblocks="{}")", max_blocks());
    xml += ">\n";
    for (std::size_t rank = 0; rank < gpus_.size(); ++rank) {
      xml += fmt::format("  <gpu id=\"{}\" i_chunks=\"{}\" o_chunks=\"{}\" s_chunks=\"{}\">\n", rank, buffers_.inputs(),
                         buffers_.outputs(), buffers_.scratch(Rank(rank)));
      for (std::size_t i = 0; i < gpus_[rank].size(); ++i) xml += block_text(gpus_[rank][i], i);
      xml += "  </gpu>\n";
    }
    return xml + "</algo>\n";
  }

  [[nodiscard]] std::size_t max_blocks() const {
    std::size_t most = 0;
    for (const auto& blocks : gpus_) most = std::max(most, blocks.size());
    return most;
  }

  /// The planner's, in letters that need no escapes.
  [[nodiscard]] std::string name() const {
    std::string name = fmt::format("{}_{}", to_string(schedule_.collective.kind), schedule_.algorithm);
    for (char& letter : name) {
      const bool is_plain = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                            (letter >= '0' && letter <= '9') || letter == '_';
      if (!is_plain) letter = '_';
    }
    return name;
  }

  static std::string block_text(const ThreadBlock& block, std::size_t id) {
    std::string xml = fmt::format("    <tb id=\"{}\" send=\"{}\" recv=\"{}\" chan=\"{}\">\n", id, block.send,
                                  block.receive, block.channel);
    for (std::size_t i = 0; i < block.steps.size(); ++i) {
      const MscclStep& step = block.steps[i];
      const bool waits = step.after.has_value();
      xml += fmt::format(
          "      <step s=\"{}\" type=\"{}\" srcbuf=\"{}\" srcoff=\"{}\" dstbuf=\"{}\" dstoff=\"{}\" cnt=\"{}\" ", i,
          step.type, step.src.buffer, step.src.offset, step.dst.buffer, step.dst.offset, step.count);
      xml += fmt::format("depid=\"{}\" deps=\"{}\" hasdep=\"{}\"/>\n", waits ? std::int64_t{step.after->block} : -1,
                         waits ? std::int64_t{step.after->step} : -1, step.is_awaited ? 1 : 0);
    }
    return xml + "    </tb>\n";
  }

  const Schedule& schedule_;
  const WrittenChannels& channels_of_;
  const ExportOptions& options_;
  std::int64_t unit_;
  MscclBuffers buffers_;
  std::int64_t chunks_;
  std::vector<std::vector<ThreadBlock>> gpus_;
  std::map<std::tuple<Rank, std::int64_t, std::int64_t, std::uint32_t>, std::size_t> places_;
  std::map<std::pair<Rank, std::int64_t>, ChunkUse> uses_;
};

}  // namespace

Result<ExportedFile> write_msccl(const Schedule& schedule, const Topology& topology, const ExportOptions& options) {
  if (options.dialect != "msccl" && options.dialect != "rccl" && options.dialect != "astra") {
    return fail(ErrorCode::invalid_input, fmt::format("there is no dialect '{}'", options.dialect.substr(0, 60)),
                "dialects are msccl, rccl and astra");
  }
  const auto cut = cut_msccl_chunks(schedule, topology, "MSCCL", max_msccl_chunks);
  if (!cut) return tl::unexpected(cut.error());
  const WrittenChannels channels = number_channels(schedule, max_msccl_channels);
  auto text = MscclWriter(schedule, channels, options, cut->unit, cut->chunks).write();
  if (!text) return tl::unexpected(text.error());
  return ExportedFile{"", *std::move(text), lost_by(schedule, channels, "MSCCL")};
}

}  // namespace espalier
