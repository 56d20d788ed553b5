#include "lab/namespaces/held_name_space.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>

#include "base/error_text.h"
#include "lab/namespaces/name_space.h"

namespace espalier::lab {

bool HeldNameSpace::holds(int process) const {
  struct stat status {};
  return stat(fmt::format("/proc/{}/ns/net", process).c_str(), &status) == 0 && status.st_dev == device &&
         status.st_ino == inode;
}

Result<HeldNameSpace> hold_name_space(const std::string& name) {
  const std::string path = name_space_path(name);
  // Looked at first: opening a device or a FIFO may do something.
  struct stat entry {};
  const bool is_there = lstat(path.c_str(), &entry) == 0;
  if (is_there && !S_ISREG(entry.st_mode)) return fail(ErrorCode::invalid_input, path + " is no network namespace");
  HeldNameSpace space{name, FileDescriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)), 0, 0};
  if (!space.fd.is_open()) {
    return fail(ErrorCode::unavailable, fmt::format("cannot open {}: {}", path, error_text(errno)));
  }
  struct statfs system {};
  struct stat status {};
  if (fstatfs(space.fd.get(), &system) != 0 || system.f_type != NSFS_MAGIC ||
      ioctl(space.fd.get(), NS_GET_NSTYPE) != CLONE_NEWNET || fstat(space.fd.get(), &status) != 0) {
    return fail(ErrorCode::invalid_input, path + " is no network namespace");
  }
  space.device = status.st_dev;
  space.inode = status.st_ino;
  return space;
}

}  // namespace espalier::lab
