#include "topology/import/formats/fabric.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "base/counted.h"
#include "topology/import/lines.h"

namespace espalier {
namespace {

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

/// The hosts and switches of a fabric that was read.
class FabricDraft {
 public:
  FabricDraft(const Fabric& text, const std::string& file) : text_(text) {
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

  const Fabric& text_;
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

std::optional<std::int64_t> infiniband_lane_rate(std::string_view generation) {
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

Draft draft_of(const Fabric& fabric, const std::string& file) { return FabricDraft(fabric, file).build(); }

}  // namespace espalier
