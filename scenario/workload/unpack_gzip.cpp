#include "scenario/workload/unpack_gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace espalier::scenario {
namespace {

/// zlib's state, which is given back whatever happens.
class Inflater {
 public:
  Inflater() {
    constexpr int gzip_with_largest_window = 15 + 16;
    is_ready_ = inflateInit2(&stream_, gzip_with_largest_window) == Z_OK;
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() {
    if (is_ready_) inflateEnd(&stream_);
  }

  [[nodiscard]] bool is_ready() const { return is_ready_; }
  z_stream& stream() { return stream_; }

 private:
  z_stream stream_{};
  bool is_ready_ = false;
};

}  // namespace

Result<std::string> unpack_gzip(std::string_view bytes, std::size_t most) {
  Inflater inflater;
  if (!inflater.is_ready()) return fail(ErrorCode::unavailable, "there is no memory to unpack it", "");
  z_stream& stream = inflater.stream();
  std::string unpacked;
  std::vector<unsigned char> room(std::size_t{1} << 16U);
  while (true) {
    if (stream.avail_in == 0 && !bytes.empty()) {
      // zlib counts in 32 bits and does not write what it reads.
      const std::size_t taken = std::min<std::size_t>(bytes.size(), std::numeric_limits<uInt>::max());
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
      stream.avail_in = static_cast<uInt>(taken);
      bytes.remove_prefix(taken);
    }
    stream.next_out = room.data();
    stream.avail_out = static_cast<uInt>(room.size());
    const int status = inflate(&stream, Z_NO_FLUSH);
    const std::size_t made = room.size() - stream.avail_out;
    if (status == Z_MEM_ERROR) return fail(ErrorCode::unavailable, "there is no memory to unpack it", "");
    if (status != Z_OK && status != Z_STREAM_END) {
      return fail(ErrorCode::invalid_input,
                  status == Z_BUF_ERROR ? "the compressed bytes end too early" : "the compressed bytes are damaged",
                  "gzip --test says the same; copy the file again");
    }
    if (made > most - unpacked.size()) {
      return fail(ErrorCode::too_large, "it unpacks to more than " + std::to_string(most) + " bytes",
                  "unpack it yourself if it is meant to be as large");
    }
    unpacked.append(reinterpret_cast<const char*>(room.data()), made);
    if (status == Z_OK) continue;
    if (stream.avail_in == 0 && bytes.empty()) return unpacked;
    inflateReset(&stream);  // another member
  }
}

}  // namespace espalier::scenario
