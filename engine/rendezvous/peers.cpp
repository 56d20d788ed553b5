#include "engine/rendezvous/peers.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <fstream>
#include <memory>
#include <numeric>

#include "engine/rendezvous/names.h"
#include "engine/rendezvous/wire/bytes.h"

namespace espalier::engine::rendezvous {
namespace {

constexpr std::size_t max_addresses = 64;
constexpr std::size_t longest_text = 1024;

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string text;
  std::getline(file, text);
  return text;
}

std::string usable_cores() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0) return {};
  std::string bits(reinterpret_cast<const char*>(&cores), sizeof(cores));
  bits.erase(bits.find_last_not_of('\0') + 1);
  return bits;
}

std::uint64_t namespace_inode(const char* path) {
  struct stat status {};
  return stat(path, &status) == 0 ? status.st_ino : 0;
}

std::vector<std::string> interface_addresses() {
  ifaddrs* raw = nullptr;
  if (getifaddrs(&raw) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> all(raw, &freeifaddrs);
  std::vector<std::string> addresses;
  for (const ifaddrs* each = all.get(); each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || (each->ifa_flags & IFF_UP) == 0 || (each->ifa_flags & IFF_LOOPBACK) != 0) continue;
    const int family = each->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    std::array<char, NI_MAXHOST> text{};
    if (getnameinfo(each->ifa_addr, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) continue;
    addresses.emplace_back(text.data());
  }
  std::ranges::sort(addresses);
  return addresses;
}

}  // namespace

PeerInfo describe_self(const ControlPlane& plane) {
  PeerInfo self;
  self.rank = plane.rank();
  self.host_name = host_name();
  self.boot_id = boot_id();
  self.network_namespace = namespace_inode("/proc/self/ns/net");
  self.process_namespace = namespace_inode("/proc/self/ns/pid");
  self.time_namespace = namespace_inode("/proc/self/ns/time");
  self.user = geteuid();
  self.process = getpid();
  self.cores = usable_cores();
  const std::string first = plane.local_address();
  if (!first.empty()) self.addresses.push_back(first);
  for (std::string& address : interface_addresses()) {
    if (address != first && self.addresses.size() < max_addresses) self.addresses.push_back(std::move(address));
  }
  return self;
}

bool share_memory(const PeerInfo& one, const PeerInfo& other) {
  return share_network(one, other) && one.process_namespace != 0 && one.process_namespace == other.process_namespace &&
         one.user == other.user;
}

std::uint32_t count_cores(std::span<const PeerInfo> peers, const PeerInfo& self) {
  std::string together;
  for (const PeerInfo& peer : peers) {
    if (peer.boot_id != self.boot_id) continue;
    together.resize(std::max(together.size(), peer.cores.size()));
    for (std::size_t i = 0; i < peer.cores.size(); ++i) together[i] = static_cast<char>(together[i] | peer.cores[i]);
  }
  const auto bits = [](std::uint32_t count, char byte) {
    return count + static_cast<std::uint32_t>(std::popcount(static_cast<unsigned char>(byte)));
  };
  return std::max(1U, std::accumulate(together.begin(), together.end(), 0U, bits));
}

bool share_network(const PeerInfo& one, const PeerInfo& other) {
  return !one.boot_id.empty() && one.boot_id == other.boot_id && one.network_namespace != 0 &&
         one.network_namespace == other.network_namespace;
}

bool share_network(std::span<const PeerInfo> peers) {
  return std::ranges::all_of(peers, [&](const PeerInfo& peer) { return share_network(peers.front(), peer); });
}

std::vector<std::string> addresses_towards(const PeerInfo& from, const PeerInfo& to) {
  std::vector<std::string> addresses = to.addresses;
  if (share_network(from, to)) return addresses;
  std::ranges::stable_partition(addresses,
                                [](const std::string& text) { return !text.starts_with("127.") && text != "::1"; });
  return addresses;
}

bool share_clock(const PeerInfo& one, const PeerInfo& other) {
  return !one.boot_id.empty() && one.boot_id == other.boot_id && one.time_namespace == other.time_namespace;
}

std::string encode_peer(const PeerInfo& peer) {
  ByteWriter writer;
  writer.u32(peer.rank).text(peer.host_name).text(peer.boot_id).u64(peer.network_namespace).u64(peer.process_namespace);
  writer.u64(peer.time_namespace).u32(peer.user).u64(static_cast<std::uint64_t>(peer.process));
  writer.text(peer.cores);
  writer.u32(static_cast<std::uint32_t>(peer.addresses.size()));
  for (const std::string& address : peer.addresses) writer.text(address);
  return writer.take();
}

Result<PeerInfo> decode_peer(std::string_view bytes) {
  ByteReader reader(bytes);
  PeerInfo peer;
  peer.rank = reader.u32();
  peer.host_name = reader.text(longest_text);
  peer.boot_id = reader.text(longest_text);
  peer.network_namespace = reader.u64();
  peer.process_namespace = reader.u64();
  peer.time_namespace = reader.u64();
  peer.user = reader.u32();
  peer.process = static_cast<std::int64_t>(reader.u64());
  peer.cores = reader.text(longest_text);
  const std::uint32_t count = reader.u32();
  for (std::uint32_t i = 0; i < count && count <= max_addresses && reader.is_good(); ++i) {
    peer.addresses.emplace_back(reader.text(longest_text));
  }
  if (count > max_addresses || !reader.is_done()) {
    return fail(ErrorCode::invalid_input, "a rank's address record cannot be read",
                "run the same version of espalier on all ranks");
  }
  return peer;
}

Result<std::vector<PeerInfo>> exchange_peers(ControlPlane& plane, std::chrono::milliseconds timeout) {
  std::vector<std::uint32_t> everyone(plane.world());
  std::iota(everyone.begin(), everyone.end(), 0U);
  const auto blobs = plane.exchange("espalier peers", everyone, encode_peer(describe_self(plane)), timeout);
  if (!blobs) return tl::unexpected(blobs.error());
  std::vector<PeerInfo> peers;
  for (const std::string& blob : *blobs) {
    auto peer = decode_peer(blob);
    if (!peer) return tl::unexpected(std::move(peer.error()));
    if (peer->rank != peers.size()) {
      return fail(ErrorCode::invalid_input, fmt::format("rank {} claims to be rank {}", peers.size(), peer->rank));
    }
    peers.push_back(std::move(*peer));
  }
  if (const std::string address = plane.hub_address(); !address.empty()) {
    std::vector<std::string>& addresses = peers.front().addresses;
    std::erase(addresses, address);
    addresses.insert(addresses.begin(), address);
  }
  return peers;
}

}  // namespace espalier::engine::rendezvous
