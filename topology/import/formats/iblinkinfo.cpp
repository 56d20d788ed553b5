// What iblinkinfo prints: a block per switch and host adapter, with a line for each port, the speed and state of its
// link between "==(" and ")==>"; with --line each line has the GUIDs and names of both ends, and there are no blocks.
// Switches and ports are told apart by their LIDs. Source: rdma-core (2024), infiniband-diags/iblinkinfo.c.

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "topology/import/formats/fabric.h"
#include "topology/import/formats/readers.h"
#include "topology/import/lines.h"

namespace espalier {
namespace {

constexpr std::string_view link_begin = "==(", link_end = ")==>";

/// The generation whose lanes signal at so many Gbit/s, as the tool prints it.
std::string_view generation_of_signal(double gigabits) {
  constexpr std::array<std::pair<double, std::string_view>, 9> signals = {{{2.5, "SDR"},
                                                                           {5, "DDR"},
                                                                           {10, "QDR"},
                                                                           {10.3125, "FDR10"},
                                                                           {14.0625, "FDR"},
                                                                           {25.78125, "EDR"},
                                                                           {53.125, "HDR"},
                                                                           {106.25, "NDR"},
                                                                           {212.5, "XDR"}}};
  for (const auto& [signal, name] : signals) {
    if (gigabits > signal - 0.01 && gigabits < signal + 0.01) return name;
  }
  return {};
}

/// `4X 53.125 Gbps Active/ LinkUp`, `4X FDR10 Active/ LinkUp`, `4X 10.0 Gbps (FDR10) Active/ LinkUp`.
std::optional<Bandwidth> link_rate(const std::vector<Word>& words) {
  if (words.size() < 2 || !words[0].text.ends_with('X')) return std::nullopt;
  const auto width = whole_number(words[0].text.substr(0, words[0].text.size() - 1));
  const auto signal = decimal_number(words[1].text);
  const bool is_fdr10 = std::ranges::find(words, "(FDR10)", &Word::text) != words.end();
  const auto lane = infiniband_lane_rate(is_fdr10 ? "FDR10" : signal ? generation_of_signal(*signal) : words[1].text);
  if (!width || *width < 1 || *width > 12 || !lane) return std::nullopt;
  return Bandwidth{*width * *lane * 125'000};
}

/// A port by the LID of its switch or its own, and its number.
using PortKey = std::pair<std::int64_t, std::int64_t>;

/// `3    1[  ]`, with a GUID before it at adapters.
std::optional<PortKey> port_in(std::string_view text) {
  const std::size_t bracket = text.find('[');
  if (bracket == std::string_view::npos) return std::nullopt;
  const auto words = TextLine{text.substr(0, bracket), 0}.words();
  if (words.size() < 2) return std::nullopt;
  const auto lid = whole_number(words[words.size() - 2].text), port = whole_number(words.back().text);
  return lid && port ? std::optional(PortKey(*lid, *port)) : std::nullopt;
}

/// What a line of a port says; its own name with --line alone.
struct PortLine {
  std::string_view own, link, far, own_name, far_name;
};

/// What stands between quotes, without blanks around it; empty where nothing does.
std::string_view quoted_name(std::string_view text) {
  const std::size_t open = text.find('"');
  const std::size_t close = open == std::string_view::npos ? open : text.find('"', open + 1);
  if (close == std::string_view::npos) return {};
  std::string_view name = text.substr(open + 1, close - open - 1);
  while (name.starts_with(' ')) name.remove_prefix(1);
  while (name.ends_with(' ')) name.remove_suffix(1);
  return name;
}

std::optional<PortLine> split_port(std::string_view line) {
  const std::size_t begin = line.find(link_begin), end = line.find(link_end);
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return std::nullopt;
  const std::string_view own = line.substr(0, begin), far = line.substr(end + link_end.size());
  const std::size_t link = begin + link_begin.size();
  return PortLine{own, line.substr(link, end - link), far.substr(0, far.find('"')), quoted_name(own), quoted_name(far)};
}

bool is_active(std::string_view link) { return link.find("Active/") != std::string_view::npos; }

class LinkText {
 public:
  LinkText(std::string_view text, const std::string& file) : file_(file), lines_(lines_of(text)) {}

  Result<Fabric> read() {
    find_switches();
    for (const TextLine& line : lines_) {
      if (auto read = read_line(line); !read) return tl::unexpected(read.error());
    }
    if (!fabric_.devices.empty()) return std::move(fabric_);
    return fail_at(file_, 1, 1, "there is no port of a switch or adapter that is active",
                   "copy all that iblinkinfo prints");
  }

 private:
  /// Ports of adapters may name a switch before its block comes, and blocks of switches may be missing: LIDs that
  /// several ports share are those of switches, too, as each port of an adapter has its own.
  void find_switches() {
    bool is_in_switch = false;
    std::map<std::int64_t, std::int64_t> ports;
    const auto count = [&](const std::optional<PortKey>& key) {
      if (key && ports.emplace(*key).first->second != key->second) switches_.insert(key->first);
    };
    for (const TextLine& line : lines_) {
      if (line.text.starts_with("Switch")) is_in_switch = true;
      if (line.text.starts_with("CA")) is_in_switch = false;
      const auto port = split_port(line.text);
      if (!port) continue;
      const auto own = port_in(port->own);
      if (own && is_in_switch) switches_.insert(own->first);
      count(own);
      if (is_active(port->link)) count(port_in(port->far));
    }
  }

  Result<void> read_line(const TextLine& line) {
    const std::string_view text = line.text;
    if (text.starts_with("Switch") || text.starts_with("CA")) {
      begin_block(text);
      return {};
    }
    const auto port = split_port(text);
    const auto fail_port = [&] {
      return fail_at(file_, line.number, 1, cited(text) + " is no port",
                     "ports are: 3  1[  ] ==( 4X 53.125 Gbps Active/  LinkUp)==>  7  1[  ] \"name\" ( )");
    };
    if (!port && port_in(text)) return fail_port();  // It ends early.
    if (!port || !is_active(port->link)) return {};
    const auto own = port_in(port->own), far = port_in(port->far);
    if (!own || !far || port->far_name.empty()) return fail_port();
    const auto rate = link_rate(TextLine{port->link, line.number}.words());
    if (!rate) {
      return fail_at(file_, line.number, static_cast<int>(port->own.size()) + 1,
                     cited(port->link) + " is no rate of InfiniBand", "write it as 4X 53.125 Gbps");
    }
    if (!seen_.insert(std::minmax(*own, *far)).second) return {};
    const std::size_t near_end = find_device(own->first, port->own_name.empty() ? name_ : port->own_name);
    const std::size_t far_end = find_device(far->first, port->far_name);
    if (near_end == far_end) {
      fabric_.self_cables.push_back(line.number);
    } else {
      const std::string said = file_ + ": " + std::string(port->link);
      fabric_.cables.push_back({near_end, far_end, {*rate, Origin::captured, said}});
    }
    return {};
  }

  /// `Switch: 0xb859... MF0;leaf3:MQM8700/U1:`, `CA: node01 mlx5_0:`
  void begin_block(std::string_view line) {
    name_ = line.substr(std::min(line.find(':') + 1, line.size()));
    while (name_.ends_with(':') || name_.ends_with(' ')) name_.remove_suffix(1);
    while (name_.starts_with(' ')) name_.remove_prefix(1);
    if (name_.starts_with("0x")) name_.remove_prefix(std::min(name_.find(' ') + 1, name_.size()));
  }

  /// A switch by its LID; an adapter, whose ports have one each, by its name.
  std::size_t find_device(std::int64_t lid, std::string_view name) {
    const bool is_switch = switches_.contains(lid);
    std::string key = is_switch ? "S-" + std::to_string(lid) : "H-" + std::string(name);
    const auto [known, is_new] = by_key_.try_emplace(std::move(key), fabric_.devices.size());
    if (is_new) fabric_.devices.push_back({known->first, std::string(name), {}, {}});
    return known->second;
  }

  const std::string& file_;
  std::vector<TextLine> lines_;
  Fabric fabric_;
  std::set<std::int64_t> switches_;  ///< Their LIDs.
  std::map<std::string, std::size_t> by_key_;
  std::set<std::pair<PortKey, PortKey>> seen_;
  std::string_view name_;  ///< Of the block.
};

}  // namespace

Result<Draft> read_iblinkinfo(std::string_view text, const std::string& file) {
  const std::string plain = without_escapes(text);
  auto fabric = LinkText(plain, file).read();
  if (!fabric) return tl::unexpected(fabric.error());
  return draft_of(*fabric, file);
}

}  // namespace espalier
