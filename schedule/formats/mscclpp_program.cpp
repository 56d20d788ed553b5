// Plans of MSCCL++: JSON, a list of GPUs with thread blocks of operations on buffers and channels. Source:
// microsoft/mscclpp, src/core/executor/execution_plan.cc and src/core/include/execution_kernel.hpp.

#include "schedule/formats/mscclpp_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "base/printable.h"

namespace espalier {
namespace {

using nlohmann::json;
using Kind = MscclppOp::Kind;

constexpr std::int64_t max_gpus = 4096, max_chunks = 65'536, max_blocks = 1024, max_split = 64;
constexpr std::int64_t max_cells = std::int64_t{1} << 24U;

constexpr std::size_t max_runs = 64;

/// What an operation of that name does.
struct OpForm {
  std::string_view name;
  Kind kind;
  bool signals = false;
  bool reads_packets = false;
  std::size_t max_targets = max_runs;
};
constexpr std::array op_forms = {
    OpForm{"nop", Kind::nothing},
    OpForm{"flush", Kind::nothing},
    OpForm{"barrier", Kind::barrier},
    OpForm{"put", Kind::move},
    OpForm{"pws", Kind::move, true},
    OpForm{"pwsf", Kind::move, true},
    OpForm{"get", Kind::move},
    OpForm{"copy", Kind::move},
    OpForm{"signal", Kind::signal},
    OpForm{"rlxsignal", Kind::signal},
    OpForm{"wait", Kind::wait},
    OpForm{"rlxwait", Kind::wait},
    OpForm{"sem_acquire", Kind::acquire},
    OpForm{"sem_release", Kind::release},
    OpForm{"re", Kind::reduce, false, false, 1},
    OpForm{"res", Kind::reduce},
    OpForm{"rre", Kind::reduce, false, false, 1},
    OpForm{"rres", Kind::reduce},
    OpForm{"ppkt", Kind::move, false, true},
    OpForm{"rppkt", Kind::move, false, true},
    OpForm{"cpkt", Kind::move},
    OpForm{"upkt", Kind::move, false, true},
    OpForm{"repkt", Kind::reduce, false, true, 1},
    OpForm{"respkt", Kind::reduce, false, true},
    OpForm{"recpkt", Kind::reduce, false, true, 2},
    OpForm{"recspkt", Kind::reduce, false, true},
};

/// A value and where it stands: "gpus[0].id".
struct JsonPlace {
  const json* value = nullptr;
  std::string path;
};

class MscclppReader {
 public:
  explicit MscclppReader(const std::string& file) : file_(file) {}

  Result<MscclppProgram> read(const json& document) {
    const JsonPlace root{&document, ""};
    if (auto read = read_header(root); !read) return tl::unexpected(read.error());
    auto gpus = array(root, "gpus");
    if (!gpus) return tl::unexpected(gpus.error());
    find_split(document["gpus"], 0);
    program_.ranks.resize(gpus->size());
    places_.resize(gpus->size());
    for (const JsonPlace& gpu : *gpus) {
      if (auto read = read_gpu(gpu); !read) return tl::unexpected(read.error());
    }
    for (const JsonPlace& gpu : *gpus) {
      if (auto read = read_blocks(gpu); !read) return tl::unexpected(read.error());
    }
    return std::move(program_);
  }

 private:
  /// A buffer of another rank that a rank may reach.
  struct RemoteBuffer {
    std::size_t rank = 0;
    char buffer = 'i';
  };
  /// What references in a rank's operations are places in.
  struct RankPlaces {
    std::vector<RemoteBuffer> remote;
    std::map<bool, std::vector<std::size_t>> channels;  ///< By is_port, places in MscclppRank::channels.
  };
  struct BlockPlaces {
    std::map<bool, std::vector<std::size_t>> channels, buffers;  ///< By is_port.
  };

