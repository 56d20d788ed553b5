#include "cli/output/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <optional>
#include <ostream>
#include <random>
#include <sstream>
#include <streambuf>

#include "base/error_text.h"
#include "base/file_descriptor.h"
#include "base/printable.h"
#include "cli/output/write_all.h"

namespace espalier::cli {
namespace {

// The path of the unfinished file, for the signal handler, which may only touch plain memory.
std::array<char, 4096> unfinished_path{};      // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
std::atomic<bool> has_unfinished_file{false};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

/// Signals that end a process which does not ask for them, but for those that a bug raises.
constexpr std::array ending_signals = {SIGHUP,  SIGINT,  SIGQUIT, SIGPIPE,   SIGALRM, SIGTERM,
                                       SIGUSR1, SIGUSR2, SIGXCPU, SIGVTALRM, SIGPROF};

/// Whoever waits for this process is to see what ended it: but for an interrupt, the signal itself, whose action is the
/// default's again.
void on_ending_signal(int signal) {
  if (has_unfinished_file) unlink(unfinished_path.data());
  constexpr int interrupted = 130;
  if (signal == SIGINT || signal == SIGTERM) _exit(interrupted);
  raise(signal);
}

void mark_unfinished(const std::string& path) {
  if (path.size() + 1 > unfinished_path.size()) return;
  std::memcpy(unfinished_path.data(), path.c_str(), path.size() + 1);
  has_unfinished_file = true;
}

tl::unexpected<Error> cannot_write(const std::string& path, int cause) {
  const std::string folder = std::filesystem::path(path).parent_path();
  std::error_code status;
  if (cause == ENOENT && !folder.empty() && !std::filesystem::exists(folder, status)) {
    return fail(ErrorCode::unavailable, "cannot write " + path + ": there is no folder " + folder,
                "make it with mkdir -p " + folder);
  }
  const bool is_full = cause == ENOSPC || cause == EDQUOT || cause == EFBIG;
  return fail(
      ErrorCode::unavailable, "cannot write " + path + ": " + error_text(cause),
      is_full ? "make room, or choose a file elsewhere" : "choose a file in a folder that exists and may be written");
}

/// A stream's buffer over a descriptor, which remembers why a write failed.
class DescriptorBuffer : public std::streambuf {
 public:
  explicit DescriptorBuffer(int descriptor) : descriptor_(descriptor) {
    setp(block_.data(), block_.data() + block_.size());
  }

  [[nodiscard]] int error() const { return error_; }

 protected:
  int_type overflow(int_type next) override {
    if (sync() != 0) return traits_type::eof();
    if (!traits_type::eq_int_type(next, traits_type::eof())) sputc(traits_type::to_char_type(next));
    return traits_type::not_eof(next);
  }

  int sync() override {
    const std::string_view text(pbase(), static_cast<std::size_t>(pptr() - pbase()));
    if (error_ == 0) error_ = write_all(descriptor_, text);
    setp(block_.data(), block_.data() + block_.size());
    return error_ == 0 ? 0 : -1;
  }

 private:
  int descriptor_;
  int error_ = 0;
  std::array<char, std::size_t{1} << 16> block_{};
};

Result<void> write_to(int descriptor, const std::string& name,
                      const std::function<Result<void>(std::ostream&)>& write) {
  DescriptorBuffer buffer(descriptor);
  std::ostream stream(&buffer);
  Result<void> written = write(stream);
  stream.flush();
  // What failed below is what there is to say, whatever `write` made of it.
  if (buffer.error() != 0) return cannot_write(name, buffer.error());
  return written;
}

Result<void> write_to_terminal(const std::string& name, const std::function<Result<void>(std::ostream&)>& write) {
  std::ostringstream text;
  if (auto written = write(text); !written) return written;
  const int error = write_all(STDOUT_FILENO, printable(text.str()));
  return error == 0 ? Result<void>() : cannot_write(name, error);
}

/// The descriptor that a path such as /dev/stdout or /dev/fd/3 names. It is used itself: opened anew, a file behind it
/// would be written from its beginning.
std::optional<int> descriptor_of(std::string_view path) {
  if (path == "-" || path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    path.remove_prefix(folder.size());
    int number = -1;
    const auto [end, status] = std::from_chars(path.data(), path.data() + path.size(), number);
    if (status == std::errc() && end == path.data() + path.size() && number >= 0) return number;
  }
  return std::nullopt;
}

/// The file that a path leads to behind all its symbolic links, there or not.
Result<std::filesystem::path> behind_links(const std::string& path) {
  std::filesystem::path file = path;
  std::error_code status;
  constexpr int max_links = 40;  // As many as Linux follows.
  for (int links = 0; std::filesystem::is_symlink(file, status); ++links) {
    const auto target = std::filesystem::read_symlink(file, status);
    if (status) return cannot_write(path, status.value());
    if (links == max_links) return cannot_write(path, ELOOP);
    file = target.is_absolute() ? target : file.parent_path() / target;
  }
  return file;
}

/// A new file beside the one that it is to replace; removed unless it has.
class Replacement {
 public:
  explicit Replacement(std::filesystem::path target) : target_(std::move(target)) {}
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;
  ~Replacement() {
    if (is_unfinished_) unlink(path_.c_str());
    has_unfinished_file = false;
  }

