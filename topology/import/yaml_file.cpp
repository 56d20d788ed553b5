#include "topology/import/yaml_file.h"

#include "topology/import/lines.h"
#include "topology/yaml/source_text.h"

namespace espalier {

Result<YamlFile> YamlFile::parse(std::string_view text, const std::string& name) {
  if (const auto checked = check_text(text); !checked) {
    const BadText& bad = checked.error();
    return espalier::fail_at(name, static_cast<int>(bad.mark.line), static_cast<int>(bad.mark.column),
                             bad.problem.message, bad.problem.help);
  }
  Findings findings;
  const std::uint32_t source = findings.add_source(name, text);
  auto document = Document::parse(text, source, findings);
  if (!document) {
    const auto diagnostics = findings.take();
    const Diagnostic& first = diagnostics.front();
    return espalier::fail_at(name, first.place.line, first.place.column, first.message, first.help);
  }
  YamlFile file;
  file.name_ = name;
  file.document_ = std::make_unique<Document>(*std::move(document));
  return file;
}

tl::unexpected<Error> YamlFile::fail_at(Value value, const std::string& message, const std::string& help) const {
  const Mark mark = value ? value.mark() : Mark{.line = 1, .column = 1};
  return espalier::fail_at(name_, static_cast<int>(mark.line), static_cast<int>(mark.column), message, help);
}

}  // namespace espalier
