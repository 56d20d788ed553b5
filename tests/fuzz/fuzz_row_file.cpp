// Any file that --resume is given is read as rows or refused with a line and left as it is; nothing is cut off but one
// last line without a line break, of a file that is proven to be of rows.

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "sweep/merge.h"
#include "sweep/row_file.h"

namespace {

std::string text_of(int file) {
  std::string text(static_cast<std::size_t>(lseek(file, 0, SEEK_END)), '\0');
  ESPALIER_CHECK(pread(file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()), "memory is read whole");
  return text;
}

void resume(int file, std::string_view text, espalier::sweep::RowFormat format) {
  using namespace espalier;
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  const auto opened = sweep::RowFile::open(path, {format, false}, true);
  const std::string after = text_of(file);
  if (!opened) {
    ESPALIER_CHECK(after == text, "what is refused stays as it is");
    return;
  }
  ESPALIER_CHECK(text.empty() || sweep::begins_as_rows(text), "what is read is proven to be of rows");
  if (opened->rows().empty()) return;  // The header is written anew.
  ESPALIER_CHECK(text.starts_with(after), "only the end is cut off");
  ESPALIER_CHECK(text.substr(after.size()).find('\n') == std::string_view::npos, "and only within one line");
  const auto merged = sweep::merge_rows({{"a", opened->rows()}, {"b", opened->rows()}});
  ESPALIER_CHECK(!merged || merged->rows.size() <= opened->rows().size(), "rows that agree are one");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto format : {espalier::sweep::RowFormat::csv, espalier::sweep::RowFormat::json_lines}) {
    const int file = memfd_create("rows", MFD_CLOEXEC);
    ESPALIER_CHECK(file >= 0 && write(file, data, size) == static_cast<ssize_t>(size), "there is memory");
    resume(file, text, format);
    close(file);
  }
  return 0;
}
