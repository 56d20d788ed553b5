#include "topology/import/xml_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace espalier {
namespace {

/// Readers walk elements recursively, and look for some of them one by one.
constexpr int deepest_element = 64;
constexpr int max_elements = 50'000;

bool is_too_large(pugi::xml_node root) {
  int depth = 0;
  int elements = 0;
  for (pugi::xml_node node = root; node;) {
    if (++elements > max_elements) return true;
    if (node.first_child()) {
      node = node.first_child();
      if (++depth > deepest_element) return true;
      continue;
    }
    while (node && node != root && !node.next_sibling()) {
      node = node.parent();
      --depth;
    }
    node = node == root ? pugi::xml_node() : node.next_sibling();
  }
  return false;
}

}  // namespace

Result<XmlFile> XmlFile::parse(std::string_view text, const std::string& name) {
  XmlFile file;
  file.name_ = name;
  file.text_ = text;
  file.document_ = std::make_unique<pugi::xml_document>();
  // A fixed encoding: nothing is converted, so offsets are those of the file.
  const auto parsed =
      file.document_->load_buffer(file.text_.data(), file.text_.size(), pugi::parse_default, pugi::encoding_utf8);
  if (!parsed || !file.root()) {
    const Position at = file.position(parsed ? 0 : parsed.offset);
    return fail(ErrorCode::invalid_input,
                fmt::format("{}:{}:{}: this is not XML: {}", name, at.line, at.column,
                            parsed ? "there is no element" : parsed.description()),
                "check that the file is whole");
  }
  if (is_too_large(file.root())) {
    return fail(ErrorCode::too_large,
                fmt::format("{}: more than {} elements, or more than {} inside each other", name, max_elements,
                            deepest_element),
                "no tool writes such files of one machine");
  }
  return file;
}

XmlFile::Position XmlFile::position(std::ptrdiff_t offset) const {
  Position at;
  const std::size_t end = std::min(text_.size(), static_cast<std::size_t>(std::max<std::ptrdiff_t>(offset, 0)));
  for (std::size_t i = 0; i < end; ++i) {
    at.column = text_[i] == '\n' ? 1 : at.column + 1;
    at.line += text_[i] == '\n' ? 1 : 0;
  }
  return at;
}

tl::unexpected<Error> XmlFile::fail_at(pugi::xml_node node, const std::string& message, const std::string& help) const {
  const Position at = position(node.offset_debug());
  return fail(ErrorCode::invalid_input,
              fmt::format("{}:{}:{}: <{}>: {}", name_, at.line, at.column, node.name(), message), help);
}

Result<std::int64_t> XmlFile::integer(pugi::xml_node node, const char* attribute, std::int64_t fallback,
                                      std::int64_t low, std::int64_t high) const {
  const pugi::xml_attribute found = node.attribute(attribute);
  if (!found || *found.value() == '\0') return fallback;
  std::string_view digits = found.value();
  const bool is_hex = digits.starts_with("0x") || digits.starts_with("0X");
  if (is_hex) digits.remove_prefix(2);
  std::int64_t value = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value, is_hex ? 16 : 10);
  if (parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size() && value >= low && value <= high) {
    return value;
  }
  return fail_at(node,
                 fmt::format("{}=\"{}\" is not a whole number from {} to {}", attribute,
                             std::string_view(found.value()).substr(0, 60), low, high),
                 "correct the attribute, or leave it out");
}

}  // namespace espalier
