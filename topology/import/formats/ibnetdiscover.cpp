// What ibnetdiscover prints: a block per switch and host adapter with a line per port. Noise of the tool between blocks
// is passed over.

#include <fmt/format.h>

#include <array>
#include <map>
#include <set>

#include "topology/import/formats/readers.h"
#include "topology/import/lines.h"

namespace espalier {
namespace {

/// Payload of one lane, Mbit/s: after 8b/10b up to QDR, 64b/66b up to EDR, and net of error correction beyond.
std::optional<std::int64_t> lane_rate(std::string_view generation) {
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 9> rates = {{{"SDR", 2'000},
                                                                               {"DDR", 4'000},
                                                                               {"QDR", 8'000},
                                                                               {"FDR10", 10'000},
                                                                               {"FDR", 13'636},
                                                                               {"EDR", 25'000},
                                                                               {"HDR", 50'000},
                                                                               {"NDR", 100'000},
                                                                               {"XDR", 200'000}}};
  for (const auto& [name, rate] : rates) {
    if (name == generation) return rate;
  }
  return std::nullopt;
}

/// "4xHDR"
std::optional<Bandwidth> port_rate(std::string_view text) {
  const std::size_t times = text.find('x');
  if (times == std::string_view::npos) return std::nullopt;
  const auto width = whole_number(text.substr(0, times));
  const auto lane = lane_rate(text.substr(times + 1));
  if (!width || *width < 1 || *width > 12 || !lane) return std::nullopt;
  return Bandwidth{*width * *lane * 125'000};
}

/// The texts between quotes.
std::vector<std::string_view> quoted_parts(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = text.find('"'); begin != std::string_view::npos;) {
    const std::size_t end = text.find('"', begin + 1);
    if (end == std::string_view::npos) break;
    parts.push_back(text.substr(begin + 1, end - begin - 1));
    begin = text.find('"', end + 1);
  }
  return parts;
}

/// "MF0;leaf3:MQM8700/U1" as "leaf3"; the description's first word where it is followed by nothing; else the GUID.
std::string switch_name(std::string_view guid, std::string_view description) {
  const std::size_t mark = description.find(';');
  const std::size_t colon = description.find(':', mark == std::string_view::npos ? 0 : mark);
  if (mark != std::string_view::npos && colon != std::string_view::npos && colon > mark + 1) {
    return std::string(description.substr(mark + 1, colon - mark - 1));
  }
  const bool is_one_word = !description.empty() && description.find(' ') == std::string_view::npos;
  return std::string(is_one_word ? description : guid);
}

class FabricReader {
 public:
  explicit FabricReader(const std::string& file) {
    draft_.file = file;
    draft_.scope = Draft::Scope::fabric;
  }

  Result<Draft> read(std::string_view text) {
    for (const TextLine& line : lines_of(text)) {
      const auto words = line.words();
      if (words.empty()) continue;
      const std::string_view first = words[0].text;
      if (first == "Switch" || first == "Ca" || first == "Rt") {
        const auto parts = quoted_parts(line.text);
        if (parts.empty() || parts[0].size() < 3) {
          return fail_at(draft_.file, line.number, 1, "this block has no \"S-...\" or \"H-...\"",
                         "copy the whole of what was printed");
        }
        current_ = find_device(parts[0], parts.size() > 1 ? parts[1] : "");
      } else if (first.starts_with("[")) {
        if (auto read = read_port(line, words); !read) return tl::unexpected(read.error());
      }
    }
    if (devices_.empty())
      return fail_at(draft_.file, 1, 1, "there is no 'Switch' and no 'Ca'", "copy all that ibnetdiscover prints");
    rate_adapters();
    return std::move(draft_);
  }

 private:
  /// A switch, or an adapter below its host. Ports name devices before their own blocks come.
  std::size_t find_device(std::string_view guid, std::string_view description) {
    if (const auto known = devices_.find(guid); known != devices_.end()) return known->second;
    std::size_t node = 0;
    if (guid.starts_with("S-")) {
      node = draft_.add({.id = switch_name(guid, description), .kind = NodeKind::switch_node});
    } else {
      node = add_adapter(guid, description);
    }
    devices_.emplace(guid, node);
    return node;
  }

  /// "node01 mlx5_0": the host, and the adapter's name there; other descriptions are of the card's model.
  std::size_t add_adapter(std::string_view guid, std::string_view description) {
    const auto words = TextLine{description, 0}.words();
    const bool is_host = words.size() == 2 && !words[0].text.starts_with("MT") &&
                         words[1].text.find_first_of("0123456789") != std::string_view::npos;
    const std::string host(is_host ? words[0].text : guid);
    const std::string adapter(is_host ? words[1].text : "nic");
    auto known = hosts_.find(host);
    if (known == hosts_.end()) {
      const std::size_t node = draft_.add({.id = host, .kind = NodeKind::cpu, .is_rank = true, .host = host});
      known = hosts_.emplace(host, node).first;
    }
    const std::size_t nic = draft_.add({.id = adapter, .kind = NodeKind::nic, .host = host});
    adapter_links_.emplace_back(nic, draft_.links.size());
    draft_.links.push_back({.tail = known->second, .head = nic, .medium = Medium::pcie});
    return nic;
  }

  /// `[1](guid) "S-guid"[4] # ... 4xHDR`: what the port of the current block leads to. Both ends list a cable.
  Result<void> read_port(const TextLine& line, const std::vector<Word>& words) {
    const auto parts = quoted_parts(line.text);
    const std::string_view own = words[0].text.substr(1, words[0].text.find(']') - 1);
    const std::size_t behind = parts.empty()
                                   ? std::string_view::npos
                                   : static_cast<std::size_t>(parts[0].data() - line.text.data()) + parts[0].size();
    const std::size_t end = behind < line.text.size() ? line.text.find(']', behind) : std::string_view::npos;
    const auto port = whole_number(own);
    const auto far_port = end == std::string_view::npos || line.text.substr(behind, 2) != "\"["
                              ? std::nullopt
                              : whole_number(line.text.substr(behind + 2, end - behind - 2));
    const auto rate = port_rate(words.back().text);
    if (!current_ || !port || !far_port || parts[0].size() < 3) {
      return fail_at(draft_.file, line.number, words[0].column, cited(line.text) + " is no port of a block",
                     "ports are [1] \"S-0123\"[2] # \"name\" lid 3 4xHDR, behind the line of their switch or adapter");
    }
    if (!rate) {
      return fail_at(draft_.file, line.number, words.back().column,
                     cited(words.back().text) + " is no rate of InfiniBand", "write it as 4xHDR");
    }
    // A switch's line gives the name of what is at the other end behind '#', an adapter's line that of itself first.
    const std::size_t far = find_device(parts[0], parts.size() > 1 ? parts.back() : "");
    std::pair near_end{*current_, *port}, far_end{far, *far_port};
    if (!seen_.insert(std::minmax(near_end, far_end)).second) return {};
    if (far == *current_) {
      draft_.warn(import_codes::left_out, line.number,
                  fmt::format("a cable joins {} with itself", draft_.nodes[far].id), "it was left out");
      return {};
    }
    draft_.links.push_back(
        {.tail = *current_,
         .head = far,
         .medium = Medium::net,
         .bandwidth = Known<Bandwidth>{*rate, Origin::captured, draft_.file + ": " + std::string(words.back().text)}});
    return {};
  }

  /// The file does not say how adapters are joined to their hosts: as fast as their ports, so that they limit nothing.
  void rate_adapters() {
    std::map<std::size_t, std::int64_t> sums;
    for (const DraftLink& link : draft_.links) {
      if (link.medium != Medium::net) continue;
      for (const std::size_t end : {link.tail, link.head}) sums[end] += link.bandwidth->value.bytes_per_second;
    }
    for (const auto& [nic, link] : adapter_links_) {
      if (sums[nic] > 0) draft_.links[link].bandwidth = {{sums[nic]}, Origin::assumed, "as fast as the ports"};
    }
  }

  Draft draft_;
  std::map<std::string, std::size_t, std::less<>> devices_;
  std::map<std::string, std::size_t> hosts_;
  std::vector<std::pair<std::size_t, std::size_t>> adapter_links_;  // NIC, its link to the host
  std::set<std::pair<std::pair<std::size_t, std::int64_t>, std::pair<std::size_t, std::int64_t>>> seen_;
  std::optional<std::size_t> current_;
};

}  // namespace

Result<Draft> read_ibnetdiscover(std::string_view text, const std::string& file) {
  return FabricReader(file).read(text);
}

}  // namespace espalier
