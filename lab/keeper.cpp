#include "lab/keeper.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "lab/clean_up.h"

namespace espalier::lab {

Result<Keeper> Keeper::start(const JobName& job) {
  std::array<int, 2> ends{-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    return fail(ErrorCode::unavailable, "no pipe can be had for the lab's keeper");
  Keeper keeper;
  keeper.pipe_fd_ = ends[1];
  Launch launch;
  // `read` ends when the last writer of the pipe is gone; a line means that the namespaces are to stay.
  launch.arguments = {"sh", "-c", "trap '' INT TERM HUP\nread line && exit 0\n" + tear_down_script(), "espalier-keeper",
                      job.prefix()};
  launch.input_fd = ends[0];
  launch.outlives_parent = true;
  auto process = Process::start(launch);
  close(ends[0]);
  if (!process) return tl::unexpected(process.error());
  keeper.process_ = std::move(*process);
  return keeper;
}

Keeper::Keeper(Keeper&& other) noexcept
    : pipe_fd_(std::exchange(other.pipe_fd_, -1)), process_(std::exchange(other.process_, std::nullopt)) {}

Keeper& Keeper::operator=(Keeper&& other) noexcept {
  std::swap(pipe_fd_, other.pipe_fd_);
  std::swap(process_, other.process_);
  return *this;
}

Keeper::~Keeper() { static_cast<void>(finish()); }

Result<void> Keeper::finish() {
  if (!process_) return {};
  close(std::exchange(pipe_fd_, -1));
  const Outcome outcome = process_->wait();
  process_.reset();
  if (outcome.code == 0 && outcome.errors.empty()) return {};
  return fail(ErrorCode::unavailable, "the lab was not torn down wholly: " + outcome.errors,
              "espalier lab --clean removes what is left");
}

void Keeper::let_go() {
  if (!process_) return;
  [[maybe_unused]] const ssize_t told = write(pipe_fd_, "\n", 1);
  close(std::exchange(pipe_fd_, -1));
  static_cast<void>(process_->wait());
  process_.reset();
}

}  // namespace espalier::lab
