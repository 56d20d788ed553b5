// What ibnetdiscover prints: a block per switch and host adapter with a line per port. Noise of the tool between blocks
// is passed over.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/counted.h"
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

/// "node01 mlx5_0" or "node01 HCA-1": the host, and the adapter's name there; nothing for descriptions of the card's
/// model.
std::optional<std::pair<std::string_view, std::string_view>> host_and_adapter(std::string_view description) {
  const auto words = TextLine{description, 0}.words();
  if (words.size() != 2 || words[0].text.starts_with("MT") ||
      words[1].text.find_first_of("0123456789") == std::string_view::npos) {
    return std::nullopt;
  }
  return std::pair(words[0].text, words[1].text);
}

bool has_ignoring_case(std::string_view text, std::string_view lower) {
  return std::ranges::search(text, lower, {}, [](char letter) {
           return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
         }).begin() != text.end();
}

/// What holds no ranks although it is no switch.
enum class Role { network_switch, host, aggregation_node, router, gateway };

struct FabricDevice {
  std::string guid;         ///< "S-...", "H-..." or "R-...".
  std::string description;  ///< Of its own block, else of a port that leads to it.
  std::string image;        ///< The system image of its block: one for all devices of a chassis.
  std::string model;        ///< The device id of its block.
};

struct FabricCable {
  std::size_t tail = 0;
  std::size_t head = 0;
  Known<Bandwidth> rate;
};

/// The blocks as they are printed: devices and what joins them.
class FabricText {
 public:
  explicit FabricText(const std::string& file) : file_(file) {}

  std::vector<FabricDevice> devices;
  std::vector<FabricCable> cables;
  std::vector<int> self_cables;  ///< Lines of cables that lead back to their own device.

  Result<void> read(std::string_view text) {
    for (const TextLine& line : lines_of(text)) {
      const auto words = words_of_tool(line);
      if (words.empty()) continue;
      const std::string_view first = words[0].text;
      if (first == "Switch" || first == "Ca" || first == "Rt") {
        if (auto read = begin_block(line); !read) return read;
      } else if (is_port(first) && line.text.find('"') != std::string_view::npos) {
        if (auto read = read_port(line, words); !read) return read;
      } else if (const std::size_t equals = first.find('='); equals != std::string_view::npos) {
        const std::string value(first.substr(equals + 1));
        if (first.starts_with("vendid=")) image_ = model_ = "";
        if (first.starts_with("sysimgguid=")) image_ = value;
        if (first.starts_with("devid=")) model_ = value;
      }
    }
    if (devices.empty()) {
      return fail_at(file_, 1, 1, "there is no 'Switch' and no 'Ca'", "copy all that ibnetdiscover prints");
    }
    return {};
  }

 private:
  /// The words from the first on that the tool printed: a launcher or a log may have put a label before them.
  static std::vector<Word> words_of_tool(const TextLine& line) {
    const std::string_view text = without_stream_tag(line.text);
    auto words = TextLine{text, line.number}.words();
    for (Word& word : words) word.column += static_cast<int>(line.text.size() - text.size());
    constexpr std::size_t max_label_words = 8;
    for (std::size_t i = 0; i < std::min(words.size(), max_label_words) && !words[i].text.starts_with('"'); ++i) {
      const std::string_view word = words[i].text;
      const bool is_key = std::ranges::any_of(std::array{"vendid=", "devid=", "sysimgguid="},
                                              [&](const char* key) { return word.starts_with(key); });
      const bool begins_block = (word == "Switch" || word == "Ca" || word == "Rt") && i + 2 < words.size() &&
                                whole_number(words[i + 1].text) && words[i + 2].text.starts_with('"');
      const bool begins_port = is_port(word) && i + 1 < words.size() && words[i + 1].text.starts_with('"');
      if (!is_key && !begins_block && !begins_port) continue;
      words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    }
    return words;
  }

  /// "[1](guid)", and not a shell's "[root@head".
  static bool is_port(std::string_view word) {
    return word.starts_with('[') && whole_number(word.substr(1, word.find(']') - 1));
  }

  Result<void> begin_block(const TextLine& line) {
    const auto parts = quoted_parts(line.text);
    if (parts.empty() || parts[0].size() < 3) {
      return fail_at(file_, line.number, 1, "this block has no \"S-...\" or \"H-...\"",
                     "copy the whole of what was printed");
    }
    current_ = find_device(parts[0], parts.size() > 1 ? parts[1] : "");
    FabricDevice& device = devices[*current_];
    if (parts.size() > 1) device.description = parts[1];
    device.image = image_;
    device.model = model_;
    image_ = model_ = "";
    return {};
  }

