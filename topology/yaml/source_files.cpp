#include "topology/yaml/source_files.h"

#include <fmt/format.h>

#include "topology/yaml/read_codes.h"
#include "topology/yaml/read_limits.h"
#include "topology/yaml/source_text.h"

namespace espalier {

void SourceFiles::parse(File& file, const std::string& name) {
  file.source = findings_.add_source(name, file.text);
  if (const auto checked = check_text(file.text); !checked) {
    Mark mark = checked.error().mark;
    mark.source = file.source;
    findings_.error(mark, checked.error().problem);
    return;
  }
  file.document = Document::parse(file.text, file.source, findings_);
}

const SourceFiles::File& SourceFiles::add_text(std::string text, const std::string& name, std::filesystem::path path) {
  File& file = files_.emplace_back();
  file.path = std::move(path);
  file.text = std::move(text);
  total_bytes_ += file.text.size();
  parse(file, name);
  return file;
}

const SourceFiles::File& SourceFiles::add_file(const std::filesystem::path& path) {
  auto text = load_text(path);
  if (text) return add_text(*std::move(text), path.string(), path.lexically_normal());
  File& file = files_.emplace_back();
  file.source = findings_.add_source(path.string(), {});
  findings_.error({file.source, 0, 0, 1}, text.error());
  return file;
}

const SourceFiles::File* SourceFiles::include(const File& from, const std::string& name, const Mark& mark) {
  const std::filesystem::path written(name);
  if (!base_ || name.empty() || written.is_absolute()) {
    findings_.error(mark, {read_codes::include_outside, fmt::format("cannot include '{}'", name.substr(0, 200)),
                           base_ ? "name a file relative to the one that includes it"
                                 : "this text has no folder; read it from a file"});
    return nullptr;
  }
  const std::filesystem::path path = (from.path.parent_path() / written).lexically_normal();
  const std::filesystem::path inside = path.lexically_relative(base_->lexically_normal());
  if (inside.empty() || *inside.begin() == "..") {
    findings_.error(mark, {read_codes::include_outside,
                           fmt::format("'{}' lies outside the folder of the first file", name.substr(0, 200)),
                           "put included files beside the first file or in folders below it"});
    return nullptr;
  }
  if (const auto known = by_path_.find(path); known != by_path_.end()) return known->second;
  auto text = load_text(path);
  if (text && total_bytes_ + text->size() > read_limits::all_bytes) {
    text = tl::unexpected(Problem{read_codes::file_too_large,
                                  fmt::format("all files together hold more than {} bytes", read_limits::all_bytes),
                                  "write the machine in the compact form (groups with a count, ranges)"});
  }
  if (!text) {
    const bool missing = text.error().code == read_codes::cannot_read;
    findings_.error(mark, {missing ? read_codes::include_not_found : text.error().code,
                           missing ? "cannot include: " + text.error().message : text.error().message,
                           missing ? "paths are relative to the file that includes" : text.error().help});
    by_path_[path] = nullptr;
    return nullptr;
  }
  const File& file = add_text(*std::move(text), path.string(), path);
  by_path_[path] = &file;
  return &file;
}

}  // namespace espalier
