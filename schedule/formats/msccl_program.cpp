#include "schedule/formats/msccl_program.h"

#include <fmt/format.h>

#include <map>

#include "topology/import/xml_file.h"

namespace espalier {
namespace {

using pugi::xml_node;

constexpr std::int64_t max_read_ranks = 4096, max_read_chunks = 65'536, max_read_channels = 1024;
constexpr std::int64_t max_read_states = std::int64_t{1} << 24U;

class ProgramReader {
 public:
  explicit ProgramReader(const XmlFile& xml) : xml_(xml) {}

  Result<MscclProgram> read() {
    const xml_node algo = xml_.root();
    if (std::string_view(algo.name()) != "algo")
      return xml_.fail_at(algo, "MSCCL XML is an <algo>", "give such a file");
    if (auto read = read_header(algo); !read) return tl::unexpected(read.error());
    for (const xml_node gpu : algo.children("gpu")) {
      const auto id = xml_.integer(gpu, "id", -1, 0, static_cast<std::int64_t>(program_.ranks.size()) - 1);
      if (!id) return tl::unexpected(id.error());
      if (*id < 0 || !program_.ranks[static_cast<std::size_t>(*id)].empty()) {
        return xml_.fail_at(gpu, "it has no id, or that of another", "number the GPUs from 0 to ngpus - 1");
      }
      if (auto read = read_gpu(gpu, program_.ranks[static_cast<std::size_t>(*id)]); !read)
        return tl::unexpected(read.error());
    }
    return std::move(program_);
  }

 private:
  Result<void> read_header(xml_node algo) {
    const std::string_view name = algo.attribute("coll").value();
    const auto kind = find_msccl_collective(name);
    if (!kind) {
      auto refused = xml_.fail_at(algo, fmt::format("coll=\"{}\" is not read", name.substr(0, 60)),
                                  "allreduce, allgather, reducescatter and alltoall are");
      refused.value().code = ErrorCode::unsupported;
      return refused;
    }
    const auto ranks = xml_.integer(algo, "ngpus", 0, 2, max_read_ranks);
    if (!ranks) return tl::unexpected(ranks.error());
    const auto chunks = xml_.integer(algo, "nchunksperloop", 0, 1, max_read_chunks);
    if (!chunks) return tl::unexpected(chunks.error());
    if (*ranks == 0 || *chunks == 0) return xml_.fail_at(algo, "ngpus or nchunksperloop is missing", "write both");
    if (*chunks % *ranks != 0 && *kind != CollectiveKind::all_reduce) {
      return xml_.fail_at(algo, fmt::format("{} chunks do not divide among {} GPUs", *chunks, *ranks),
                          "correct nchunksperloop");
    }
    // Which version of each chunk every rank has is kept while the program runs.
    const std::int64_t whole = *chunks * (*kind == CollectiveKind::all_to_all ? *ranks : 1);
    if (whole * *ranks > max_read_states) {
      return fail(ErrorCode::too_large, "there are too many chunks at too many GPUs", "use fewer chunks");
    }
    program_.name = algo.attribute("name").value();
    program_.collective = {.kind = *kind, .rank_count = static_cast<std::uint32_t>(*ranks), .root = Rank()};
    program_.chunks = *chunks;
    program_.ranks.resize(static_cast<std::size_t>(*ranks));
    return {};
  }

