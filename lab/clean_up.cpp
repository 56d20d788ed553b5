#include "lab/clean_up.h"

#include <algorithm>

#include "lab/name_space.h"
#include "lab/process.h"

namespace espalier::lab {

std::string tear_down_script() {
  // One pass over /proc for all namespaces: `ip netns pids` would make one for each.
  // As find_program, it looks beyond PATH.
  return R"(PATH=$PATH:/usr/sbin:/sbin:/usr/bin:/bin
spaces=$(ls /run/netns | grep "^$1-") || exit 0
inodes=$(for space in $spaces; do stat -L -c 'net:[%i]' "/run/netns/$space"; done)
find /proc -maxdepth 3 -path '/proc/[0-9]*/ns/net' -printf '%l %h\n' 2>/dev/null |
  grep -F "$inodes" | sed 's|.*/proc/\([0-9]*\)/ns|\1|' | xargs -r kill -KILL 2>/dev/null
for space in $spaces; do echo "netns del $space"; done | ip -force -batch -
)";
}

Result<void> tear_down(const JobName& job) {
  const auto done = run_program({"sh", "-c", tear_down_script(), "sh", job.prefix()});
  if (!done) return tl::unexpected(done.error());
  return {};
}

Result<std::vector<std::string>> clean_leftovers() {
  std::vector<JobName> dead;
  for (const std::string& name : list_name_spaces("")) {
    const auto job = job_of(name);
    if (job && !is_alive(*job) && std::ranges::find(dead, *job) == dead.end()) dead.push_back(*job);
  }
  std::vector<std::string> cleaned;
  for (const JobName& job : dead) {
    const auto done = tear_down(job);
    if (!done) return tl::unexpected(done.error());
    cleaned.push_back(job.prefix());
  }
  return cleaned;
}

}  // namespace espalier::lab
