#pragma once

// Tested by: tests/unit/topology/yaml/read_topology_test.cpp

#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "topology/yaml/document.h"
#include "topology/yaml/findings.h"

namespace espalier {

/// The files of one reading: each is loaded, checked and parsed once, however often it is included.
class SourceFiles {
 public:
  /// `base`: the folder that includes must stay in; nothing when includes are not allowed (a text without a place).
  SourceFiles(std::optional<std::filesystem::path> base, Findings& findings)
      : base_(std::move(base)), findings_(findings) {}

  /// One file: its document, or none after errors, which were reported.
  struct File {
    std::filesystem::path path;
    std::string text;
    std::uint32_t source = 0;
    std::optional<Document> document;
  };

  /// The document of a text that is already here.
  const File& add_text(std::string text, const std::string& name, std::filesystem::path path);
  /// The file on disk, named to the user as `path`.
  const File& add_file(const std::filesystem::path& path);
  /// The file `name` as written at `mark` in `from`; null after errors.
  const File* include(const File& from, const std::string& name, const Mark& mark);

 private:
  void parse(File& file, const std::string& name);

  std::optional<std::filesystem::path> base_;
  Findings& findings_;
  std::deque<File> files_;
  std::map<std::filesystem::path, const File*> by_path_;
  std::size_t total_bytes_ = 0;
};

}  // namespace espalier
