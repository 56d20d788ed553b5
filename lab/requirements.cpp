#include "lab/requirements.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <system_error>

#include "lab/clean_up.h"
#include "lab/job_name.h"
#include "lab/process.h"

namespace espalier::lab {
namespace {

std::string reason_of(int cause) { return std::generic_category().message(cause); }

/// What is missing when one of these commands fails.
struct Trial {
  std::vector<std::string> command;
  std::string what;
};

std::vector<Trial> trials(const std::string& space) {
  return {
      {{"ip", "netns", "add", space},
       "network namespaces: run as root or with CAP_NET_ADMIN and CAP_SYS_ADMIN (in a container, --privileged), or on "
       "a kernel that lets users have them (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone)"},
      {{"ip", "-n", space, "link", "add", "name", "probe0", "type", "veth", "peer", "name", "probe1"},
       "virtual cables: the kernel module veth (modprobe veth, or a kernel with CONFIG_VETH)"},
      {{"tc", "-n", space, "qdisc", "add", "dev", "probe0", "root", "handle", "1:", "tbf", "rate", "1gbit", "burst",
        "100000", "limit", "100000"},
       "shaping: the kernel module sch_tbf (modprobe sch_tbf, or a kernel with CONFIG_NET_SCH_TBF)"},
  };
}

Result<void> write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  if (file) return {};
  return fail(ErrorCode::unavailable, fmt::format("cannot write {}: {}", path, reason_of(errno)));
}

}  // namespace

Support probe_support() {
  Support support;
  for (const char* tool : {"ip", "tc", "find", "xargs"}) {
    if (find_program(tool)) continue;
    const bool is_network_tool = std::string(tool).size() == 2;
    support.missing.push_back(
        fmt::format("the program {}: install the package {}", tool, is_network_tool ? "iproute2" : "findutils"));
  }
  if (!support.missing.empty()) return support;
  const JobName job = new_job_name();
  const std::string space = job.prefix() + "-probe";
  for (const Trial& trial : trials(space)) {
    const auto done = run_program(trial.command);
    if (done) continue;
    support.missing.push_back(fmt::format("{} ({})", trial.what, done.error().message));
    break;  // What comes after needs this.
  }
  support.delays_packets = support.is_enough() && run_program({"tc", "-n", space, "qdisc", "add", "dev", "probe0",
                                                               "parent", "1:1", "netem", "delay", "1ms"})
                                                      .has_value();
  // Nothing to remove where the namespace itself could not be made.
  static_cast<void>(tear_down(job));
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
                "a lab needs network namespaces, and this user may have none: " + reason_of(errno),
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
    return fail(ErrorCode::unavailable, "cannot mount a folder for network namespaces: " + reason_of(errno),
                "run as root");
  }
  return {};
}

}  // namespace espalier::lab
