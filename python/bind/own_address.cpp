#include "python/bind/own_address.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <memory>

#include "base/file_descriptor.h"
#include "engine/rendezvous/environment.h"

namespace espalier::python {
namespace {

/// The address of this machine that packets to `host` leave from; empty where there is no way.
std::string address_towards(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), "9", &hints, &found) != 0) return "";
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  const FileDescriptor descriptor(socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  if (descriptor.get() < 0 || connect(descriptor.get(), found->ai_addr, found->ai_addrlen) != 0) return "";
  if (getsockname(descriptor.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0) return "";
  std::array<char, NI_MAXHOST> text{};
  if (getnameinfo(reinterpret_cast<sockaddr*>(&own), size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0)
    return "";
  return text.data();
}

}  // namespace

std::string machine_id() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::error_code ignored;
  return boot + " " + std::filesystem::read_symlink("/proc/self/ns/net", ignored).string();
}

std::string own_address() {
  const auto environment = engine::rendezvous::process_environment();
  if (const auto told = environment.find("ESPALIER_ADDRESS"); told != environment.end()) return told->second;
  if (const auto master = environment.find("MASTER_ADDR"); master != environment.end()) {
    const std::string address = address_towards(master->second);
    if (!address.empty() && !address.starts_with("127.") && address != "::1") return address;
  }
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace espalier::python
