#include "engine/launch/local_job.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/send_signal.h"
#include "engine/launch/line_tail.h"
#include "engine/launch/rank_limit.h"
#include "engine/launch/rank_process.h"
#include "engine/rendezvous/names.h"
#include "engine/rendezvous/secret.h"
#include "engine/rendezvous/wire/listener.h"

namespace espalier::engine::launch {
namespace {

using std::chrono::steady_clock;

/// SIGINT, SIGTERM and SIGCHLD as a descriptor while it lives; the mask of before afterwards.
class SignalsAsDescriptor {
 public:
  SignalsAsDescriptor() {
    sigset_t wanted;
    sigemptyset(&wanted);
    for (const int number : {SIGINT, SIGTERM, SIGCHLD}) sigaddset(&wanted, number);
    pthread_sigmask(SIG_BLOCK, &wanted, &before_);
    // Where children are ignored the system forgets them, and how they ended, by itself.
    struct sigaction by_default {};
    by_default.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &by_default, &child_action_before_);
    fd_.reset(signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  SignalsAsDescriptor(const SignalsAsDescriptor&) = delete;
  SignalsAsDescriptor& operator=(const SignalsAsDescriptor&) = delete;
  ~SignalsAsDescriptor() {
    sigaction(SIGCHLD, &child_action_before_, nullptr);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  [[nodiscard]] int fd() const { return fd_.get(); }
  /// The numbers of the signals that came.
  [[nodiscard]] std::vector<int> take() const {
    std::vector<int> numbers;
    signalfd_siginfo info{};
    while (::read(fd_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      numbers.push_back(static_cast<int>(info.ssi_signo));
    }
    return numbers;
  }

 private:
  sigset_t before_{};
  struct sigaction child_action_before_ {};
  FileDescriptor fd_;
};

/// A rank while it runs.
struct Running {
  Spawned spawned;
  LineTail tail;
  RankExit exit;
  bool has_ended = false;
};

class LocalJob {
 public:
  explicit LocalJob(const LocalJobOptions& options) : options_(options) {}
  LocalJob(const LocalJob&) = delete;
  LocalJob& operator=(const LocalJob&) = delete;
  /// No process is left, however the job ends.
  ~LocalJob() {
    kill_all(SIGKILL);
    for (Running& rank : ranks_) reap(rank, 0);
  }

  Result<void> start();
  LocalJobResult wait();

 private:
  void kill_all(int signal);
  void reap(Running& rank, int flags);
  void on_signal(int number);
  void note_deaths();
  void read_errors(Running& rank);
  [[nodiscard]] int poll_timeout() const;

  const LocalJobOptions& options_;
  SignalsAsDescriptor signals_;
  std::vector<Running> ranks_;
  LocalJobResult result_;
  std::optional<steady_clock::time_point> kill_at_;
};

rendezvous::Environment environment_of(const LocalJobOptions& options, std::uint32_t rank,
                                       const rendezvous::Listener& listener, const std::string& secret) {
  rendezvous::Environment environment = rendezvous::process_environment();
  // Of another job, if any: a secret's file, a descriptor's number.
  std::erase_if(environment, [](const auto& variable) { return variable.first.starts_with("ESPALIER_"); });
  environment["ESPALIER_RANK"] = std::to_string(rank);
  environment["ESPALIER_WORLD"] = std::to_string(options.world);
  environment["ESPALIER_RENDEZVOUS"] = fmt::format("127.0.0.1:{}", listener.port);
  environment["ESPALIER_JOB"] = fmt::format("local {}", getpid());
  environment["ESPALIER_SECRET"] = secret;
  if (rank == 0) environment["ESPALIER_LISTENER_FD"] = std::to_string(listener.fd.get());
  for (const auto& [name, value] : options.environment) environment[name] = value;
  return environment;
}

Result<void> LocalJob::start() {
  if (signals_.fd() < 0) {
    return fail(ErrorCode::unavailable, "cannot create a signalfd: " + rendezvous::errno_text(errno),
                "raise the limit of open files (ulimit -n)");
  }
  const auto listener = rendezvous::listen_on("127.0.0.1", 0);
  if (!listener) return tl::unexpected(listener.error());
  const auto secret = rendezvous::random_secret();
  if (!secret) return tl::unexpected(secret.error());
  for (std::uint32_t rank = 0; rank < options_.world; ++rank) {
    const bool is_first = rank == 0;
    auto spawned = spawn({options_.program, options_.arguments, environment_of(options_, rank, *listener, *secret),
                          is_first, is_first ? listener->fd.get() : -1});
    if (!spawned) {
      Error error = std::move(spawned.error());
      error.message = fmt::format("rank {}: {}", rank, error.message);
      return tl::unexpected(std::move(error));
    }
    LineTail::Sink sink;
    if (options_.on_error_line) sink = [this, rank](const std::string& line) { options_.on_error_line(rank, line); };
    RankExit exit;
    exit.process = spawned->process;
    ranks_.push_back({std::move(*spawned), LineTail(options_.kept_lines, std::move(sink)), std::move(exit), false});
  }
  return {};
}

void LocalJob::kill_all(int signal) {
  for (Running& rank : ranks_) {
    if (rank.has_ended) continue;
    rank.exit.was_killed |= signal == SIGKILL;
    send_signal_to_group(rank.spawned.process, signal);
  }
}

void LocalJob::reap(Running& rank, int flags) {
  if (rank.has_ended) return;
  siginfo_t info{};
  // First only looked at: as long as it is not reaped its group's number is not given away, and what it left behind in
  // its group can be killed without hitting anyone else.
  const auto id = static_cast<id_t>(rank.spawned.process);
  while (waitid(P_PID, id, &info, WEXITED | WNOWAIT | flags) != 0 && errno == EINTR) {
  }
  if (info.si_pid != rank.spawned.process) return;
  send_signal_to_group(rank.spawned.process, SIGKILL);
  waitpid(rank.spawned.process, nullptr, 0);
  rank.has_ended = true;
  constexpr int signal_base = 128;
  if (info.si_code == CLD_EXITED) {
    rank.exit.code = info.si_status;
    rank.exit.was_killed = false;
  } else {
    rank.exit.signal = info.si_status;
    rank.exit.code = signal_base + info.si_status;
  }
}

void LocalJob::note_deaths() {
  for (std::uint32_t index = 0; index < ranks_.size(); ++index) {
    Running& rank = ranks_[index];
    if (rank.has_ended) continue;
    reap(rank, WNOHANG);
    if (!rank.has_ended || rank.exit.code == 0 || rank.exit.was_killed || result_.was_interrupted) continue;
    if (!result_.first_failed) {
      result_.first_failed = index;
      kill_at_ = steady_clock::now() + options_.grace;
    } else if (rank.exit.signal && !ranks_[*result_.first_failed].exit.signal) {
      // A killed process closes its connections before it counts as dead: others may have seen it, said so and ended
      // before.
      result_.first_failed = index;
    }
  }
}

void LocalJob::on_signal(int number) {
  if (number == SIGCHLD) return note_deaths();
  const bool is_second = std::exchange(result_.was_interrupted, true);
  kill_all(is_second ? SIGKILL : number);
  if (!kill_at_) kill_at_ = steady_clock::now() + options_.grace;
}

void LocalJob::read_errors(Running& rank) {
  std::array<char, 16384> buffer;
  while (rank.spawned.error_pipe.is_open()) {
    const ssize_t count = ::read(rank.spawned.error_pipe.get(), buffer.data(), buffer.size());
    if (count > 0) {
      rank.tail.append({buffer.data(), static_cast<std::size_t>(count)});
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) rank.spawned.error_pipe.reset();
    return;
  }
}

int LocalJob::poll_timeout() const {
  if (!kill_at_) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*kill_at_ - steady_clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1000));
}

LocalJobResult LocalJob::wait() {
  while (std::ranges::any_of(ranks_, [](const Running& rank) { return !rank.has_ended; })) {
    std::vector<pollfd> entries{{signals_.fd(), POLLIN, 0}};
    // A closed pipe is -1, which poll leaves out.
    for (const Running& rank : ranks_) entries.push_back({rank.spawned.error_pipe.get(), POLLIN, 0});
    const int ready = ::poll(entries.data(), entries.size(), poll_timeout());
    if (ready > 0) {
      for (std::size_t i = 0; i < ranks_.size(); ++i) {
        if (entries[i + 1].revents != 0) read_errors(ranks_[i]);
      }
      for (const int number : signals_.take()) on_signal(number);
    }
    if (kill_at_ && steady_clock::now() >= *kill_at_) {
      kill_all(SIGKILL);
      kill_at_ = steady_clock::now() + options_.grace;
    }
  }
  for (Running& rank : ranks_) {
    read_errors(rank);
    rank.tail.finish();
    rank.exit.last_lines = rank.tail.lines();
    result_.ranks.push_back(std::move(rank.exit));
  }
  return std::move(result_);
}

std::string how_it_ended(const RankExit& exit) {
  if (!exit.signal) return fmt::format("exited with code {}", exit.code);
  return fmt::format("was ended by signal {} ({})", *exit.signal, strsignal(*exit.signal));
}

/// Where a signal that nobody sent on purpose comes from.
const char* source_of(const RankExit& exit) {
  switch (exit.signal.value_or(0)) {
    case SIGKILL: return "help: the kernel sends it where memory runs out (see dmesg); else somebody did\n";
    case SIGSEGV:
    case SIGBUS:
    case SIGILL:
    case SIGFPE:
    case SIGABRT: return "help: it crashed: coredumpctl or a debugger tells where\n";
    default: return "";
  }
}

}  // namespace

int LocalJobResult::exit_code() const {
  constexpr int interrupted = 130;
  if (first_failed) return ranks[*first_failed].code;
  return was_interrupted ? interrupted : 0;
}

std::string LocalJobResult::summary() const {
  if (!first_failed) return was_interrupted ? "interrupted\n" : fmt::format("{} ranks ended well\n", ranks.size());
  const RankExit& first = ranks[*first_failed];
  std::string text = fmt::format("rank {} (process {}) {}\n", *first_failed, first.process, how_it_ended(first));
  for (const std::string& line : first.last_lines) text += fmt::format("rank {}: {}\n", *first_failed, line);
  text += source_of(first);
  const auto killed = std::ranges::count_if(ranks, [](const RankExit& rank) { return rank.was_killed; });
  if (killed > 0)
    text += fmt::format("{} other{} did not end by themselves and were killed\n", killed, killed == 1 ? "" : "s");
  return text;
}

Result<LocalJobResult> run_local_job(const LocalJobOptions& options) {
  if (options.world == 0) return fail(ErrorCode::invalid_input, "a job has at least one rank");
  if (options.max_ranks && options.world > *options.max_ranks) {
    return fail(
        ErrorCode::too_large,
        fmt::format("{} ranks are more than the {} that may be started here", options.world, *options.max_ranks),
        fmt::format("take a topology of fewer ranks, or say --max-local-ranks {}", options.world));
  }
  if (!options.max_ranks) {
    const auto limits = read_machine_limits();
    if (!limits) return tl::unexpected(limits.error());
    if (auto checked = check_local_ranks(options.world, *limits); !checked) return tl::unexpected(checked.error());
  }
  LocalJob job(options);
  if (auto started = job.start(); !started) return tl::unexpected(std::move(started.error()));
  return job.wait();
}

}  // namespace espalier::engine::launch
