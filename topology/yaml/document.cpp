#include "topology/yaml/document.h"

namespace espalier {

Value::Kind Value::kind() const { return document_->entries_[index_].kind; }

Mark Value::mark() const {
  const Document::Entry& entry = document_->entries_[index_];
  const std::uint32_t width = entry.kind == Kind::scalar && entry.size > 0 ? entry.size : 1;
  return {document_->source_, entry.line, entry.column, width};
}

std::string_view Value::text() const {
  const Document::Entry& entry = document_->entries_[index_];
  if (entry.kind != Kind::scalar) return {};
  return std::string_view(document_->texts_).substr(entry.begin, entry.size);
}

std::size_t Value::size() const {
  const Document::Entry& entry = document_->entries_[index_];
  if (entry.kind == Kind::list) return entry.size;
  return entry.kind == Kind::map ? entry.size / 2 : 0;
}

Value Value::item(std::size_t i) const {
  return {document_, document_->children_[document_->entries_[index_].begin + i]};
}

Value Value::key(std::size_t i) const {
  return {document_, document_->children_[document_->entries_[index_].begin + 2 * i]};
}

Value Value::value(std::size_t i) const {
  return {document_, document_->children_[document_->entries_[index_].begin + 2 * i + 1]};
}

Value Value::find(std::string_view wanted) const {
  for (std::size_t i = 0; is_map() && i < size(); ++i) {
    if (key(i).text() == wanted) return value(i);
  }
  return {};
}

std::string_view describe(Value::Kind kind) {
  switch (kind) {
    case Value::Kind::null: return "nothing";
    case Value::Kind::scalar: return "a text";
    case Value::Kind::list: return "a list";
    case Value::Kind::map: return "a map";
  }
  return "";
}

}  // namespace espalier