  tl::unexpected<Error> fail_at(const std::string& path, const std::string& message, const std::string& help,
                                ErrorCode code = ErrorCode::invalid_input) const {
    return fail(code, fmt::format("{}: {}: {}", file_, path.empty() ? "the file" : path, message), help);
  }

  static JsonPlace member(const JsonPlace& at, const char* key) {
    const std::string path = at.path.empty() ? key : at.path + "." + key;
    if (!at.value->is_object()) return {nullptr, path};
    const auto found = at.value->find(key);
    return {found == at.value->end() ? nullptr : &*found, path};
  }

  /// The elements of an array; none where there is no such member and it may be left out.
  Result<std::vector<JsonPlace>> array(const JsonPlace& at, const char* key, bool is_needed = true) const {
    const JsonPlace list = member(at, key);
    std::vector<JsonPlace> elements;
    if (list.value == nullptr && !is_needed) return elements;
    if (list.value == nullptr || !list.value->is_array()) return fail_at(list.path, "is no list", "write a list there");
    for (std::size_t i = 0; i < list.value->size(); ++i) {
      elements.push_back({&(*list.value)[i], fmt::format("{}[{}]", list.path, i)});
    }
    return elements;
  }

  Result<std::int64_t> integer(const JsonPlace& at, std::int64_t low, std::int64_t high) const {
    if (at.value != nullptr && at.value->is_number_integer()) {
      const bool fits = !at.value->is_number_unsigned() || at.value->get<std::uint64_t>() <= std::uint64_t(high);
      const auto number = at.value->get<std::int64_t>();
      if (fits && number >= low && number <= high) return number;
    }
    return fail_at(at.path, fmt::format("is no whole number from {} to {}", low, high), "correct it");
  }

  std::string text(const JsonPlace& at) const {
    return at.value != nullptr && at.value->is_string() ? at.value->get<std::string>() : std::string();
  }

  Result<void> read_header(const JsonPlace& root) {
    if (!root.value->is_object()) return fail_at("", "is no object", "give a plan of MSCCL++");
    const std::string name = text(member(root, "collective"));
    const auto kind = find_msccl_collective(name);
    if (!kind) {
      return fail_at("collective", fmt::format("'{}' is not read", name.substr(0, 60)),
                     "allreduce, allgather, reducescatter and alltoall are", ErrorCode::unsupported);
    }
    const json* const gpus = member(root, "gpus").value;
    const std::size_t count = gpus != nullptr && gpus->is_array() ? gpus->size() : 0;
    if (count < 2 || count > max_gpus) return fail_at("gpus", "has no 2 to 4096 GPUs", "give a whole plan");
    program_.name = text(member(root, "name"));
    program_.collective = {.kind = *kind, .rank_count = static_cast<std::uint32_t>(count), .root = Rank()};
    const json* const in_place = member(root, "inplace").value;
    program_.in_place = in_place != nullptr && in_place->is_boolean() && in_place->get<bool>();
    return {};
  }

  /// Thread blocks of a group share an operation's chunks: everything is cut so fine that each has whole ones.
  void find_split(const json& at, int depth) {
    constexpr int deepest = 12;  // gpus, threadblocks, ops, the ops of a pipeline, tbg_info: there are no groups below.
    if (!at.is_structured() || depth > deepest) return;
    for (const auto& [key, value] : at.items()) {
      if (key == "tbg_size" && value.is_number_unsigned() && value >= 1 && value <= max_split) {
        const auto split = std::lcm(split_, value.get<std::int64_t>());
        if (split <= max_chunks) split_ = split;
      }
      find_split(value, depth + 1);
    }
  }

