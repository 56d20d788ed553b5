#include "lab/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/check.h"
#include "lab/namespaces/name_space.h"
#include "lab/process.h"

namespace espalier::lab {
namespace {

/// Gives one namespace's lines to `ip` or `tc`; with an empty name, this process's.
Result<void> run_lines(const char* tool, const std::string& name_space, std::string lines) {
  if (lines.empty()) return {};
  std::vector<std::string> command = {tool};
  if (!name_space.empty()) command.insert(command.end(), {"-n", name_space});
  command.insert(command.end(), {"-batch", "-"});
  const auto done = run_program(std::move(command), std::move(lines));
  if (!done) return tl::unexpected(done.error());
  return {};
}

Result<void> write_option(const std::string& path, const std::string& value) {
  std::ofstream file(path);
  file << value << std::flush;
  if (file) return {};
  return fail(ErrorCode::unavailable, "cannot write '" + value + "' to " + path);
}

Bandwidth slowest_of(const Topology& topology) {
  Bandwidth slowest = topology.links().empty() ? Bandwidth{1} : topology.link(LinkId(0)).bandwidth();
  for (const Link& link : topology.links()) slowest = std::min(slowest, link.bandwidth());
  return slowest;
}

Bandwidth fastest_of(const Topology& topology) {
  Bandwidth fastest;
  for (const Link& link : topology.links()) fastest = std::max(fastest, link.bandwidth());
  return fastest;
}

/// No window grows step by step: what a connection may send from its first byte on, and after a pause, is the
/// receiver's window, as nothing is ever dropped.
constexpr int first_window_packets = 10'000;
/// So nothing needs to be sent again either, however long it waits in a queue.
constexpr int retransmission_seconds = 3;

std::string route_line(const std::string& address, const std::string& device) {
  return fmt::format("route add {}/32 via {} dev {} onlink initcwnd {} rto_min {}s\n", address, gateway, device,
                     first_window_packets, retransmission_seconds);
}

}  // namespace

LabNetwork::LabNetwork(const Topology& scaled, AddressPlan addresses, Keeper keeper)
    : topology_(&scaled),
      wiring_(std::make_unique<Wiring>(scaled, keeper.job())),
      addresses_(std::move(addresses)),
      keeper_(std::move(keeper)) {}

Result<LabNetwork> LabNetwork::make(const Topology& scaled) {
  if (scaled.node_count() > max_nodes) {
    return fail(ErrorCode::too_large,
                fmt::format("a lab has at most {} nodes, and {} has {}", max_nodes, scaled.name(), scaled.node_count()),
                "take a smaller topology of the same kind");
  }
  auto addresses = AddressPlan::make(scaled.rank_count());
  if (!addresses) return tl::unexpected(addresses.error());
  auto lock = lock_new_job();
  if (!lock) return tl::unexpected(lock.error());
  auto keeper = Keeper::start(std::move(*lock));  // Before the first namespace, so that none is ever without a keeper.
  if (!keeper) return tl::unexpected(keeper.error());
  LabNetwork network(scaled, std::move(*addresses), std::move(*keeper));
  const auto built = network.build();
  if (!built) return tl::unexpected(built.error());
  return network;
}

Result<void> LabNetwork::build() {
  const Framing framing = choose_framing(slowest_of(*topology_));
  if (const auto done = run_lines("ip", "", wiring_->creation_lines(framing)); !done) return done;
  for (std::size_t i = 0; i < topology_->node_count(); ++i) {
    const NodeId node(i);
    const std::string space = wiring_->name_space(node);
    if (const auto done = set_kernel_options(space, !topology_->node(node).is_rank); !done) return done;
    if (const auto done = run_lines("tc", space, wiring_->shaping_lines(node, framing)); !done) return done;
    if (const auto done = run_lines("ip", space, wiring_->node_lines(node, addresses_)); !done) return done;
  }
  if (const auto done = set_kernel_options(wiring_->hub(), true); !done) return done;
  return run_lines("ip", wiring_->hub(), wiring_->hub_lines(addresses_));
}

Result<void> LabNetwork::set_kernel_options(const std::string& name_space, bool forwards) const {
  const std::int64_t window = receive_window(fastest_of(*topology_));
  return inside(name_space, [&]() -> Result<void> {
    const std::string folder = "/proc/sys/net/ipv4/";
    std::vector<std::pair<std::string, std::string>> options = {
        {"ip_forward", forwards ? "1" : "0"},
        // Of the controls that every user may choose, the one that neither paces nor probes.
        {"tcp_congestion_control", "reno"},
        {"tcp_slow_start_after_idle", "0"},
        {"tcp_no_metrics_save", "1"},
        // The kernel takes half of the buffer for its own book-keeping.
        {"tcp_rmem", fmt::format("4096 {0} {0}", 2 * window)},
        {"tcp_wmem", fmt::format("4096 {0} {0}", 2 * window)},
        {"tcp_early_retrans", "0"},
    };
    std::error_code status;
    // Answers come over other devices than those a route to their sender would name.
    for (const auto& device : std::filesystem::directory_iterator(folder + "conf", status)) {
      options.emplace_back("conf/" + device.path().filename().string() + "/rp_filter", "0");
    }
    for (const auto& [name, value] : options) {
      const auto written = write_option(folder + name, value);
      if (!written) return written;
    }
    // IPv6 would say hello on every device; a kernel without it has nothing to switch off.
    const std::string silence = "/proc/sys/net/ipv6/conf/all/disable_ipv6";
    return std::filesystem::exists(silence, status) ? write_option(silence, "1") : Result<void>();
  });
}

Result<void> LabNetwork::add_route(const Route& route, const RouteAddresses& ends,
                                   std::vector<std::string>& lines) const {
  std::set<NodeId> passed;
  for (const LinkId id : route.links) {
    const Link& link = topology_->link(id);
    if (!passed.insert(link.tail).second || passed.contains(link.head)) {
      return fail(ErrorCode::unsupported,
                  fmt::format("a route from {} to {} passes a node twice; a lab's routes are paths",
                              topology_->rank_name(route.src), topology_->rank_name(route.dst)));
    }
    lines[link.tail.index()] += route_line(ends.connect, wiring_->device(id));
    lines[link.head.index()] += route_line(ends.bind, wiring_->device(id));
  }
  return {};
}

Result<std::vector<RouteAddresses>> LabNetwork::add_routes(const Schedule& schedule) {
  if (!schedule.relays.empty()) {
    return fail(ErrorCode::unsupported,
                fmt::format("plan {} has switches that copy or add, and the switches of a lab only forward",
                            schedule.algorithm),
                "choose another algorithm with -a");
  }
  std::vector<RouteAddresses> all;
  std::vector<std::string> lines(topology_->node_count());
  for (std::size_t id = 0; id < schedule.route_count(); ++id) {
    const Route route = schedule.route(RouteId(id));
    const std::vector<LinkId> links(route.links.begin(), route.links.end());
    if (const auto known = routes_.find(links); known != routes_.end()) {
      all.push_back(known->second);
      continue;
    }
    auto bind = addresses_.next(route.src);
    if (!bind) return tl::unexpected(bind.error());
    auto connect = addresses_.next(route.dst);
    if (!connect) return tl::unexpected(connect.error());
    const RouteAddresses ends{route.src, route.dst, std::move(*bind), std::move(*connect)};
    if (const auto added = add_route(route, ends, lines); !added) return tl::unexpected(added.error());
    routes_.emplace(links, ends);
    all.push_back(ends);
  }
  for (std::size_t node = 0; node < lines.size(); ++node) {
    const auto done = run_lines("ip", wiring_->name_space(NodeId(node)), std::move(lines[node]));
    if (!done) return tl::unexpected(done.error());
  }
  return all;
}

Result<std::vector<LinkCount>> LabNetwork::counts() const {
  std::vector<LinkCount> counts(topology_->link_count());
  for (std::size_t node = 0; node < topology_->node_count(); ++node) {
    const auto devices = count_devices(wiring_->name_space(NodeId(node)));
    if (!devices) return tl::unexpected(devices.error());
    for (const LinkId link : topology_->out_links(NodeId(node))) {
      const auto found = std::ranges::find(*devices, wiring_->device(link), &DeviceCount::device);
      if (found == devices->end()) {
        return fail(ErrorCode::unavailable, "the device of link " + topology_->link_name(link) + " is gone");
      }
      counts[link.index()] = {static_cast<std::int64_t>(found->sent_bytes),
                              static_cast<std::int64_t>(found->sent_packets)};
    }
  }
  return counts;
}

}  // namespace espalier::lab
