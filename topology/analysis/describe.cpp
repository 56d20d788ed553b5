#include "topology/analysis/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "base/format_units.h"
#include "topology/analysis/affinity.h"
#include "topology/analysis/analysis.h"
#include "topology/analysis/bisection.h"
#include "topology/analysis/symmetry.h"
#include "topology/names/name_list.h"

namespace espalier {

namespace {

constexpr std::size_t widest_line = 100;

/// Rows of cells, each column as wide as its widest cell; the first column to the left, the others as told.
class Table {
 public:
  explicit Table(std::string alignment) : alignment_(std::move(alignment)) {}

  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  [[nodiscard]] std::string text() const {
    std::vector<std::size_t> widths(alignment_.size(), 0);
    for (const auto& cells : rows_) {
      for (std::size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], cells[i].size());
    }
    std::string lines;
    for (const auto& cells : rows_) {
      std::string line = " ";
      for (std::size_t i = 0; i < cells.size(); ++i) {
        line += alignment_[i] == '<' ? fmt::format(" {:<{}}", cells[i], widths[i] + 1)
                                     : fmt::format(" {:>{}}", cells[i], widths[i]);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      lines += line + "\n";
    }
    return lines;
  }

 private:
  std::string alignment_;
  std::vector<std::vector<std::string>> rows_;
};

/// "25600", "132", "12.5", "0.588": GB/s in four digits, and no fewer than there are before the point.
std::string gigabytes(Bandwidth rate) {
  const double value = static_cast<double>(rate.bytes_per_second) * 1e-9;
  return value >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}

std::string counted(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string summarize_nodes(const Topology& topology, const std::vector<NodeId>& nodes) {
  std::vector<std::string> names;
  for (const NodeId node : nodes) names.push_back(topology.node(node).id);
  return summarize_names(names);
}

std::vector<NodeId> nodes_of(const Topology& topology, const std::vector<Rank>& ranks) {
  std::vector<NodeId> nodes;
  for (const Rank rank : ranks) nodes.push_back(topology.node_of(rank));
  return nodes;
}

std::string describe_nodes(const Topology& topology) {
  Table table("<><<");
  for (const NodeGroup& group : group_nodes(topology)) {
    table.row({std::string(to_string(group.kind)), std::to_string(group.nodes.size()), group.are_ranks ? " ranks" : "",
               summarize_nodes(topology, group.nodes)});
  }
  std::vector<NodeId> ends;
  for (std::size_t i = 0; i < topology.node_count(); ++i) {
    if (topology.node(NodeId(i)).must_not_relay()) ends.emplace_back(i);
  }
  const std::string remark = ends.empty() ? "" : "  must not relay: " + summarize_nodes(topology, ends) + "\n";
  return "Nodes\n" + table.text() + remark;
}

std::string describe_links(const Topology& topology) {
  if (topology.link_count() == 0) return "";
  Table table("<>>><<");
  table.row({"class", "links", "bandwidth", "latency", " between", ""});
  for (const LinkGroup& group : group_links(topology)) {
    const LinkValues& values = group.values;
    std::vector<std::string> remarks;
    if (values.efficiency_ppm != 1'000'000) {
      remarks.push_back(fmt::format("{} x {:g}", format_bandwidth(values.nominal), values.efficiency_ppm * 1e-6));
    }
    if (values.overhead.count > 0) remarks.push_back("+ " + format_latency(values.overhead) + " per message");
    table.row({values.link_class.empty() ? "-" : values.link_class, std::to_string(group.count),
               gigabytes(values.bandwidth()) + " GB/s", format_latency(values.latency),
               fmt::format(" {} - {}", to_string(group.one_end), to_string(group.other_end)),
               fmt::format("{}", fmt::join(remarks, ", "))});
  }
  return "\nLinks, each direction counted\n" + table.text();
}

std::string describe_egress(const Topology& topology) {
  constexpr std::size_t max_groups = 24;
  Table table("<>><<");
  const std::vector<EgressGroup> groups = group_egress(topology);
  for (std::size_t i = 0; i < std::min(max_groups, groups.size()); ++i) {
    std::vector<std::string> links;
    for (const auto& [name, count] : groups[i].links) links.push_back(fmt::format("{} {}", count, name));
    table.row({std::string(to_string(groups[i].kind)), std::to_string(groups[i].nodes.size()),
               gigabytes(groups[i].total) + " GB/s", fmt::format(" {}", fmt::join(links, " + ")),
               summarize_nodes(topology, groups[i].nodes)});
  }
  const std::string rest =
      groups.size() > max_groups ? fmt::format("  ... and {} more patterns\n", groups.size() - max_groups) : "";
  return "\nOut of each node\n" + table.text() + rest;
}

std::string cell(const Connection& connection) {
  if (connection.hops == 0) return ".";
  const std::int64_t links = static_cast<std::int64_t>(connection.direct_links);
  if (links == 0) return "~" + gigabytes(connection.bandwidth);
  const std::int64_t total = connection.bandwidth.bytes_per_second;
  return links == 1 || total % links != 0 ? gigabytes(connection.bandwidth)
                                          : fmt::format("{}x{}", links, gigabytes({total / links}));
}

std::string describe_rank_matrix(const Topology& topology) {
  const std::size_t count = topology.rank_count();
  Table table("<" + std::string(count, '>'));
  std::vector<std::string> header{""};
  std::size_t longest = 0;
  for (std::size_t i = 0; i < count; ++i) longest = std::max(longest, topology.rank_name(Rank(i)).size());
  // Long names would make wide columns: there the columns carry rank numbers, and the rows both.
  const bool numbers = longest * count > widest_line - 20;
  for (std::size_t i = 0; i < count; ++i) header.push_back(numbers ? std::to_string(i) : topology.rank_name(Rank(i)));
  table.row(header);
  bool through = false;
  bool only_ranks = false;
  for (std::size_t src = 0; src < count; ++src) {
    const std::string& name = topology.rank_name(Rank(src));
    std::vector<std::string> cells{numbers ? fmt::format("{:>2} {}", src, name) : name};
    const std::vector<Connection> row = connections_from(topology, Rank(src));
    for (std::size_t dst = 0; dst < count; ++dst) {
      cells.push_back(src == dst ? "-" : cell(row[dst]));
      through = through || (src != dst && row[dst].hops > 1);
      only_ranks = only_ranks || (src != dst && row[dst].hops == 0);
    }
    table.row(cells);
  }
  std::string legend = "\nRank to rank, GB/s over the shortest ways";
  if (through) legend += "; ~ through nodes that forward";
  if (only_ranks) legend += "; . only through other ranks";
  return legend + "\n" + table.text();
}

/// The connections of the first rank, those alike in one row.
std::string describe_first_rank(const Topology& topology) {
  using Key = std::tuple<std::size_t, std::int64_t, std::size_t>;
  std::map<Key, std::vector<Rank>> alike;
  std::vector<Rank> unreached;
  const std::vector<Connection> connections = connections_from(topology, Rank(0));
  for (std::size_t i = 1; i < connections.size(); ++i) {
    const Connection& to = connections[i];
    if (to.hops == 0) {
      unreached.emplace_back(i);
    } else {
      alike[{to.hops, -to.bandwidth.bytes_per_second, to.direct_links}].emplace_back(i);
    }
  }
  Table table(">><<");
  for (const auto& [key, ranks] : alike) {
    table.row({counted(ranks.size(), "rank"), gigabytes({-std::get<1>(key)}) + " GB/s",
               " " + counted(std::get<0>(key), "hop"), summarize_nodes(topology, nodes_of(topology, ranks))});
  }
  if (!unreached.empty()) {
    table.row({counted(unreached.size(), "rank"), "", " only through other ranks",
               summarize_nodes(topology, nodes_of(topology, unreached))});
  }
  return fmt::format("\nFrom {} over the shortest ways\n", topology.rank_name(Rank(0))) + table.text();
}

std::string describe_host_matrix(const Topology& topology, std::size_t largest) {
  std::vector<std::string> hosts;
  std::vector<std::size_t> host_of_rank;
  for (std::size_t i = 0; i < topology.rank_count(); ++i) {
    const std::string& host = topology.node(topology.node_of(Rank(i))).host;
    const auto found = std::ranges::find(hosts, host);
    host_of_rank.push_back(static_cast<std::size_t>(found - hosts.begin()));
    if (found == hosts.end()) hosts.push_back(host);
    if (host.empty() || hosts.size() > largest) return "";
  }
  if (hosts.size() < 2) return "";
  const auto rates = group_to_group(topology, host_of_rank, hosts.size());
  Table table("<" + std::string(hosts.size(), '>'));
  std::vector<std::string> header{""};
  header.insert(header.end(), hosts.begin(), hosts.end());
  table.row(header);
  for (std::size_t from = 0; from < hosts.size(); ++from) {
    std::vector<std::string> cells{hosts[from]};
    for (std::size_t to = 0; to < hosts.size(); ++to) cells.push_back(from == to ? "-" : gigabytes(rates[from][to]));
    table.row(cells);
  }
  return "\nHost to host, GB/s with all else idle\n" + table.text();
}

/// Which NIC is near which rank, and what lies between them. Nothing where no NIC is reached inside a machine.
std::string describe_affinities(const Topology& topology, std::size_t largest) {
  const std::vector<Affinity> affinities = find_affinities(topology);
  if (std::ranges::all_of(affinities, [](const Affinity& one) { return one.nics.empty(); })) return {};
  const auto named = [&](const std::vector<NodeId>& nodes) {
    return nodes.empty() ? std::string("-") : summarize_nodes(topology, nodes);
  };
  Table table("<<<<<");
  table.row({"rank", "nearest NIC", "through", "processor", "fabric"});
  const std::size_t shown = std::min(affinities.size(), largest);
  for (const Affinity& one : std::span(affinities).first(shown)) {
    table.row({topology.node(topology.node_of(one.rank)).id, named(one.nics), named(one.bridges),
               one.processor.is_none() ? "-" : topology.node(one.processor).id, named(one.fabric)});
  }
  std::string text = "\nFrom rank to NIC\n" + table.text();
  if (shown < affinities.size()) text += fmt::format("  and {} more ranks\n", affinities.size() - shown);
  return text;
}

std::string describe_bisection(const Topology& topology) {
  const auto bisection = find_bisection(topology);
  if (!bisection) return "";
  std::vector<Rank> receivers;
  for (std::size_t i = 0; i < topology.rank_count(); ++i) {
    if (!std::ranges::binary_search(bisection->senders, Rank(i))) receivers.emplace_back(i);
  }
  std::map<std::string, std::size_t> classes;
  for (const LinkId id : bisection->cut) {
    const Link& link = topology.link(id);
    ++classes[link.link_class.empty() ? "links of " + format_bandwidth(link.bandwidth()) : link.link_class];
  }
  std::vector<std::string> parts;
  for (const auto& [name, count] : classes) parts.push_back(fmt::format("{} {}", count, name));
  for (const NodeId node : bisection->backplanes) parts.push_back("the backplane of " + topology.node(node).id);
  std::string text = fmt::format("\nBisection: {} GB/s ({})\n  {} | {}\n  cut: {}\n", gigabytes(bisection->bandwidth),
                                 bisection->exact ? "the least of all balanced halves" : "the least that was found",
                                 summarize_nodes(topology, nodes_of(topology, bisection->senders)),
                                 summarize_nodes(topology, nodes_of(topology, receivers)), fmt::join(parts, " + "));
  constexpr std::size_t max_names = 8;
  if (!bisection->cut.empty() && bisection->cut.size() <= max_names) {
    std::string line = "      ";
    for (const LinkId id : bisection->cut) line += " " + topology.link_name(id);
    if (line.size() <= widest_line) text += line.substr(2) + "\n";
  }
  return text;
}

std::string describe_warnings(const Topology& topology) {
  std::string text;
  for (const Diagnostic& diagnostic : find_asymmetry(topology)) {
    text += fmt::format("  {}: {}\n", diagnostic.code, diagnostic.message);
  }
  return text.empty() ? "" : "\nWarnings\n" + text;
}

}  // namespace

std::string describe_topology(const Topology& topology, const DescribeOptions& options) {
  std::string text = fmt::format("{}: {}, {}, {}\n\n", topology.name(), counted(topology.rank_count(), "rank"),
                                 counted(topology.node_count(), "node"), counted(topology.link_count(), "link"));
  text += describe_nodes(topology) + describe_links(topology) + describe_egress(topology);
  text += describe_affinities(topology, options.largest_matrix);
  if (topology.rank_count() > 1) {
    if (topology.rank_count() <= options.largest_matrix) {
      text += describe_rank_matrix(topology);
    } else {
      text += describe_first_rank(topology) + describe_host_matrix(topology, options.largest_matrix);
    }
  }
  if (options.bisection) text += describe_bisection(topology);
  return text + describe_warnings(topology);
}

}  // namespace espalier