  Result<void> read_gpu(const JsonPlace& gpu) {
    const auto count = static_cast<std::int64_t>(program_.ranks.size());
    const auto id = integer(member(gpu, "id"), 0, count - 1);
    if (!id) return tl::unexpected(id.error());
    MscclppRank& rank = program_.ranks[static_cast<std::size_t>(*id)];
    if (gpu.path != fmt::format("gpus[{}]", *id)) {
      return fail_at(gpu.path, "has the id of another place", "list the GPUs in the order of their ids");
    }
    const auto inputs = integer(member(gpu, "input_chunks"), 1, max_chunks);
    if (!inputs) return tl::unexpected(inputs.error());
    auto outputs = integer(member(gpu, "output_chunks"), 0, max_chunks);
    if (!outputs) return tl::unexpected(outputs.error());
    // Plans that work in place may have no output of their own.
    if (*outputs == 0 && program_.collective.kind == CollectiveKind::all_reduce) outputs = inputs;
    const auto scratch = integer(member(gpu, "scratch_chunks"), 0, max_chunks * 16);
    if (!scratch) return tl::unexpected(scratch.error());
    const CollectiveKind kind = program_.collective.kind;
    const std::int64_t chunks = std::max(*inputs, *outputs);
    const bool fits = (kind == CollectiveKind::all_gather       ? *outputs == *inputs * count
                       : kind == CollectiveKind::reduce_scatter ? *inputs == *outputs * count
                                                                : *inputs == *outputs) &&
                      (kind == CollectiveKind::all_reduce || chunks % count == 0);
    if (!fits || (program_.chunks != 0 && program_.chunks != chunks * split_)) {
      return fail_at(gpu.path,
                     fmt::format("{} input and {} output chunks do not fit {} on {} GPUs", *inputs, *outputs,
                                 to_string(kind), count),
                     "correct input_chunks and output_chunks");
    }
    program_.chunks = chunks * split_;
    rank.scratch = *scratch * split_;
    cells_ += 2 * program_.chunks * program_.collective.extent_factor() + rank.scratch;
    if (cells_ > max_cells || program_.chunks * count > max_cells) {
      return fail(ErrorCode::too_large, file_ + ": there are too many chunks at too many GPUs", "use fewer chunks");
    }
    return read_rank_places(gpu, static_cast<std::size_t>(*id));
  }

  Result<void> read_rank_places(const JsonPlace& gpu, std::size_t own) {
    MscclppRank& rank = program_.ranks[own];
    const auto most = static_cast<std::int64_t>(program_.ranks.size()) - 1;
    const auto channels = array(gpu, "channels", false);
    if (!channels) return tl::unexpected(channels.error());
    std::map<std::pair<bool, std::size_t>, std::size_t> counts;
    for (const JsonPlace& channel : *channels) {
      const auto is_port = read_channel_type(channel, "channel_type");
      if (!is_port) return tl::unexpected(is_port.error());
      const auto peers = array(channel, "connected_to");
      if (!peers) return tl::unexpected(peers.error());
      for (const JsonPlace& peer : *peers) {
        const auto number = integer(peer, 0, most);
        if (!number) return tl::unexpected(number.error());
        const auto other = static_cast<std::size_t>(*number);
        if (other == own) return fail_at(peer.path, "is the GPU itself", "connect it to another");
        places_[own].channels[*is_port].push_back(rank.channels.size());
        rank.channels.push_back({*is_port, other, counts[{*is_port, other}]++});
      }
    }
    const auto buffers = array(gpu, "remote_buffers", false);
    if (!buffers) return tl::unexpected(buffers.error());
    for (const JsonPlace& buffer : *buffers) {
      const auto number = integer(member(buffer, "rank"), 0, most);
      if (!number) return tl::unexpected(number.error());
      const auto letter = read_buffer_type(member(buffer, "type"));
      if (!letter) return tl::unexpected(letter.error());
      places_[own].remote.push_back({static_cast<std::size_t>(*number), *letter});
    }
    const auto semaphores = array(gpu, "semaphores", false);
    if (!semaphores) return tl::unexpected(semaphores.error());
    for (const JsonPlace& semaphore : *semaphores) {
      const auto value = integer(member(semaphore, "init_value"), 0, max_chunks);
      if (!value) return tl::unexpected(value.error());
      rank.semaphores.push_back(*value);
    }
    return {};
  }

