// Network files of ASTRA-sim's analytical model: a block per dimension, NPUs numbered with the first dimension fastest.

#include <fmt/format.h>

#include "base/parse_units.h"
#include "topology/import/formats/readers.h"
#include "topology/import/lines.h"
#include "topology/import/yaml_file.h"

namespace espalier {
namespace {

constexpr std::int64_t max_npus = 65'536;
constexpr std::size_t max_astra_links = 1'000'000;

struct Dimension {
  std::string block;
  std::int64_t size = 0;
  Known<Bandwidth> bandwidth;
  Known<Picoseconds> latency;
};

class AstraReader {
 public:
  AstraReader(const YamlFile& yaml, const std::string& file) : yaml_(yaml) { draft_.file = file; }

  Result<Draft> read() {
    if (!yaml_.root().is_map())
      return yaml_.fail_at(yaml_.root(), "this is no map", "write topology: [ Ring ] and so on");
    const auto count = read_dimensions();
    if (!count) return tl::unexpected(count.error());
    for (std::int64_t i = 0; i < *count; ++i) draft_.add({.id = fmt::format("npu{}", i), .is_rank = true});
    std::int64_t stride = 1;
    for (std::size_t d = 0; d < dimensions_.size(); ++d) {
      for (std::int64_t first = 0; first < *count; ++first) {
        if ((first / stride) % dimensions_[d].size != 0) continue;
        if (!join(d, first, stride)) {
          return fail(ErrorCode::too_large, fmt::format("{}: more than {} links", draft_.file, max_astra_links),
                      "use Switch in place of FullyConnected");
        }
      }
      stride *= dimensions_[d].size;
    }
    return std::move(draft_);
  }

 private:
  /// The number of NPUs.
  Result<std::int64_t> read_dimensions() {
    const Value topology = yaml_.root().find("topology");
    if (!topology || !topology.is_list() || topology.size() == 0) {
      return yaml_.fail_at(topology ? topology : yaml_.root(), "'topology' is no list",
                           "write topology: [ Ring, Switch ]");
    }
    for (const char* key : {"npus_count", "bandwidth", "latency"}) {
      const Value list = yaml_.root().find(key);
      if (!list || !list.is_list() || list.size() != topology.size()) {
        return yaml_.fail_at(list ? list : yaml_.root(), fmt::format("'{}' has no entry for each dimension", key),
                             fmt::format("'topology' has {} entries", topology.size()));
      }
    }
    std::int64_t npus = 1;
    for (std::size_t i = 0; i < topology.size(); ++i) {
      auto dimension = read_dimension(i, topology.item(i));
      if (!dimension) return tl::unexpected(dimension.error());
      npus *= dimension->size;
      if (npus > max_npus) {
        return yaml_.fail_at(yaml_.root().find("npus_count"), fmt::format("more than {} NPUs", max_npus), "use fewer");
      }
      dimensions_.push_back(*std::move(dimension));
    }
    return npus;
  }

  Result<Dimension> read_dimension(std::size_t i, Value block) {
    const auto item = [&](const char* key) { return yaml_.root().find(key).item(i); };
    Dimension dimension{.block = std::string(block.text())};
    if (dimension.block != "Ring" && dimension.block != "Switch" && dimension.block != "FullyConnected") {
      return yaml_.fail_at(block, cited(dimension.block) + " is no block of ASTRA-sim's",
                           "blocks are Ring, FullyConnected and Switch");
    }
    const auto size = whole_number(item("npus_count").text());
    if (!size || *size < 1 || *size > max_npus) {
      return yaml_.fail_at(item("npus_count"), cited(item("npus_count").text()) + " is no number of NPUs", "write 8");
    }
    dimension.size = *size;
    const auto bandwidth = parse_bandwidth(std::string(item("bandwidth").text()) + " GB/s");
    if (!bandwidth) {
      return yaml_.fail_at(item("bandwidth"), cited(item("bandwidth").text()) + " is no rate in GB/s",
                           "write 50 or 12.5");
    }
    const auto latency = parse_latency(std::string(item("latency").text()) + " ns");
    if (!latency) {
      return yaml_.fail_at(item("latency"), cited(item("latency").text()) + " is no latency in ns",
                           "write 500 or 936.25");
    }
    dimension.bandwidth = {*bandwidth, Origin::captured, draft_.file + ": bandwidth"};
    dimension.latency = {*latency, Origin::captured, draft_.file + ": latency"};
    return dimension;
  }

  /// Joins the NPUs of one line along a dimension; false past the limit of links.
  bool join(std::size_t d, std::int64_t first, std::int64_t stride) {
    const Dimension& dimension = dimensions_[d];
    const std::int64_t size = dimension.size;
    const auto npu = [&](std::int64_t i) { return static_cast<std::size_t>(first + (i % size) * stride); };
    const auto cable = [&](std::size_t tail, std::size_t head) {
      draft_.links.push_back({.tail = tail,
                              .head = head,
                              .medium = Medium::net,
                              .link_class = fmt::format("dim{}", d + 1),
                              .bandwidth = dimension.bandwidth,
                              .latency = dimension.latency});
    };
    if (size == 1) return true;
    if (dimension.block == "Switch") {
      const std::size_t hub = draft_.add({.id = fmt::format("switch{}", switches_++), .kind = NodeKind::switch_node});
      for (std::int64_t i = 0; i < size; ++i) cable(npu(i), hub);
    } else if (dimension.block == "Ring") {
      for (std::int64_t i = 0; i < (size == 2 ? 1 : size); ++i) cable(npu(i), npu(i + 1));
    } else {
      for (std::int64_t i = 0; i < size; ++i) {
        for (std::int64_t j = i + 1; j < size; ++j) cable(npu(i), npu(j));
        if (draft_.links.size() > max_astra_links) return false;
      }
    }
    return draft_.links.size() <= max_astra_links;
  }

  const YamlFile& yaml_;
  Draft draft_;
  std::vector<Dimension> dimensions_;
  std::int64_t switches_ = 0;
};

}  // namespace

Result<Draft> read_astra_network(std::string_view text, const std::string& file) {
  const auto yaml = YamlFile::parse(text, file);
  if (!yaml) return tl::unexpected(yaml.error());
  return AstraReader(*yaml, file).read();
}

}  // namespace espalier
