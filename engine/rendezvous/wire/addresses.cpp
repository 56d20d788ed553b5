#include "engine/rendezvous/wire/addresses.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "engine/rendezvous/names.h"

namespace espalier::engine::rendezvous {

Result<AddressList> resolve(const std::string& host, std::uint16_t port) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found);
  if (error != 0) {
    const std::string why = error == EAI_SYSTEM ? errno_text(errno) : gai_strerror(error);
    return fail(ErrorCode::unavailable, fmt::format("'{}' has no address: {}", host, why),
                "name rank 0's machine as the others can reach it, or give its numeric address");
  }
  return AddressList(found, &freeaddrinfo);
}

bool is_loopback(const addrinfo& address) {
  if (address.ai_family == AF_INET) {
    const auto* ipv4 = reinterpret_cast<const sockaddr_in*>(address.ai_addr);
    return (ntohl(ipv4->sin_addr.s_addr) >> 24U) == 127;
  }
  if (address.ai_family != AF_INET6) return false;
  const auto* ipv6 = reinterpret_cast<const sockaddr_in6*>(address.ai_addr);
  return IN6_IS_ADDR_LOOPBACK(&ipv6->sin6_addr) != 0;
}

std::string endpoint_text(const std::string& host, std::uint16_t port) {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

}  // namespace espalier::engine::rendezvous