  Result<char> read_buffer_type(const JsonPlace& at) const {
    const std::string name = text(at);
    if (name == "i" || name == "o" || name == "s") return name.front();
    return fail_at(at.path, fmt::format("'{}' is no buffer", name.substr(0, 60)), "buffers are i, o and s");
  }

  /// Whether it is a port channel; the other kind that is read is of memory.
  Result<bool> read_channel_type(const JsonPlace& at, const char* key) const {
    const JsonPlace type = member(at, key);
    const std::string name = text(type);
    if (name == "memory" || name == "port") return name == "port";
    if (name == "switch") {
      return fail_at(type.path, "channels of a switch, which copies and adds in the network, are not read",
                     "plan with innetwork for such a machine", ErrorCode::unsupported);
    }
    return fail_at(type.path, fmt::format("'{}' is no kind of channel", name.substr(0, 60)), "write memory or port");
  }

  Result<void> read_blocks(const JsonPlace& gpu) {
    const auto own = static_cast<std::size_t>((*gpu.value)["id"].get<std::int64_t>());
    const auto blocks = array(gpu, "threadblocks");
    if (!blocks) return tl::unexpected(blocks.error());
    if (blocks->size() > std::size_t(max_blocks)) return fail_at(gpu.path, "has over 1024 thread blocks", "use fewer");
    for (const JsonPlace& block : *blocks) {
      auto places = read_block_places(block, own);
      if (!places) return tl::unexpected(places.error());
      std::vector<MscclppOp>& ops = program_.ranks[own].blocks.emplace_back();
      if (auto read = read_ops(block, own, *places, ops, true); !read) return read;
    }
    return {};
  }

  Result<BlockPlaces> read_block_places(const JsonPlace& block, std::size_t own) {
    BlockPlaces places;
    const auto channels = array(block, "channels", false);
    if (!channels) return tl::unexpected(channels.error());
    for (const JsonPlace& channel : *channels) {
      const auto is_port = read_channel_type(channel, "channel_type");
      if (!is_port) return tl::unexpected(is_port.error());
      const auto ids = array(channel, "channel_ids");
      if (!ids) return tl::unexpected(ids.error());
      const auto& known = places_[own].channels[*is_port];
      for (const JsonPlace& id : *ids) {
        const auto place = integer(id, 0, static_cast<std::int64_t>(known.size()) - 1);
        if (!place) return tl::unexpected(place.error());
        places.channels[*is_port].push_back(known[static_cast<std::size_t>(*place)]);
      }
    }
    const auto references = array(block, "remote_buffer_refs", false);
    if (!references) return tl::unexpected(references.error());
    for (const JsonPlace& reference : *references) {
      const auto is_port = read_channel_type(reference, "access_channel_type");
      if (!is_port) return tl::unexpected(is_port.error());
      const auto ids = array(reference, "remote_buffer_ids");
      if (!ids) return tl::unexpected(ids.error());
      for (const JsonPlace& id : *ids) {
        const auto place = integer(id, 0, static_cast<std::int64_t>(places_[own].remote.size()) - 1);
        if (!place) return tl::unexpected(place.error());
        places.buffers[*is_port].push_back(static_cast<std::size_t>(*place));
      }
    }
    return places;
  }

  Result<void> read_ops(const JsonPlace& at, std::size_t own, const BlockPlaces& places, std::vector<MscclppOp>& ops,
                        bool may_nest) {
    const auto list = array(at, "ops");
    if (!list) return tl::unexpected(list.error());
    for (const JsonPlace& op : *list) {
      const std::string name = text(member(op, "name"));
      if (name == "pipeline" && may_nest) {
        // The same operations on one part of their chunks after the other: what they do is what they do to the whole.
        if (auto read = read_ops(op, own, places, ops, false); !read) return read;
        continue;
      }
      if (auto read = read_op(op, name, own, places, ops.emplace_back()); !read) return read;
    }
    return {};
  }