  /// Ports name devices before their own blocks come.
  std::size_t find_device(std::string_view guid, std::string_view description) {
    const auto known = by_guid_.find(guid);
    if (known != by_guid_.end()) return known->second;
    devices.push_back({.guid = std::string(guid), .description = std::string(description), .image = {}, .model = {}});
    return by_guid_.emplace(guid, devices.size() - 1).first->second;
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
    // `ibnetdiscover -f` adds speeds and widths in numbers behind it.
    const auto rated = std::ranges::find_if(words.rbegin(), words.rend(),
                                            [](const Word& word) { return port_rate(word.text).has_value(); });
    if (!current_ || !port || !far_port || parts[0].size() < 3) {
      return fail_at(file_, line.number, words[0].column, cited(line.text) + " is no port of a block",
                     "ports are [1] \"S-0123\"[2] # \"name\" lid 3 4xHDR, behind the line of their switch or adapter");
    }
    if (rated == words.rend()) {
      return fail_at(file_, line.number, words.back().column, cited(words.back().text) + " is no rate of InfiniBand",
                     "write it as 4xHDR");
    }
    // A switch's line gives the name of what is at the other end behind '#', an adapter's line that of itself first.
    const std::size_t far = find_device(parts[0], parts.size() > 1 ? parts.back() : "");
    std::pair near_end{*current_, *port}, far_end{far, *far_port};
    if (!seen_.insert(std::minmax(near_end, far_end)).second) return {};
    if (far == *current_) {
      self_cables.push_back(line.number);
      return {};
    }
    cables.push_back(
        {*current_, far, {*port_rate(rated->text), Origin::captured, file_ + ": " + std::string(rated->text)}});
    return {};
  }

  const std::string& file_;
  std::map<std::string, std::size_t, std::less<>> by_guid_;
  std::set<std::pair<std::pair<std::size_t, std::int64_t>, std::pair<std::size_t, std::int64_t>>> seen_;
  std::optional<std::size_t> current_;
  std::string image_, model_;  // Of the block that comes.
};

/// The hosts and switches of a fabric that was read.
class FabricDraft {
 public:
  FabricDraft(const FabricText& text, const std::string& file) : text_(text) {
    draft_.file = file;
    draft_.scope = Draft::Scope::fabric;
    for (const FabricDevice& device : text.devices) {
      if (device.guid.starts_with("S-") && !device.image.empty()) switch_images_.insert(device.image);
    }
  }

  Draft build() {
    for (const FabricDevice& device : text_.devices) {
      const Role role = role_of(device);
      roles_.push_back(role);
      nodes_.push_back(role == Role::network_switch ? add_switch(device)
                       : role == Role::host         ? add_adapter(device)
                                                    : std::size_t{0});
    }
    for (const FabricCable& cable : text_.cables) add_cable(cable);
    for (const int line : text_.self_cables) {
      draft_.warn(import_codes::left_out, line, "a cable leads back to the device that it comes from",
                  "it was left out");
    }
    warn_of_others();
    warn_of_names();
    warn_of_odd_hosts();
    rate_adapters();
    return std::move(draft_);
  }

 private:
  /// Aggregation nodes are the ends of switches that add (SHARP); a chassis has one system image for its parts.
  [[nodiscard]] Role role_of(const FabricDevice& device) const {
    constexpr std::string_view aggregation_model = "0xcf09";
    if (device.guid.starts_with("S-")) return Role::network_switch;
    if (device.guid.starts_with("R-")) return Role::router;
    if (has_ignoring_case(device.description, "aggregation node") || device.model == aggregation_model) {
      return Role::aggregation_node;
    }
    if (host_and_adapter(device.description)) return Role::host;
    if (has_ignoring_case(device.description, "router")) return Role::router;
    const bool is_in_chassis = switch_images_.contains(device.image);
    const bool names_gateway = std::ranges::any_of(std::array{"gateway", "skyway", "bridgex"}, [&](const char* name) {
      return has_ignoring_case(device.description, name);
    });
    return is_in_chassis || names_gateway ? Role::gateway : Role::host;
  }

  std::size_t add_switch(const FabricDevice& device) {
    return draft_.add({.id = switch_name(device.guid, device.description), .kind = NodeKind::switch_node});
  }

