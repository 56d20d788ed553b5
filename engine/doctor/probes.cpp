#include "engine/doctor/probes.h"

#ifdef ESPALIER_VERBS
#include <infiniband/verbs.h>
#endif

#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/futex.h>
#include <netdb.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <sstream>

namespace espalier::engine::doctor {
namespace {

constexpr int probe_seconds = 10;

/// Runs a function in a child process: whether it returned true. A child that hangs is ended by its alarm.
template <class Body>
bool holds_in_child(Body body) {
  const pid_t child = fork();
  if (child < 0) return false;
  if (child == 0) {
    ::alarm(probe_seconds);
    ::_exit(body() ? 0 : 1);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool enter_network_namespace() {
  if (unshare(CLONE_NEWNET) == 0) return true;
  return unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0;
}

/// Whether a command succeeds in a fresh network namespace.
bool works_in_namespace(const std::vector<const char*>& command) {
  std::vector<char*> arguments;
  for (const char* word : command) arguments.push_back(const_cast<char*>(word));
  arguments.push_back(nullptr);
  return holds_in_child([&] {
    if (!enter_network_namespace()) return false;
    const int nothing = ::open("/dev/null", O_RDWR);
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nothing, fd);
    ::execvp(arguments[0], arguments.data());
    return false;
  });
}

bool is_on_path(const std::string& command) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/sbin:/usr/bin:/sbin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (access((folder + "/" + command).c_str(), X_OK) == 0) return true;
  }
  return false;
}

/// A child reads this process's memory: as one rank reads another's, which is not its child either.
bool child_can_read_parent() {
  static constexpr std::uint64_t pattern = 0x0123456789ABCDEFU;
  const std::uint64_t source = pattern;
  const pid_t parent = getpid();
  return holds_in_child([&] {
    std::uint64_t copy = 0;
    const iovec local{&copy, sizeof copy};
    const iovec remote{const_cast<std::uint64_t*>(&source), sizeof source};
    return process_vm_readv(parent, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(sizeof copy) && copy == pattern;
  });
}

bool has_futex() {
  std::uint32_t word = 0;
  return syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0) == 0;
}

bool has_memfd() {
  const int fd = memfd_create("espalier-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return false;
  const bool is_sized = ftruncate(fd, 4096) == 0;
  ::close(fd);
  return is_sized;
}

bool has_pidfd() {
  const auto fd = static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0));
  if (fd < 0) return false;
  ::close(fd);
  return true;
}

Limit limit_of(__rlimit_resource resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0) return {};
  const auto value = [](rlim_t number) {
    return number == RLIM_INFINITY ? std::nullopt : std::optional<std::uint64_t>(number);
  };
  return {value(limit.rlim_cur), value(limit.rlim_max)};
}

std::int64_t allowed_processors() {
  // The kernel's mask may be wider than cpu_set_t: grow until it fits.
  constexpr int widest = 1 << 16;
  for (int count = CPU_SETSIZE; count <= widest; count *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(static_cast<std::size_t>(count)),
                                                               [](cpu_set_t* raw) { CPU_FREE(raw); });
    const std::size_t size = CPU_ALLOC_SIZE(static_cast<std::size_t>(count));
    if (sched_getaffinity(0, size, set.get()) == 0) return CPU_COUNT_S(size, set.get());
    if (errno != EINVAL) break;
  }
  return 0;
}

std::map<std::string, std::vector<std::string>> addresses_by_interface() {
  std::map<std::string, std::vector<std::string>> addresses;
  ifaddrs* raw = nullptr;
  if (getifaddrs(&raw) != 0) return addresses;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> all(raw, &freeifaddrs);
  for (const ifaddrs* each = all.get(); each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr) continue;
    const int family = each->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    std::array<char, NI_MAXHOST> text{};
    if (getnameinfo(each->ifa_addr, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) continue;
    addresses[each->ifa_name].emplace_back(text.data());
  }
  return addresses;
}

void probe_shared_memory(Probes& probes) {
  struct statvfs status {};
  if (statvfs("/dev/shm", &status) != 0) return;
  const auto block = static_cast<std::int64_t>(status.f_frsize);
  probes.shared_memory_size = block * static_cast<std::int64_t>(status.f_blocks);
  probes.shared_memory_free = block * static_cast<std::int64_t>(status.f_bavail);
}

#ifdef ESPALIER_VERBS
/// Whether the driver refuses the descriptor, and not the request. Nothing: the device cannot be asked.
std::optional<bool> takes_dma_buf(ibv_device* device) {
  ibv_context* const context = ibv_open_device(device);
  if (context == nullptr) return std::nullopt;
  std::optional<bool> takes;
  if (ibv_pd* const domain = ibv_alloc_pd(context); domain != nullptr) {
    errno = 0;
    constexpr int no_descriptor = -1;
    ibv_mr* const region = ibv_reg_dmabuf_mr(domain, 0, 4096, 0, no_descriptor, IBV_ACCESS_LOCAL_WRITE);
    takes = region != nullptr || (errno != EOPNOTSUPP && errno != EPROTONOSUPPORT && errno != ENOSYS);
    if (region != nullptr) ibv_dereg_mr(region);
    ibv_dealloc_pd(domain);
  }
  ibv_close_device(context);
  return takes;
}
#endif

std::map<std::string, bool> verbs_devices_that_take_dma_bufs() {
  std::map<std::string, bool> devices;
#ifdef ESPALIER_VERBS
  int count = 0;
  ibv_device** const list = ibv_get_device_list(&count);
  for (int i = 0; list != nullptr && i < count; ++i) {
    if (const auto takes = takes_dma_buf(list[i])) devices[ibv_get_device_name(list[i])] = *takes;
  }
  if (list != nullptr) ibv_free_device_list(list);
#endif
  return devices;
}

}  // namespace

Probes probe_machine() {
  Probes probes;
  probes.allowed_processors = allowed_processors();
  probes.open_files = limit_of(RLIMIT_NOFILE);
  probes.locked_memory = limit_of(RLIMIT_MEMLOCK);
  probe_shared_memory(probes);
  probes.has_futex = has_futex();
  probes.has_memfd = has_memfd();
  probes.has_pidfd = has_pidfd();
  probes.has_peer_reads = child_can_read_parent();
  probes.has_network_namespaces = holds_in_child(enter_network_namespace);
  probes.has_ip = is_on_path("ip");
  probes.has_tc = is_on_path("tc");
  if (probes.has_network_namespaces && probes.has_ip) {
    probes.has_veth = works_in_namespace({"ip", "link", "add", "probe0", "type", "veth", "peer", "name", "probe1"});
  }
  if (probes.has_network_namespaces && probes.has_tc) {
    probes.has_tbf = works_in_namespace(
        {"tc", "qdisc", "add", "dev", "lo", "root", "tbf", "rate", "1mbit", "burst", "10kb", "latency", "10ms"});
    probes.has_netem = works_in_namespace({"tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"});
  }
  probes.addresses = addresses_by_interface();
  probes.takes_dma_buf = verbs_devices_that_take_dma_bufs();
  return probes;
}

}  // namespace espalier::engine::doctor
