#pragma once

// Tested by: tests/unit/topology/import/import_test.cpp

#include <cstdint>
#include <memory>
#include <pugixml.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace espalier {

/// A parsed XML text that knows where its elements stand.
class XmlFile {
 public:
  /// Errors: invalid_input with the place where it stops being XML; too_large when elements nest too deep.
  static Result<XmlFile> parse(std::string_view text, const std::string& name);

  [[nodiscard]] pugi::xml_node root() const { return document_->document_element(); }
  [[nodiscard]] int line(pugi::xml_node node) const { return position(node.offset_debug()).line; }
  /// An error at an element: "file:line:column: ...".
  [[nodiscard]] tl::unexpected<Error> fail_at(pugi::xml_node node, const std::string& message,
                                              const std::string& help) const;

  /// A whole number of an attribute, decimal or with 0x; `fallback` when it is not there.
  /// Errors: invalid_input at the element for anything else and outside [low, high].
  [[nodiscard]] Result<std::int64_t> integer(pugi::xml_node node, const char* attribute, std::int64_t fallback,
                                             std::int64_t low, std::int64_t high) const;

 private:
  struct Position {
    int line = 1;
    int column = 1;
  };
  [[nodiscard]] Position position(std::ptrdiff_t offset) const;

  std::string name_;
  std::string text_;
  std::unique_ptr<pugi::xml_document> document_;
};

}  // namespace espalier
