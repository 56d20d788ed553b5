#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace espalier::scenario::test {

/// Writes Chakra execution traces, to read them back.
class Trace {
 public:
  Trace& compute(std::uint64_t id, std::string_view name, std::uint64_t duration_us) {
    begin(id, name, 4);
    return number(7, duration_us);
  }
  Trace& collective(std::uint64_t id, std::string_view name, std::uint64_t type, std::uint64_t size) {
    begin(id, name, 7);
    return attribute("comm_type", type).attribute("comm_size", size);
  }
  Trace& send(std::uint64_t id, std::uint64_t dst, std::uint64_t size, std::uint64_t tag) {
    begin(id, "send", 5);
    return attribute("comm_dst", dst).attribute("comm_size", size).attribute("comm_tag", tag);
  }
  Trace& receive(std::uint64_t id, std::uint64_t src, std::uint64_t size, std::uint64_t tag) {
    begin(id, "receive", 6);
    return attribute("comm_src", src).attribute("comm_size", size).attribute("comm_tag", tag);
  }
  /// What the last node depends on: data dependencies, packed.
  Trace& after(const std::vector<std::uint64_t>& ids) {
    std::string packed;
    for (const std::uint64_t id : ids) packed += varint(id);
    nodes_.back() += text_field(5, packed);
    return *this;
  }
  /// A control dependency of the last node, a field of its own.
  Trace& behind(std::uint64_t id) { return number(4, id); }
  /// A further attribute of the last node.
  Trace& attribute(std::string_view name, std::uint64_t value) {
    nodes_.back() += text_field(10, text_field(1, name) + varint(9U << 3U) + varint(value));
    return *this;
  }

  [[nodiscard]] std::string bytes() const {
    const std::string metadata = text_field(1, "0.0.4");
    std::string all = varint(metadata.size()) + metadata;
    for (const std::string& node : nodes_) all += varint(node.size()) + node;
    return all;
  }

 private:
  static std::string varint(std::uint64_t value) {
    std::string text;
    for (; value >= 0x80U; value >>= 7U) text += static_cast<char>(value | 0x80U);
    return text + static_cast<char>(value);
  }
  static std::string text_field(std::uint64_t number, std::string_view text) {
    return varint(number << 3U | 2U) + varint(text.size()) + std::string(text);
  }
  void begin(std::uint64_t id, std::string_view name, std::uint64_t type) {
    nodes_.emplace_back();
    number(1, id);
    nodes_.back() += text_field(2, name);
    number(3, type);
  }
  Trace& number(std::uint64_t field, std::uint64_t value) {
    nodes_.back() += varint(field << 3U) + varint(value);
    return *this;
  }

  std::vector<std::string> nodes_;
};

}  // namespace espalier::scenario::test
