#include "lab/requirements.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <optional>

#include "base/error_text.h"
#include "lab/namespaces/end_processes.h"
#include "lab/namespaces/keeper.h"
#include "lab/namespaces/name_space.h"
#include "lab/process.h"
#include "lab/wiring.h"

namespace espalier::lab {
namespace {

/// What is missing when one of these commands fails.
struct Trial {
  std::vector<std::string> command;
  std::string input;
  std::string what;
};

std::vector<Trial> trials(const std::string& space) {
  return {
      {{"ip", "-batch", "-"},
       fmt::format("netns add {}\n", space),
       "network namespaces: run as root or with CAP_NET_ADMIN and CAP_SYS_ADMIN (in a container, --privileged), or on "
       "a kernel that lets users have them (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone)"},
      {{"ip", "-n", space, "-batch", "-"},
       "link add name probe0 type veth peer name probe1\n",
       "virtual cables: the kernel module veth (modprobe veth, or a kernel with CONFIG_VETH)"},
      {{"ip", "-n", space, "-batch", "-"},
       fmt::format("link set dev lo up\nlink set dev probe0 arp off up\nroute add local 10.255.0.0/24 dev lo\n"
                   "route add 10.255.1.1/32 via {} dev probe0 onlink initcwnd 10000 rto_min 3s\n",
                   gateway),
       "routes with windows of their own: a newer iproute2"},
      {{"tc", "-n", space, "-batch", "-"},
       "qdisc add dev probe0 root handle 1: tbf rate 1gbit burst 100000 limit 100000\n",
       "shaping: the kernel module sch_tbf (modprobe sch_tbf, or a kernel with CONFIG_NET_SCH_TBF)"},
  };
}

Result<void> write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  if (file) return {};
  return fail(ErrorCode::unavailable, fmt::format("cannot write {}: {}", path, error_text(errno)));
}

/// What is missing of what a lab does in a namespace; nothing when all of it works.
std::optional<std::string> first_failure(const std::string& space) {
  for (const Trial& trial : trials(space)) {
    const auto done = run_program(trial.command, trial.input);
    if (!done) return fmt::format("{} ({})", trial.what, done.error().message);
  }
  const auto written = inside(space, [] { return write_text("/proc/sys/net/ipv4/ip_forward", "1"); });
  if (written) return std::nullopt;
  return fmt::format("settings of its networks: mount /proc/sys for writing ({})", written.error().message);
}

}  // namespace

Support probe_support() {
  Support support;
  for (const char* tool : {"ip", "tc"}) {
    if (!find_program(tool)) {
      support.missing.push_back(fmt::format("the program {}: install the package iproute2", tool));
    }
  }
  if (const auto probed = probe_process_descriptors(); !probed) {
    support.missing.push_back(fmt::format("{}: {}", probed.error().message, probed.error().help));
  }
  if (!support.missing.empty()) return support;
  auto lock = lock_new_job();
  if (!lock) {
    support.missing.push_back(fmt::format("a folder for its locks ({})", lock.error().message));
    return support;
  }
  // As a lab, so that also a trial that is killed leaves nothing.
  auto keeper = Keeper::start(std::move(*lock));
  if (!keeper) {
    support.missing.push_back(keeper.error().message);
    return support;
  }
  const std::string space = keeper->job().prefix() + "-probe";
  if (auto failure = first_failure(space)) support.missing.push_back(std::move(*failure));
  support.delays_packets = support.is_enough() && run_program({"tc", "-n", space, "qdisc", "add", "dev", "probe0",
                                                               "parent", "1:1", "netem", "delay", "1ms"})
                                                      .has_value();
  if (const auto finished = keeper->finish(); !finished) support.missing.push_back(finished.error().message);
  return support;
}

Result<Support> require_support() {
  Support support = probe_support();
  if (support.is_enough()) return support;
  std::string message = "this machine cannot build a lab; it lacks ";
  for (std::size_t i = 0; i < support.missing.size(); ++i) message += (i > 0 ? "; " : "") + support.missing[i];
  return fail(ErrorCode::unavailable, std::move(message), "espalier simulate needs none of this");
}

Result<void> gain_rights() {
  const auto user = geteuid();
  const auto group = getegid();
  if (user == 0) return {};
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET) != 0) {
    return fail(ErrorCode::unavailable,
                "a lab needs network namespaces, and this user may have none: " + error_text(errno),
                "run as root, or allow it: sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, "
                "kernel.apparmor_restrict_unprivileged_userns");
  }
  for (const auto& [path, text] : {std::pair<std::string, std::string>{"/proc/self/setgroups", "deny"},
                                   {"/proc/self/uid_map", fmt::format("0 {} 1", user)},
                                   {"/proc/self/gid_map", fmt::format("0 {} 1", group)}}) {
    const auto written = write_text(path, text);
    if (!written) return written;
  }
  // ip(8) keeps its namespaces in /run/netns, which is nobody's here until something is mounted over /run.
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("tmpfs", "/run", "tmpfs", 0, nullptr) != 0) {
    return fail(ErrorCode::unavailable, "cannot mount a folder for network namespaces: " + error_text(errno),
                "run as root");
  }
  return {};
}

}  // namespace espalier::lab
