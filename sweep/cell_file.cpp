#include "sweep/cell_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/error_text.h"

namespace espalier::sweep {
namespace {

tl::unexpected<Error> cannot(const char* what, const std::string& path) {
  return espalier::fail(ErrorCode::unavailable, std::string("cannot ") + what + " " + path + ": " + error_text(errno),
                        "choose a file in a folder that exists and may be written");
}

}  // namespace

Result<CellFile> CellFile::open(const std::string& path, const RowForm& form, const RowStyle& style, bool resume,
                                const TakeCells& take) {
  constexpr int for_everyone = 0666;
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, for_everyone);
  if (descriptor < 0) return cannot("write", path);
  CellFile file(path, form, style, descriptor);
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return espalier::fail(ErrorCode::unavailable, "another sweep writes " + path,
                          "wait for it, or give each shard a file of its own");
  }
  if (auto taken = file.take_what_is_there(resume, take); !taken) return tl::unexpected(taken.error());
  return file;
}

CellFile::CellFile(CellFile&& other) noexcept
    : path_(std::move(other.path_)),
      form_(other.form_),
      style_(other.style_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      was_torn_(other.was_torn_) {}

CellFile& CellFile::operator=(CellFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(form_, other.form_);
  std::swap(style_, other.style_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(was_torn_, other.was_torn_);
  return *this;
}

CellFile::~CellFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

Result<void> CellFile::take_what_is_there(bool resume, const TakeCells& take) {
  std::string text;
  std::array<char, 1 << 16> block{};
  for (ssize_t count = 0; (count = read(descriptor_, block.data(), block.size())) != 0;) {
    if (count < 0) return cannot("read", path_);
    text.append(block.data(), static_cast<std::size_t>(count));
  }
  if (!text.empty() && !resume) {
    return espalier::fail(ErrorCode::invalid_input, path_ + " is there already",
                          "go on with it by --resume, or choose another file");
  }
  auto known = read_cells(text, form_, style_.format, path_, take);
  if (!known) return tl::unexpected(known.error());
  if (known->rows > 0 && known->timings != style_.timings) {
    return espalier::fail(ErrorCode::invalid_input,
                          path_ + (known->timings ? " has the columns of --timings" : " has no columns of --timings"),
                          known->timings ? "go on with --timings" : "go on without --timings");
  }
  was_torn_ = known->whole_bytes < text.size();
  // A header alone says nothing that the new one does not.
  const std::size_t kept = known->rows == 0 ? 0 : known->whole_bytes;
  if (kept < text.size() && ftruncate(descriptor_, static_cast<off_t>(kept)) != 0) return cannot("write", path_);
  return kept == 0 ? write(header_text(form_, style_)) : Result<void>();
}

Result<void> CellFile::write(const std::string& text) const {
  const off_t whole = lseek(descriptor_, 0, SEEK_END);
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = ::write(descriptor_, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      auto failure = cannot("write", path_);
      // A full disk leaves no torn line; where this fails too, the next `open` removes it.
      if (done > 0) [[maybe_unused]]
        const int cut = ftruncate(descriptor_, whole);
      return failure;
    }
    done += static_cast<std::size_t>(count);
  }
  return {};
}

Result<void> CellFile::append(const Cells& cells) const { return write(line_text(form_, cells, style_.format)); }

}  // namespace espalier::sweep