  Result<void> read_op(const JsonPlace& at, const std::string& name, std::size_t own, const BlockPlaces& places,
                       MscclppOp& op) {
    const auto form = std::ranges::find(op_forms, name, &OpForm::name);
    if (form == op_forms.end()) {
      return fail_at(at.path, fmt::format("the operation '{}' is not read", name.substr(0, 60)),
                     name.starts_with("g") ? "a switch that copies and adds is planned by innetwork"
                                           : "those of puts, reads, sums, packets and waits are",
                     ErrorCode::unsupported);
    }
    op.kind = form->kind;
    op.signals = form->signals;
    op.awaits_sources = form->reads_packets;
    op.place = at.path;
    const std::string reduction = text(member(at, "reduce_op"));
    if (!reduction.empty() && reduction != "sum") {
      return fail_at(at.path, fmt::format("reduce_op '{}' is not read", reduction.substr(0, 60)),
                     "which operation adds is chosen when a schedule runs; export it with sum", ErrorCode::unsupported);
    }
    if (auto read = read_waits(at, own, places, op); !read) return read;
    if (op.kind != Kind::move && op.kind != Kind::reduce) return {};
    if (auto read = read_runs(at, "src_buff", own, places, op.sources); !read) return read;
    if (auto read = read_runs(at, "dst_buff", own, places, op.targets); !read) return read;
    if (op.sources.size() > max_runs || op.targets.size() > form->max_targets) {
      return fail_at(at.path, fmt::format("{} has more places than it uses", name), "leave them out");
    }
    return check_runs(at, op);
  }

  Result<void> read_waits(const JsonPlace& at, std::size_t own, const BlockPlaces& places, MscclppOp& op) const {
    if (op.kind == Kind::signal || op.kind == Kind::wait || op.signals) {
      const auto is_port = read_channel_type(at, "channel_type");
      if (!is_port) return tl::unexpected(is_port.error());
      const auto found = places.channels.find(*is_port);
      const std::int64_t most = found == places.channels.end() ? 0 : std::int64_t(found->second.size());
      const auto ids = array(at, "channel_ids");
      if (!ids) return tl::unexpected(ids.error());
      for (const JsonPlace& id : *ids) {
        const auto place = integer(id, 0, most - 1);
        if (!place) return tl::unexpected(place.error());
        op.channels.push_back(found->second[static_cast<std::size_t>(*place)]);
      }
    }
    if (op.kind == Kind::acquire || op.kind == Kind::release) {
      const auto ids = array(at, "semaphore_ids");
      if (!ids) return tl::unexpected(ids.error());
      for (const JsonPlace& id : *ids) {
        const auto place = integer(id, 0, std::int64_t(program_.ranks[own].semaphores.size()) - 1);
        if (!place) return tl::unexpected(place.error());
        op.semaphores.push_back(*place);
      }
    }
    if (op.kind == Kind::barrier) {
      const auto id = integer(member(at, "barrier_id"), 0, max_blocks);
      if (!id) return tl::unexpected(id.error());
      const auto blocks = integer(member(at, "num_threadblocks"), 1, max_blocks);
      if (!blocks) return tl::unexpected(blocks.error());
      op.barrier = *id;
      op.barrier_blocks = *blocks;
    }
    return {};
  }

