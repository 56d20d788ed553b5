#pragma once

// Tested by: tests/unit/topology/import/import_test.cpp

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "topology/yaml/document.h"

namespace espalier {

/// A parsed YAML text that knows where its values stand: that of topologies, with its limits.
class YamlFile {
 public:
  /// Errors: invalid_input with the first place where it is not YAML.
  static Result<YamlFile> parse(std::string_view text, const std::string& name);

  [[nodiscard]] Value root() const { return document_->root(); }
  [[nodiscard]] tl::unexpected<Error> fail_at(Value value, const std::string& message, const std::string& help) const;

 private:
  std::string name_;
  std::unique_ptr<Document> document_;  ///< Values point to it.
};

}  // namespace espalier