  /// An adapter below its host; one that only names its model, or what another card is called, is a host by its GUID.
  std::size_t add_adapter(const FabricDevice& device) {
    auto named = host_and_adapter(device.description);
    if (named) {
      const auto [known, is_new] = cards_.emplace(device.description, device.image);
      if (!is_new && known->second != device.image && !device.image.empty()) {
        same_names_.push_back(device.description);
        named.reset();
      }
    }
    const std::string host(named ? named->first : device.guid);
    auto known = hosts_.find(host);
    if (known == hosts_.end()) {
      const std::size_t node = draft_.add({.id = host, .kind = NodeKind::cpu, .is_rank = true, .host = host});
      known = hosts_.emplace(host, node).first;
    }
    const std::size_t nic =
        draft_.add({.id = named ? std::string(named->second) : "nic", .kind = NodeKind::nic, .host = host});
    adapter_links_.emplace_back(nic, draft_.links.size());
    draft_.links.push_back({.tail = known->second, .head = nic, .medium = Medium::pcie});
    return nic;
  }

  void add_cable(const FabricCable& cable) {
    for (const auto& [end, other] : {std::pair{cable.tail, cable.head}, std::pair{cable.head, cable.tail}}) {
      const bool is_sharp = roles_[end] == Role::aggregation_node && roles_[other] == Role::network_switch;
      if (is_sharp) draft_.nodes[nodes_[other]].adds = true;
    }
    const auto stays = [&](std::size_t end) { return roles_[end] <= Role::host; };
    if (!stays(cable.tail) || !stays(cable.head)) return;
    draft_.links.push_back(
        {.tail = nodes_[cable.tail], .head = nodes_[cable.head], .medium = Medium::net, .bandwidth = cable.rate});
  }

  void warn_of_others() {
    std::vector<std::string> left_out;
    std::size_t all = 0;
    for (const auto& [role, name] : {std::pair{Role::aggregation_node, "SHARP aggregation node"},
                                     std::pair{Role::router, "router"}, std::pair{Role::gateway, "gateway"}}) {
      const auto count = static_cast<std::size_t>(std::ranges::count(roles_, role));
      if (count > 0) left_out.push_back(counted(count, name));
      all += count;
    }
    if (all == 0) return;
    draft_.warn(import_codes::left_out, 0,
                listed(left_out) + (all == 1 ? " is no host and was left out" : " are no hosts and were left out"),
                "hosts are known by descriptions such as \"node01 mlx5_0\"");
  }

  /// Hosts that manage the fabric, store or let users in have an adapter where those with GPUs have one for each.
  void warn_of_odd_hosts() {
    std::map<std::string, std::size_t> adapters;
    for (const auto& [nic, link] : adapter_links_) ++adapters[draft_.nodes[nic].host];
    std::map<std::size_t, std::size_t> hosts_with;
    for (const auto& [host, count] : adapters) ++hosts_with[count];
    const auto usual = std::ranges::max_element(hosts_with, {}, [](const auto& each) { return each.second; });
    std::vector<std::string> odd;
    for (const auto& [host, count] : adapters) {
      if (4 * count <= usual->first || is_named_as_manager(host)) odd.push_back(host);
    }
    if (odd.empty() || odd.size() == adapters.size()) return;
    draft_.warn(import_codes::other_network, 0,
                fmt::format("{} of {} hosts perhaps run no ranks, by their adapters or names: {}", odd.size(),
                            adapters.size(), listed(odd)),
                fmt::format("they count as ranks; --without {} leaves them out", fmt::join(odd, ",")));
  }

  static bool is_named_as_manager(std::string_view host) {
    return std::ranges::any_of(std::array{"ufm", "mgmt", "login", "storage", "opensm"},
                               [&](const char* name) { return has_ignoring_case(host, name); });
  }

  void warn_of_names() {
    if (same_names_.empty()) return;
    const std::set<std::string> names(same_names_.begin(), same_names_.end());
    draft_.warn(import_codes::contradiction, 0,
                fmt::format("several cards are called {}", listed({names.begin(), names.end()})),
                "all but the first are hosts by their GUIDs; give each host a name of its own");
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

  const FabricText& text_;
  Draft draft_;
  std::set<std::string> switch_images_;
  std::vector<Role> roles_;         // By device.
  std::vector<std::size_t> nodes_;  // By device that stays.
  std::map<std::string, std::size_t> hosts_;
  std::map<std::string, std::string> cards_;                        // System images by description.
  std::vector<std::string> same_names_;                             // Of cards whose name another one has.
  std::vector<std::pair<std::size_t, std::size_t>> adapter_links_;  // NIC, its link to the host
};

}  // namespace

Result<Draft> read_ibnetdiscover(std::string_view text, const std::string& file) {
  FabricText fabric(file);
  const std::string plain = without_escapes(text);
  if (auto read = fabric.read(plain); !read) return tl::unexpected(read.error());
  return FabricDraft(fabric, file).build();
}

}  // namespace espalier