  Result<void> read_runs(const JsonPlace& at, const char* key, std::size_t own, const BlockPlaces& places,
                         std::vector<MscclppCells>& runs) const {
    std::int64_t part = 0, parts = 1;
    if (const JsonPlace group = member(at, "tbg_info"); group.value != nullptr) {
      const auto size = integer(member(group, "tbg_size"), 1, max_split);
      if (!size) return tl::unexpected(size.error());
      const auto id = integer(member(group, "tb_id"), 0, *size - 1);
      if (!id) return tl::unexpected(id.error());
      if (split_ % *size != 0) return fail_at(group.path, "too many sizes of groups", "use fewer");
      part = *id;
      parts = *size;
    }
    const auto list = array(at, key);
    if (!list) return tl::unexpected(list.error());
    for (const JsonPlace& buffer : *list) {
      MscclppCells run{.rank = own};
      if (const JsonPlace reference = member(buffer, "buffer_id"); reference.value != nullptr) {
        const auto is_port = read_channel_type(at, "channel_type");
        if (!is_port) return tl::unexpected(is_port.error());
        const auto found = places.buffers.find(*is_port);
        const std::int64_t most = found == places.buffers.end() ? 0 : std::int64_t(found->second.size());
        const auto place = integer(reference, 0, most - 1);
        if (!place) return tl::unexpected(place.error());
        const RemoteBuffer& remote = places_[own].remote[found->second[static_cast<std::size_t>(*place)]];
        run.rank = remote.rank;
        run.first.buffer = remote.buffer;
      } else {
        const auto letter = read_buffer_type(member(buffer, "type"));
        if (!letter) return tl::unexpected(letter.error());
        run.first.buffer = *letter;
      }
      const auto index = integer(member(buffer, "index"), 0, max_chunks * 16);
      if (!index) return tl::unexpected(index.error());
      const auto size = integer(member(buffer, "size"), 1, max_chunks);
      if (!size) return tl::unexpected(size.error());
      run.count = *size * split_ / parts;
      run.first.offset = *index * split_ + part * run.count;
      if (auto checked = check_run(buffer.path, run); !checked) return checked;
      runs.push_back(run);
    }
    return {};
  }

  Result<void> check_run(const std::string& path, const MscclppCells& run) const {
    const CollectiveKind kind = program_.collective.kind;
    const std::int64_t shard = program_.chunks / program_.collective.rank_count;
    std::int64_t length = program_.chunks;
    if (run.first.buffer == 's') length = program_.ranks[run.rank].scratch;
    if (run.first.buffer == 'i' && kind == CollectiveKind::all_gather) length = shard;
    if (run.first.buffer == 'o' && kind == CollectiveKind::reduce_scatter) length = shard;
    if (run.first.offset + run.count <= length) return {};
    return fail_at(
        path,
        fmt::format("reaches beyond the {} chunks of buffer {} of GPU {}", length / split_, run.first.buffer, run.rank),
        "correct index and size");
  }

  Result<void> check_runs(const JsonPlace& at, const MscclppOp& op) const {
    if (op.sources.empty() || op.targets.empty()) {
      return fail_at(at.path, "has no source or no target", "write src_buff and dst_buff");
    }
    if (op.kind == Kind::move && op.sources.size() != 1 && op.sources.size() != op.targets.size()) {
      return fail_at(at.path, "has other numbers of sources and targets", "write one source, or one per target");
    }
    for (const auto* runs : {&op.sources, &op.targets}) {
      for (const MscclppCells& run : *runs) {
        // Sizes of several moves in one operation may differ, each source from the next, but not source from target.
        const auto place = static_cast<std::size_t>(&run - runs->data());
        const MscclppCells& source =
            op.kind == Kind::move && op.sources.size() > 1 ? op.sources[place] : op.sources.front();
        if (run.count == source.count) continue;
        return fail_at(at.path, "moves between places of unlike size", "correct the sizes");
      }
    }
    return {};
  }

  const std::string& file_;
  MscclppProgram program_;
  std::vector<RankPlaces> places_;
  std::int64_t split_ = 1;  ///< Chunks here per chunk of the file.
  std::int64_t cells_ = 0;
};

}  // namespace

Result<MscclppProgram> read_mscclpp_program(std::string_view text, const std::string& file) {
  try {
    const json document = json::parse(text);
    return MscclppReader(file).read(document);
  } catch (const json::exception& wrong) {
    std::string_view what = wrong.what();  // "[json.exception...] parse error at line 1, column 2: ..."
    if (const std::size_t end = what.find("] "); end != std::string_view::npos) what.remove_prefix(end + 2);
    return fail(ErrorCode::invalid_input, fmt::format("{}: {}", file, printable(what)), "give a plan of MSCCL++");
  }
}

}  // namespace espalier