  /// 0, or why there is none. Nobody can have put anything of its name there before.
  int create() {
    std::random_device random;
    const std::uint64_t number = (std::uint64_t{random()} << 32U) | random();
    std::array<char, 16> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16).ptr;
    path_ = (target_.parent_path() / (".espalier-" + std::string(digits.data(), end) + ".tmp")).string();
    constexpr mode_t for_everyone = 0666;  // Less the umask.
    mark_unfinished(path_);                // Before it is there: a signal may come at any time.
    file_ = FileDescriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, for_everyone));
    if (!file_.is_open()) return errno;
    is_unfinished_ = true;
    return 0;
  }

  /// Gives it the permissions, and where it may the owner and group, of the file that it replaces.
  int take_after(const struct stat& known) {
    constexpr uid_t unchanged = static_cast<uid_t>(-1);
    const bool keeps_group =
        fchown(file_.get(), known.st_uid, known.st_gid) == 0 || fchown(file_.get(), unchanged, known.st_gid) == 0;
    // What was allowed to another group is not allowed to ours.
    constexpr mode_t permissions = 0777, of_group = 0070;
    const mode_t mode = known.st_mode & permissions & (keeps_group ? permissions : ~of_group);
    return fchmod(file_.get(), mode) == 0 ? 0 : errno;
  }

  /// 0, or why the target could not be replaced.
  int finish() {
    if (close(file_.release()) != 0) return errno;
    if (std::rename(path_.c_str(), target_.c_str()) != 0) return errno;
    is_unfinished_ = false;
    return 0;
  }

  [[nodiscard]] int descriptor() const { return file_.get(); }

 private:
  std::filesystem::path target_;
  std::string path_;
  FileDescriptor file_;
  bool is_unfinished_ = false;
};

Result<void> replace(const std::string& path, const std::optional<struct stat>& known,
                     const std::function<Result<void>(std::ostream&)>& write) {
  const auto target = behind_links(path);
  if (!target) return tl::unexpected(target.error());
  if (known && faccessat(AT_FDCWD, target->c_str(), W_OK, AT_EACCESS) != 0) return cannot_write(path, errno);
  Replacement replacement(*target);
  if (const int error = replacement.create(); error != 0) return cannot_write(path, error);
  if (const int error = known ? replacement.take_after(*known) : 0; error != 0) return cannot_write(path, error);
  if (auto written = write_to(replacement.descriptor(), path, write); !written) return written;
  const int error = replacement.finish();
  return error == 0 ? Result<void>() : cannot_write(path, error);
}

Result<void> write_straight(const std::string& path, const std::function<Result<void>(std::ostream&)>& write) {
  FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
  if (!file.is_open()) return cannot_write(path, errno);
  if (auto written = write_to(file.get(), path, write); !written) return written;
  return close(file.release()) == 0 ? Result<void>() : cannot_write(path, errno);
}

}  // namespace

Result<void> write_file(const std::string& path, const std::function<Result<void>(std::ostream&)>& write) {
  const std::string name = path == "-" ? "standard output" : path;
  if (const auto descriptor = descriptor_of(path)) {
    const bool is_terminal = *descriptor == STDOUT_FILENO && isatty(STDOUT_FILENO) != 0;
    return is_terminal ? write_to_terminal(name, write) : write_to(*descriptor, name, write);
  }
  struct stat known {};
  if (stat(path.c_str(), &known) != 0) {
    // A link that the system does not let us follow is not followed by hand either.
    if (errno != ENOENT) return cannot_write(path, errno);
    return replace(path, std::nullopt, write);
  }
  if (S_ISDIR(known.st_mode)) return cannot_write(path, EISDIR);
  return S_ISREG(known.st_mode) ? replace(path, known, write) : write_straight(path, write);
}

bool is_written_straight(const std::string& path) {
  struct stat known {};
  return descriptor_of(path) || (stat(path.c_str(), &known) == 0 && !S_ISREG(known.st_mode) && !S_ISDIR(known.st_mode));
}

void install_interrupt_handler() {
  for (const int signal : ending_signals) {
    struct sigaction known {};
    // What is ignored, as under nohup, stays ignored.
    if (sigaction(signal, nullptr, &known) != 0 || known.sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = on_ending_signal;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, nullptr);
  }
  std::signal(SIGXFSZ, SIG_IGN);  // Writing past the limit of a file's size then fails with an error.
}

}  // namespace espalier::cli
