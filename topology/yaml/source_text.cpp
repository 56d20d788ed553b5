#include "topology/yaml/source_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <system_error>

#include "topology/yaml/read_codes.h"
#include "topology/yaml/read_limits.h"

namespace espalier {
namespace {

Problem too_large(std::uintmax_t size) {
  return {read_codes::file_too_large,
          fmt::format("the file is {} bytes long; at most {} are read", size, read_limits::file_bytes),
          "write the machine in the compact form (groups with a count, ranges)"};
}

/// The length of the UTF-8 sequence at the front of `text`; zero when there is none.
/// Source: Unicode 15.0, table 3-7.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return continues(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const bool overlong = lead == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = lead == 0xED && byte(1) > 0x9F;
    return continues(1) && continues(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const bool overlong = lead == 0xF0 && byte(1) < 0x90;
    const bool past_last = lead == 0xF4 && byte(1) > 0x8F;
    return continues(1) && continues(2) && continues(3) && !overlong && !past_last ? 4 : 0;
  }
  return 0;
}

bool is_forbidden_control(char letter) {
  const auto byte = static_cast<unsigned char>(letter);
  return (byte < 0x20 && letter != '\n' && letter != '\r' && letter != '\t') || byte == 0x7F;
}

}  // namespace

tl::expected<std::string, Problem> load_text(const std::filesystem::path& path) {
  const auto cannot_read = [&](std::string why, std::string help) {
    return tl::unexpected(
        Problem{read_codes::cannot_read, fmt::format("cannot read '{}': {}", path.string(), why), std::move(help)});
  };
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) return cannot_read("there is no such file", "check the path");
  if (std::filesystem::is_directory(status)) return cannot_read("it is a directory", "name a file inside it");
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return cannot_read("permission denied", "check who may read the file");
  std::string text;
  std::string block(std::size_t{1} << 16U, '\0');
  if (std::filesystem::is_regular_file(status)) {
    const auto size = std::filesystem::file_size(path, error);
    if (!error && size > read_limits::file_bytes) return tl::unexpected(too_large(size));
  }
  while (stream.read(block.data(), static_cast<std::streamsize>(block.size())) || stream.gcount() > 0) {
    text.append(block, 0, static_cast<std::size_t>(stream.gcount()));
    if (text.size() > read_limits::file_bytes) return tl::unexpected(too_large(text.size()));
  }
  if (stream.bad()) return cannot_read("reading failed", "");
  return text;
}

tl::expected<void, BadText> check_text(std::string_view text) {
  if (text.size() > read_limits::file_bytes) return tl::unexpected(BadText{{}, too_large(text.size())});
  std::uint32_t line = 1;
  std::size_t line_begin = 0;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = sequence_length(text.substr(i));
    if (length == 0 || is_forbidden_control(text[i])) {
      const Mark mark{0, line, static_cast<std::uint32_t>(i - line_begin + 1), 1};
      const unsigned byte = static_cast<unsigned char>(text[i]);
      const std::string_view what = length == 0 ? "not UTF-8" : "a control character";
      return tl::unexpected(
          BadText{mark,
                  {read_codes::not_text, fmt::format("this is not a text file: byte 0x{:02X} is {}", byte, what),
                   "a topology is YAML in UTF-8"}});
    }
    if (text[i] == '\n') {
      ++line;
      line_begin = i + 1;
    }
    i += length;
  }
  return {};
}

}  // namespace espalier
