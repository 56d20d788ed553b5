#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <functional>

#include "base/printable.h"
#include "schedule/collective.h"
#include "schedule/traffic/traffic_readers.h"

// The format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html, versions 1.0 to 3.0.

namespace espalier {
namespace {

constexpr std::size_t magic_size = 6;

tl::unexpected<Error> fail_npy(std::string_view name, std::size_t offset, const std::string& message,
                               std::string help = {}) {
  return fail(ErrorCode::invalid_input, fmt::format("{}: byte {}: {}", name, offset, message), std::move(help));
}

/// What the header says of the array.
struct NpyHeader {
  std::string_view descr;  ///< "<i8"
  bool fortran_order = false;
  std::vector<std::size_t> shape;
  std::size_t data_offset = 0;
};

/// The value of a key of the header, a Python dictionary of one line; empty where the key is missing.
std::string_view value_of_key(std::string_view header, std::string_view key) {
  for (const char quote : {'\'', '"'}) {
    const std::string quoted = fmt::format("{0}{1}{0}", quote, key);
    const std::size_t found = header.find(quoted);
    if (found == std::string_view::npos) continue;
    const std::size_t begin = header.find_first_not_of(" :", found + quoted.size());
    return begin == std::string_view::npos ? std::string_view() : header.substr(begin);
  }
  return {};
}

/// The numbers of "(32, 32)"; nothing where it is not a tuple of such.
std::vector<std::size_t> read_shape(std::string_view text) {
  std::vector<std::size_t> shape;
  if (!text.starts_with('(')) return {};
  text = text.substr(1, text.find(')') == std::string_view::npos ? 0 : text.find(')') - 1);
  while (!text.empty()) {
    const std::size_t begin = text.find_first_not_of(" ,L");
    if (begin == std::string_view::npos) break;
    std::size_t& length = shape.emplace_back();
    const auto [rest, status] = std::from_chars(text.data() + begin, text.data() + text.size(), length);
    if (status != std::errc()) return {};
    text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  }
  return shape;
}

Result<NpyHeader> read_header(std::string_view bytes, std::string_view name) {
  constexpr std::size_t version_size = 2;
  const auto byte = [&](std::size_t at) { return static_cast<std::size_t>(static_cast<unsigned char>(bytes[at])); };
  if (bytes.size() < magic_size + version_size + 2) return fail_npy(name, bytes.size(), "the header is cut off");
  const std::size_t version = byte(magic_size);
  if (version < 1 || version > 3) {
    return fail_npy(name, magic_size, fmt::format("version {} of the format is not known", version),
                    "numpy.save writes versions 1 to 3");
  }
  const std::size_t length_size = version == 1 ? 2 : 4;
  NpyHeader header;
  std::size_t begin = magic_size + version_size;
  if (bytes.size() < begin + length_size) return fail_npy(name, bytes.size(), "the header is cut off");
  std::size_t length = 0;
  for (std::size_t i = 0; i < length_size; ++i) length |= byte(begin + i) << (8 * i);
  begin += length_size;
  if (length > bytes.size() - begin) return fail_npy(name, bytes.size(), "the header is cut off");
  const std::string_view text = bytes.substr(begin, length);
  header.data_offset = begin + length;
  const std::string_view descr = value_of_key(text, "descr");
  const std::string_view order = value_of_key(text, "fortran_order");
  if (descr.size() < 2 || (descr[0] != '\'' && descr[0] != '"')) {
    return fail_npy(name, begin, "the header names no type of plain numbers", "save a matrix of integers or floats");
  }
  header.descr = descr.substr(1, descr.find(descr[0], 1) == std::string_view::npos ? 0 : descr.find(descr[0], 1) - 1);
  header.fortran_order = order.starts_with("True");
  if (!header.fortran_order && !order.starts_with("False")) {
    return fail_npy(name, begin, "the header says no fortran_order");
  }
  header.shape = read_shape(value_of_key(text, "shape"));
  return header;
}

template <class T>
double number_at(const char* at, bool is_swapped) {
  std::array<char, sizeof(T)> raw{};
  std::memcpy(raw.data(), at, sizeof(T));
  if (is_swapped) std::ranges::reverse(raw);
  return static_cast<double>(std::bit_cast<T>(raw));
}

/// How a number of the type is read; empty for types that are none of plain numbers.
std::function<double(const char*, bool)> reader_of(std::string_view type) {
  if (type == "i1") return number_at<std::int8_t>;
  if (type == "i2") return number_at<std::int16_t>;
  if (type == "i4") return number_at<std::int32_t>;
  if (type == "i8") return number_at<std::int64_t>;
  if (type == "u1") return number_at<std::uint8_t>;
  if (type == "u2") return number_at<std::uint16_t>;
  if (type == "u4") return number_at<std::uint32_t>;
  if (type == "u8") return number_at<std::uint64_t>;
  if (type == "f4") return number_at<float>;
  if (type == "f8") return number_at<double>;
  return {};
}

}  // namespace

Result<TrafficMatrix> parse_traffic_npy(std::string_view bytes, std::string_view name) {
  const Result<NpyHeader> header = read_header(bytes, name);
  if (!header) return tl::unexpected(header.error());
  const char order = header->descr.empty() ? '?' : header->descr.front();
  const auto read = reader_of(header->descr.empty() ? "" : header->descr.substr(1));
  if (std::string_view("<>|=").find(order) == std::string_view::npos || !read) {
    return fail_npy(name, magic_size, fmt::format("the type '{}' is not one of numbers", printable_line(header->descr)),
                    "save int64, or another integer or float32, float64");
  }
  if (header->shape.size() != 2 || header->shape[0] != header->shape[1] || header->shape[0] == 0) {
    return fail_npy(name, magic_size,
                    fmt::format("the shape is ({}), no square matrix", fmt::join(header->shape, ", ")),
                    "row i has what rank i sends to each rank");
  }
  const std::size_t ranks = header->shape[0];
  if (ranks > max_matrix_ranks) {
    return fail(ErrorCode::too_large,
                fmt::format("{}: a matrix of {} ranks is past the limit of {}", name, ranks, max_matrix_ranks));
  }
  const std::size_t width = static_cast<std::size_t>(header->descr[2] - '0');
  if (bytes.size() - header->data_offset < ranks * ranks * width) {
    return fail_npy(name, bytes.size(),
                    fmt::format("the data is cut off: {} x {} numbers of {} bytes are to follow", ranks, ranks, width));
  }
  const bool is_swapped = order == '>' && std::endian::native == std::endian::little;
  std::vector<double> values(ranks * ranks);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t offset = header->data_offset + i * width;
    const double value = read(bytes.data() + offset, is_swapped);
    if (const std::string wrong = why_bad_traffic(value); !wrong.empty()) {
      return fail_npy(name, offset, fmt::format("{}: {}", value, wrong), "a block is a number of bytes, or a weight");
    }
    values[header->fortran_order ? i % ranks * ranks + i / ranks : i] = value;
  }
  return finish_traffic(ranks, values, name);
}

}  // namespace espalier
