// What record_nvml writes: a line per GPU, per NVLink and per pair of GPUs.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/disjoint_sets.h"
#include "topology/import/formats/readers.h"
#include "topology/import/inactive_links.h"
#include "topology/import/lines.h"
#include "topology/import/nvml/nvlink_payload.h"
#include "topology/import/pci.h"

namespace espalier {
namespace {

class NvmlReader {
 public:
  explicit NvmlReader(const std::string& file) { draft_.file = file; }

  Result<Draft> read(std::string_view text) {
    for (const TextLine& line : lines_of(text)) {
      if (line.number == 1 || line.words().empty()) continue;
      if (auto read = read_line(line); !read) return tl::unexpected(read.error());
    }
    if (gpus_.empty()) {
      return fail(ErrorCode::infeasible, draft_.file + ": it names no GPU", "NVML saw none on that machine");
    }
    warn_of_links();
    add_nvlinks();
    add_pcie();
    return std::move(draft_);
  }

 private:
  struct Gpu {
    std::size_t node = 0;
    std::optional<Bandwidth> pcie;
    std::int64_t to_switches = 0;
    std::map<std::string, std::int64_t> to_gpus;  ///< NVLinks, by the address of what they lead to.
    std::vector<std::int64_t> down;               ///< Numbers of NVLinks.
    std::size_t to_others = 0;                    ///< NVLinks that lead to neither.
  };
  /// What joins two GPUs on PCIe, the closest first.
  enum class Level { board, pcie_switch, switches, bridge, node, system };
  struct Path {
    std::uint32_t one = 0;
    std::uint32_t other = 0;
    Level level = Level::system;
  };
  using Fields = std::map<std::string_view, Word, std::less<>>;

  tl::unexpected<Error> refuse(const TextLine& line, const Word& word, const std::string& message) const {
    return fail_at(draft_.file, line.number, word.column, message, "espalier topo detect --record writes such files");
  }

  Result<void> read_line(const TextLine& line) {
    const auto words = line.words();
    const std::string_view kind = words[0].text;
    const std::size_t names = kind == "path" ? 2 : 1;
    if (kind != "gpu" && kind != "nvlink" && kind != "path") {
      return refuse(line, words[0], cited(kind) + " is neither gpu, nvlink nor path");
    }
    if (words.size() <= names) return refuse(line, words[0], "a line has a kind and the number of a GPU");
    Fields fields;
    for (std::size_t i = 1 + names; i < words.size(); ++i) {
      const std::size_t equals = words[i].text.find('=');
      if (equals == std::string_view::npos) return refuse(line, words[i], cited(words[i].text) + " is not key=value");
      fields[words[i].text.substr(0, equals)] = {words[i].text.substr(equals + 1), words[i].column};
    }
    if (kind == "gpu") return read_gpu(line, words[1], fields);
    for (std::size_t i = 1; i <= names; ++i) {
      const auto number = whole_number(words[i].text);
      if (!number || *number >= static_cast<std::int64_t>(gpus_.size())) {
        return refuse(line, words[i], cited(words[i].text) + " is no GPU of a line before");
      }
    }
    return kind == "nvlink" ? read_nvlink(line, words[1], fields) : read_path(line, words, fields);
  }

  Result<void> read_gpu(const TextLine& line, const Word& number, const Fields& fields) {
    if (whole_number(number.text) != static_cast<std::int64_t>(gpus_.size())) {
      return refuse(line, number, fmt::format("GPU {} was due", gpus_.size()));
    }
    const auto bus = fields.find("bus");
    if (bus == fields.end()) return refuse(line, number, "the GPU has no bus=");
    Gpu gpu;
    gpu.node = draft_.add({.id = fmt::format("gpu{}", gpus_.size()),
                           .is_rank = true,
                           .bus = normal_bus(bus->second.text),
                           .links_up = Known<std::int64_t>{0, Origin::captured, draft_.file}});
    constexpr std::array speeds = {"", "2.5", "5", "8", "16", "32", "64"};
    const auto generation = number_of(fields, "generation");
    const auto width = number_of(fields, "width");
    if (generation && *generation > 0 && *generation < static_cast<std::int64_t>(speeds.size()) && width &&
        *width > 0) {
      gpu.pcie = pcie_rate(speeds[static_cast<std::size_t>(*generation)], *width);
    }
    gpus_.push_back(std::move(gpu));
    return {};
  }

  static std::optional<std::int64_t> number_of(const Fields& fields, std::string_view key) {
    const auto field = fields.find(key);
    return field == fields.end() ? std::nullopt : whole_number(field->second.text);
  }

  Result<void> read_nvlink(const TextLine& line, const Word& number, const Fields& fields) {
    Gpu& gpu = gpus_[static_cast<std::size_t>(*whole_number(number.text))];
    DraftNode& node = draft_.nodes[gpu.node];
    const auto is = [&](std::string_view key, std::string_view value) {
      const auto field = fields.find(key);
      return field != fields.end() && field->second.text == value;
    };
    if (is("state", "down")) {
      gpu.down.push_back(number_of(fields, "link").value_or(static_cast<std::int64_t>(gpu.down.size())));
      return {};
    }
    if (const auto rate = fields.find("rate"); rate != fields.end()) {
      const auto megabytes = whole_number(rate->second.text);
      constexpr std::int64_t most = 10'000'000;
      if (!megabytes || *megabytes < 1 || *megabytes > most) {
        return refuse(line, rate->second, cited(rate->second.text) + " is no rate in MB/s");
      }
      const Known<Bandwidth> known{nvlink_payload(static_cast<double>(*megabytes) / 1e3), Origin::captured,
                                   draft_.file + ": less its line coding"};
      if (!node.link_rate || known.value < node.link_rate->value) node.link_rate = known;
    }
    const auto bus = fields.find("bus");
    if (is("to", "gpu") && bus != fields.end()) {
      ++gpu.to_gpus[normal_bus(bus->second.text)];
    } else if (is("to", "switch")) {
      ++gpu.to_switches;
    } else {
      ++gpu.to_others;
      return {};
    }
    ++node.links_up->value;
    return {};
  }

