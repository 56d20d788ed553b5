#pragma once

// Tested by: tests/unit/topology/import/import_test.cpp

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/units.h"
#include "topology/node.h"
#include "topology/provenance.h"

namespace espalier {

/// A value with where it came from.
template <class Value>
struct Known {
  Value value{};
  Origin origin = Origin::assumed;
  std::string source;
};

/// Takes over `from` where `to` is not known, or less well.
template <class Value>
void learn(std::optional<Known<Value>>& to, const std::optional<Known<Value>>& from) {
  if (from && (!to || from->origin > to->origin)) to = from;
}

/// What a link is made of; its name is the class of the imported links.
enum class Medium : std::uint8_t { nvlink, xgmi, c2c, pcie, smp, net };
std::string_view to_string(Medium medium);

struct DraftNode {
  std::string id;  ///< Unique within its host.
  NodeKind kind = NodeKind::gpu;
  bool is_rank = false;
  std::string host;                      ///< Empty for the only machine of a file, and for what no machine contains.
  std::string model;                     ///< Of a GPU: what its vendor calls it; of a processor: Node::model.
  std::string bus;                       ///< PCI address (normal_bus in pci.h), where it is known.
  std::optional<Known<Bandwidth>> port;  ///< Of a NIC: its rate towards the fabric.
  std::optional<Known<Bandwidth>> link_rate;    ///< Of a GPU: the rate of each of its NVLinks or xGMI links.
  std::optional<Known<std::int64_t>> links_up;  ///< Of a GPU: NVLinks that are up.
  bool adds = false;                            ///< A switch that can copy and add in the network.
  bool joins_hosts = false;                     ///< An NVSwitch of a rack: GPUs of several hosts lead to it.
  std::string domain;  ///< Of a host in a fabric: the NVLink domain that it is in; empty where it is not known.
};

/// `count` parallel cables, duplex unless said otherwise.
struct DraftLink {
  std::size_t tail = 0;
  std::size_t head = 0;
  Medium medium = Medium::pcie;
  std::int64_t count = 1;
  bool one_way = false;
  std::string link_class;                     ///< Empty: that of the medium.
  std::optional<Known<Bandwidth>> bandwidth;  ///< Of each of them.
  std::optional<Known<Picoseconds>> latency;
};

/// What one file says of a machine: nodes and links with values that may be missing.
struct Draft {
  /// A machine; or machines (ranks of kind cpu with a host) and switches that join them; or values for the nodes of a
  /// machine that another file describes.
  enum class Scope : std::uint8_t { machine, fabric, details };

  std::string file;
  Scope scope = Scope::machine;
  std::vector<DraftNode> nodes;
  std::vector<DraftLink> links;
  std::vector<Diagnostic> warnings;

  std::size_t add(DraftNode node) {
    nodes.push_back(std::move(node));
    return nodes.size() - 1;
  }
  void warn(std::string_view code, int line, std::string message, std::string help);

  /// The node of that bus address on that host or, failing this, of that id.
  [[nodiscard]] std::optional<std::size_t> find(const DraftNode& like) const;
  [[nodiscard]] bool has(Medium medium) const;
};

/// Codes of what an import warns about; docs/formats.md lists them.
namespace import_codes {

constexpr std::string_view assumed_rate = "I101";
constexpr std::string_view contradiction = "I102";
constexpr std::string_view unbelievable = "I103";
constexpr std::string_view left_out = "I104";
constexpr std::string_view missing_links = "I105";
constexpr std::string_view nvlink_domain = "I106";
constexpr std::string_view other_network = "I107";

}  // namespace import_codes
}  // namespace espalier
