#include "python/torch/store_meeting.h"

#include <c10/util/Exception.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "base/file_descriptor.h"
#include "engine/rendezvous/environment.h"
#include "engine/rendezvous/secret.h"
#include "engine/rendezvous/wire/listener.h"

namespace espalier::python {
namespace {

constexpr const char* loopback = "127.0.0.1";

/// The same on ranks that reach each other by loopback, and only there.
std::string machine_id() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::error_code ignored;
  return boot + " " + std::filesystem::read_symlink("/proc/self/ns/net", ignored).string();
}

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

/// Where the ranks of other machines reach this one: ESPALIER_ADDRESS, else the interface towards MASTER_ADDR, else the
/// host's name.
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

}  // namespace

void raise_runtime_error(const Error& error) {
  throw std::runtime_error(error.help.empty() ? error.message : error.message + " (" + error.help + ")");
}

std::string Meeting::await(const std::string& key) const {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  std::chrono::microseconds pause(200);
  while (!store->check({key})) {
    if (is_over != nullptr && *is_over) throw std::runtime_error("the process group was destroyed");
    if (std::chrono::steady_clock::now() > deadline) {
      throw std::runtime_error("rank " + std::to_string(rank) + " waited " + std::to_string(patience.count()) +
                               " ms for the others to join (" + name + "): not all of them came");
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(20'000));
  }
  const std::vector<std::uint8_t> bytes = store->get(key);
  return {bytes.begin(), bytes.end()};
}

void Meeting::leave(const std::string& key, const std::string& text) const {
  store->set(key, std::vector<std::uint8_t>(text.begin(), text.end()));
}

std::unique_ptr<Communicator> Meeting::join(JobOptions options, const MakeSchedules& schedules) const {
  const auto raise_or_take = [](auto result) {
    if (!result) raise_runtime_error(result.error());
    return *std::move(result);
  };
  const std::string own = machine_id();
  const std::string place = name + "/place";
  options.rendezvous.rank = rank;
  options.rendezvous.world = world;
  options.rendezvous.timeout = patience;
  if (rank == 0) {
    bool is_one_machine = true;
    for (std::uint32_t other = 1; other < world; ++other) {
      is_one_machine = await(name + "/machine/" + std::to_string(other)) == own && is_one_machine;
    }
    const std::string host = is_one_machine ? loopback : own_address();
    options.rendezvous.listener = raise_or_take(engine::rendezvous::listen_on(host, 0));
    options.rendezvous.host = host;
    options.rendezvous.port = options.rendezvous.listener.port;
    options.rendezvous.secret = raise_or_take(engine::rendezvous::random_secret());
    options.rendezvous.on_notice = [](const std::string& text) { TORCH_WARN(text); };
    leave(place, host + " " + std::to_string(options.rendezvous.port) + " " + options.rendezvous.secret);
  } else {
    leave(name + "/machine/" + std::to_string(rank), own);
    std::istringstream found(await(place));
    found >> options.rendezvous.host >> options.rendezvous.port >> options.rendezvous.secret;
  }
  const bool shares_memory = options.rendezvous.host == loopback && takes_shared_memory(options.transport);
  return raise_or_take(Communicator::join(std::move(options), schedules(shares_memory)));
}

}  // namespace espalier::python