  Result<void> read_gpu(xml_node gpu, std::vector<MscclBlock>& blocks) {
    std::map<std::int64_t, std::int32_t> places;
    for (const xml_node tb : gpu.children("tb")) {
      const auto id = xml_.integer(tb, "id", -1, 0, max_read_chunks);
      if (!id) return tl::unexpected(id.error());
      if (!places.emplace(*id, static_cast<std::int32_t>(places.size())).second) {
        return xml_.fail_at(tb, fmt::format("the thread block {} is there twice", *id), "number them");
      }
    }
    const auto last_rank = static_cast<std::int64_t>(program_.ranks.size()) - 1;
    for (const xml_node tb : gpu.children("tb")) {
      MscclBlock& block = blocks.emplace_back();
      for (const auto& [name, value, high] :
           {std::tuple{"send", &block.send, last_rank}, std::tuple{"recv", &block.receive, last_rank},
            std::tuple{"chan", &block.channel, max_read_channels}}) {
        const auto read = xml_.integer(tb, name, name == std::string_view("chan") ? 0 : -1, -1, high);
        if (!read) return tl::unexpected(read.error());
        *value = *read;
      }
      for (const xml_node step : tb.children("step")) {
        if (auto read = read_step(step, block, places); !read) return read;
      }
    }
    for (const MscclBlock& block : blocks) {
      for (const MscclOp& op : block.ops) {
        if (op.after_block < 0) continue;
        const auto steps = static_cast<std::int32_t>(blocks[static_cast<std::size_t>(op.after_block)].ops.size());
        if (op.after_step >= steps)
          return xml_.fail_at(gpu, "a step waits for one that is not there", "correct depid and deps");
      }
    }
    return {};
  }

  Result<void> read_step(xml_node step, MscclBlock& block, const std::map<std::int64_t, std::int32_t>& places) {
    const std::string_view type = step.attribute("type").value();
    MscclOp op{.line = xml_.line(step)};
    op.receives = type.starts_with('r') && type != "re";
    op.reduces = type.starts_with("rr");
    op.sends = type == "s" || type == "rcs" || type == "rrs" || type == "rrcs";
    op.copies = type == "cpy";
    op.sums = type == "re";
    const bool is_known = op.sends || op.copies || op.sums || type == "r" || type == "rrc" || type == "nop";
    if (!is_known) {
      auto refused = xml_.fail_at(step, fmt::format("type=\"{}\" is not read", type.substr(0, 60)),
                                  "types are s, r, rcs, rrs, rrc, rrcs, re, cpy and nop");
      refused.value().code = ErrorCode::unsupported;
      return refused;
    }
    if ((op.sends && block.send < 0) || (op.receives && block.receive < 0)) {
      return xml_.fail_at(step, "its thread block has no peer for it", "write send= and recv= of the <tb>");
    }
    if (auto read = read_chunk(step, "srcbuf", "srcoff", op.src); !read) return read;
    if (auto read = read_chunk(step, "dstbuf", "dstoff", op.dst); !read) return read;
    const auto count = xml_.integer(step, "cnt", 1, 0, max_read_chunks);
    if (!count) return tl::unexpected(count.error());
    op.count = *count;
    const auto after_block = xml_.integer(step, "depid", -1, -1, max_read_chunks);
    if (!after_block) return tl::unexpected(after_block.error());
    const auto after_step = xml_.integer(step, "deps", -1, -1, 1'000'000);
    if (!after_step) return tl::unexpected(after_step.error());
    if (*after_block >= 0 && *after_step >= 0) {
      const auto place = places.find(*after_block);
      if (place == places.end())
        return xml_.fail_at(step, fmt::format("there is no thread block {}", *after_block), "correct depid");
      op.after_block = place->second;
      op.after_step = static_cast<std::int32_t>(*after_step);
    }
    block.ops.push_back(op);
    return {};
  }

  Result<void> read_chunk(xml_node step, const char* buffer, const char* offset, MscclChunk& chunk) const {
    const std::string_view name = step.attribute(buffer).value();
    if (name != "i" && name != "o" && name != "s") {
      return xml_.fail_at(step, fmt::format("{}=\"{}\" is no buffer", buffer, name.substr(0, 60)),
                          "buffers are i, o and s");
    }
    const auto place = xml_.integer(step, offset, 0, -1, max_read_chunks);
    if (!place) return tl::unexpected(place.error());
    chunk = {name.front(), *place};
    return {};
  }

  const XmlFile& xml_;
  MscclProgram program_;
};

}  // namespace

Result<MscclProgram> read_msccl_program(std::string_view text, const std::string& file) {
  const auto xml = XmlFile::parse(text, file);
  if (!xml) return tl::unexpected(xml.error());
  return ProgramReader(*xml).read();
}

}  // namespace espalier
