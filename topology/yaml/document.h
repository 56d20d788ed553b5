#pragma once

// Tested by: tests/unit/topology/yaml/read_topology_test.cpp

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topology/yaml/findings.h"

namespace espalier {

class Document;

/// A value of a document with its place: a cheap handle that lives as long as the document does.
class Value {
 public:
  enum class Kind : std::uint8_t { null, scalar, list, map };

  Value() = default;  ///< No value at all: converts to false.
  Value(const Document* document, std::uint32_t index) : document_(document), index_(index) {}

  explicit operator bool() const { return document_ != nullptr; }
  [[nodiscard]] Kind kind() const;
  [[nodiscard]] bool is_scalar() const { return kind() == Kind::scalar; }
  [[nodiscard]] bool is_list() const { return kind() == Kind::list; }
  [[nodiscard]] bool is_map() const { return kind() == Kind::map; }
  [[nodiscard]] Mark mark() const;

  /// The text of a scalar as YAML understands it (quotes and escapes undone); empty for all else.
  [[nodiscard]] std::string_view text() const;

  /// Items of a list, or entries of a map.
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] Value item(std::size_t i) const;
  /// Keys of a map are scalars and unique.
  [[nodiscard]] Value key(std::size_t i) const;
  [[nodiscard]] Value value(std::size_t i) const;
  [[nodiscard]] Value find(std::string_view key) const;

 private:
  const Document* document_ = nullptr;
  std::uint32_t index_ = 0;
};

/// "a text", "a list", "a map", "nothing": for messages.
std::string_view describe(Value::Kind kind);

/// One parsed YAML (or JSON) document as a tree in flat arrays; values behind an alias are shared, not copied.
///
/// Invariants: (1) at most `read_limits::depth` deep; (2) at most `read_limits::values` values, an alias counting for
/// all that it stands for; (3) no value contains itself; (4) the keys of a map are scalars and unique.
class Document {
 public:
  /// Errors: reported to `findings` (syntax, limits, duplicate keys); nothing is returned then. `source` is where
  /// `findings` keeps the text. Requires: the text passed `check_text`.
  static std::optional<Document> parse(std::string_view text, std::uint32_t source, Findings& findings);

  [[nodiscard]] Value root() const { return {this, root_}; }

 private:
  friend class Value;
  friend class DocumentBuilder;

  struct Entry {
    Value::Kind kind = Value::Kind::null;
    std::uint32_t line = 0;
    std::uint32_t column = 0;
    std::uint32_t begin = 0;  ///< Into texts_ (scalars) or children_.
    std::uint32_t size = 0;   ///< Bytes of text, or children (a map has two per entry).
  };

  std::uint32_t source_ = 0;
  std::uint32_t root_ = 0;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> children_;
  std::string texts_;
};

}  // namespace espalier
