#include "schedule/timeline/binary_timeline.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <ostream>
#include <string>

#include "base/fnv.h"

namespace espalier {
namespace {

constexpr std::string_view magic = "ESPTIME1";

/// Small numbers of either sign become small numbers.
std::uint64_t zigzag(std::uint64_t difference) { return (difference << 1U) ^ (0 - (difference >> 63U)); }
std::uint64_t unzigzag(std::uint64_t code) { return (code >> 1U) ^ (0 - (code & 1U)); }

class Writer {
 public:
  explicit Writer(std::ostream& out) : out_(out) {}

  void byte(std::uint8_t value) {
    checksum_.add(value);
    buffer_.push_back(static_cast<char>(value));
    if (buffer_.size() >= flush_size) flush();
  }

  /// Seven bits a byte, low ones first; the top bit says that more follow.
  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7U) byte(static_cast<std::uint8_t>(value | 0x80U));
    byte(static_cast<std::uint8_t>(value));
  }

  void text(std::string_view value) {
    number(value.size());
    for (const char c : value) byte(static_cast<std::uint8_t>(c));
  }

  void texts(const std::vector<std::string>& values) {
    number(values.size());
    for (const std::string& value : values) text(value);
  }

  void finish() {
    const std::uint64_t checksum = checksum_.value();
    for (unsigned shift = 0; shift < 64; shift += 8) byte(static_cast<std::uint8_t>(checksum >> shift));
    flush();
  }

 private:
  static constexpr std::size_t flush_size = 1 << 16;

  void flush() {
    out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    buffer_.clear();
  }

  std::ostream& out_;
  std::string buffer_;
  Fnv1a checksum_;
};

/// Reads what Writer wrote. After the first failure everything reads as zero and `failed` stays true.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  [[nodiscard]] bool failed() const { return failed_; }

  std::uint8_t byte() {
    if (failed_ || offset_ == bytes_.size()) {
      failed_ = true;
      return 0;
    }
    const auto read = static_cast<std::uint8_t>(bytes_[offset_++]);
    checksum_.add(read);
    return read;
  }

  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint64_t part = byte();
      const std::uint64_t bits = part & 0x7FU;
      if (shift == 63 && bits > 1) break;
      value |= bits << shift;
      if ((part & 0x80U) == 0) return value;
    }
    failed_ = true;
    return 0;
  }

  std::string text() {
    const std::uint64_t length = number();
    std::string value;
    for (std::uint64_t i = 0; i < length && !failed_; ++i) value.push_back(static_cast<char>(byte()));
    return value;
  }

  /// A name takes a byte in the file and many in memory: more than `max_names` are taken for damage.
  std::vector<std::string> texts() {
    constexpr std::uint64_t max_names = std::uint64_t{1} << 22U;
    std::vector<std::string> values;
    const std::uint64_t count = number();
    if (count > max_names || count > left()) failed_ = true;
    for (std::uint64_t i = 0; i < count && !failed_; ++i) values.push_back(text());
    return values;
  }

  /// Bytes that are not read yet.
  [[nodiscard]] std::size_t left() const { return bytes_.size() - offset_; }

  /// Whether the checksum follows and then nothing.
  bool finish() {
    const std::uint64_t expected = checksum_.value();
    std::uint64_t written = 0;
    for (unsigned shift = 0; shift < 64; shift += 8) written |= std::uint64_t{byte()} << shift;
    return !failed_ && written == expected && offset_ == bytes_.size();
  }

 private:
  std::string_view bytes_;
  std::size_t offset_ = 0;
  Fnv1a checksum_;
  bool failed_ = false;
};

/// Spans are stored as differences from the one before.
class SpanCoder {
 public:
  static void write(Writer& writer, const std::vector<Span>& spans) {
    Span before;
    before.transfer = TransferId(0);
    for (const Span& span : spans) {
      writer.number((std::uint64_t{span.lane} << 2U) | static_cast<std::uint64_t>(span.phase));
      writer.number(zigzag(difference(span.begin.count, before.begin.count)));
      writer.number(difference(span.end.count, span.begin.count));
      writer.number(zigzag(difference(span.transfer.value(), before.transfer.value())));
      writer.number(span.chunk);
      before = span;
    }
  }

  /// The next span; nothing when its numbers are out of range.
  static std::optional<Span> read(Reader& reader, const Span& before) {
    const std::uint64_t lane_and_phase = reader.number();
    const auto begin =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(before.begin.count) + unzigzag(reader.number()));
    const std::uint64_t duration = reader.number();
    const std::uint64_t transfer = before.transfer.value() + unzigzag(reader.number());
    const std::uint64_t chunk = reader.number();
    constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
    std::int64_t end = 0;
    if (reader.failed() || (lane_and_phase >> 2U) > most || transfer > most || chunk > most ||
        __builtin_add_overflow(begin, duration, &end)) {
      return std::nullopt;
    }
    return Span{static_cast<std::uint32_t>(lane_and_phase >> 2U),
                TransferId(transfer),
                static_cast<std::uint32_t>(chunk),
                static_cast<Phase>(lane_and_phase & 3U),
                {begin},
                {end}};
  }

 private:
  static std::uint64_t difference(std::int64_t a, std::int64_t b) {
    return static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b);
  }
};

}  // namespace

Result<void> write_binary_timeline(std::ostream& out, const Timeline& timeline) {
  Writer writer(out);
  for (const char c : magic) writer.byte(static_cast<std::uint8_t>(c));
  writer.text(timeline.title);
  writer.text(timeline.origin);
  writer.texts(timeline.rank_names);
  writer.texts(timeline.link_names);
  writer.number(timeline.spans.size());
  SpanCoder::write(writer, timeline.spans);
  writer.finish();
  out.flush();
  if (!out) return fail(ErrorCode::unavailable, "the timeline could not be written in full");
  return {};
}

Result<Timeline> read_binary_timeline(std::string_view bytes, std::string_view name) {
  const auto refuse = [&](const char* why) {
    return fail(ErrorCode::invalid_input, std::string(name) + ": the binary timeline " + why);
  };
  if (!bytes.starts_with(magic)) return refuse("does not begin with ESPTIME1");
  Reader reader(bytes);
  for (std::size_t i = 0; i < magic.size(); ++i) reader.byte();
  Timeline timeline;
  timeline.title = reader.text();
  timeline.origin = reader.text();
  timeline.rank_names = reader.texts();
  timeline.link_names = reader.texts();
  Span before;
  before.transfer = TransferId(0);
  const std::uint64_t count = reader.number();
  constexpr std::size_t min_bytes = 5;  // Of a span: five numbers.
  timeline.spans.reserve(std::min<std::uint64_t>(count, reader.left() / min_bytes));
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::optional<Span> span = SpanCoder::read(reader, before);
    if (!span) return refuse("is cut off, or has a span out of range");
    const auto& names = span->phase == Phase::wire ? timeline.link_names : timeline.rank_names;
    if (span->lane >= names.size()) return refuse("has a span on a lane without a name");
    timeline.spans.push_back(*span);
    before = *span;
  }
  if (!reader.finish()) return refuse("is cut off or damaged: its checksum does not fit");
  return timeline;
}

}  // namespace espalier