  void warn_of_links() {
    InactiveLinks inactive;
    std::vector<std::string> elsewhere;
    for (const Gpu& gpu : gpus_) {
      const DraftNode& node = draft_.nodes[gpu.node];
      inactive.add(node.id, static_cast<std::size_t>(node.links_up->value) + gpu.to_others, gpu.down);
      if (gpu.to_others > 0) elsewhere.push_back(node.id);
    }
    inactive.warn(draft_);
    if (elsewhere.empty()) return;
    draft_.warn(import_codes::left_out, 0, "NVLinks of " + listed(elsewhere) + " lead to neither a GPU nor a switch",
                "they are left out: give what `nvidia-smi topo -m` prints as well");
  }

  Result<void> read_path(const TextLine& line, const std::vector<Word>& words, const Fields& fields) {
    constexpr std::array<std::string_view, 6> names = {"board", "switch", "switches", "bridge", "node", "system"};
    const auto level = fields.find("level");
    const auto* const name = level == fields.end() ? names.end() : std::ranges::find(names, level->second.text);
    if (name == names.end()) return refuse(line, words[0], "the path has no level= that is known");
    paths_.push_back({static_cast<std::uint32_t>(*whole_number(words[1].text)),
                      static_cast<std::uint32_t>(*whole_number(words[2].text)),
                      static_cast<Level>(name - names.begin())});
    return {};
  }

  void add_nvlinks() {
    std::optional<std::size_t> hub;  // All switches as one, as GPUs spread what they send over them.
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      const Gpu& gpu = gpus_[i];
      if (gpu.to_switches > 0) {
        if (!hub) hub = draft_.add({.id = "nvswitch", .kind = NodeKind::switch_node});
        draft_.links.push_back({.tail = gpu.node, .head = *hub, .medium = Medium::nvlink, .count = gpu.to_switches});
      }
      for (std::size_t j = i + 1; j < gpus_.size(); ++j) {
        const std::int64_t there = links_between(i, j);
        const std::int64_t back = links_between(j, i);
        if (there != back) {
          draft_.warn(import_codes::contradiction, 0,
                      fmt::format("{} has {} NVLinks to {}, which has {} back", draft_.nodes[gpu.node].id, there,
                                  draft_.nodes[gpus_[j].node].id, back),
                      "one end is down: `nvidia-smi nvlink -s` on both GPUs");
        }
        if (const std::int64_t count = std::min(there, back); count > 0) {
          draft_.links.push_back({.tail = gpu.node, .head = gpus_[j].node, .medium = Medium::nvlink, .count = count});
        }
      }
    }
  }

  [[nodiscard]] std::int64_t links_between(std::size_t one, std::size_t other) const {
    const auto found = gpus_[one].to_gpus.find(draft_.nodes[gpus_[other].node].bus);
    return found == gpus_[one].to_gpus.end() ? 0 : found->second;
  }

  /// GPUs below a switch share it and what leads up from it; those of a node, its processor.
  void add_pcie() {
    DisjointSets switches(gpus_.size());
    DisjointSets cpus(gpus_.size());
    for (const Path& path : paths_) {
      if (path.level <= Level::switches) switches.join(path.one, path.other);
      if (path.level <= Level::node) cpus.join(path.one, path.other);
    }
    std::map<std::uint32_t, std::size_t> switch_nodes, cpu_nodes;  // by the first GPU below
    for (std::uint32_t i = 0; i < gpus_.size(); ++i) {
      const std::uint32_t group = cpus.find(i);
      if (!cpu_nodes.contains(group)) {
        const std::size_t made = draft_.add({.id = fmt::format("cpu{}", cpu_nodes.size()), .kind = NodeKind::cpu});
        for (const auto& [other, node] : cpu_nodes) {
          draft_.links.push_back({.tail = node, .head = made, .medium = Medium::smp});
        }
        cpu_nodes[group] = made;
      }
      std::size_t above = cpu_nodes[group];
      bool shares = false;
      for (std::uint32_t j = 0; j < gpus_.size(); ++j) shares |= j != i && switches.find(j) == switches.find(i);
      if (shares) {
        const auto [place, is_new] = switch_nodes.try_emplace(switches.find(i), 0);
        if (is_new) {
          place->second = draft_.add({.id = fmt::format("switch{}", switch_nodes.size() - 1), .kind = NodeKind::pcie});
          add_pcie_link(place->second, above, gpus_[i].pcie);
        }
        above = place->second;
      }
      add_pcie_link(gpus_[i].node, above, gpus_[i].pcie);
    }
  }

  void add_pcie_link(std::size_t below, std::size_t above, std::optional<Bandwidth> rate) {
    DraftLink link{.tail = below, .head = above, .medium = Medium::pcie};
    if (rate) link.bandwidth = {*rate, Origin::captured, draft_.file + ": generation and width of the GPU's PCIe"};
    draft_.links.push_back(std::move(link));
  }

  Draft draft_;
  std::vector<Gpu> gpus_;
  std::vector<Path> paths_;
};

}  // namespace

Result<Draft> read_nvml(std::string_view text, const std::string& file) { return NvmlReader(file).read(text); }

}  // namespace espalier
