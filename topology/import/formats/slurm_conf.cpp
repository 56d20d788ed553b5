// Slurm's topology.conf: a line per switch (SwitchName=, Switches=, Nodes=) or block (BlockName=, Nodes=).

#include <map>

#include "topology/import/formats/readers.h"
#include "topology/import/formats/slurm_tree.h"
#include "topology/import/lines.h"

namespace espalier {
namespace {

std::string lower_case(std::string_view text) {
  std::string result;
  for (const char letter : text) result += letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter;
  return result;
}

Result<void> read_slurm_line(const TextLine& line, const std::string& file, SlurmTree& tree) {
  std::map<std::string, std::string_view> values;
  for (const Word& word : line.words()) {
    if (word.text.starts_with('#')) break;
    const std::size_t equals = word.text.find('=');
    const std::string key = lower_case(word.text.substr(0, equals));
    const bool is_known = key == "switchname" || key == "switches" || key == "nodes" || key == "linkspeed" ||
                          key == "blockname" || key == "blocksizes";
    if (equals == std::string_view::npos || !is_known) {
      return fail_at(file, line.number, word.column, cited(word.text) + " is not read",
                     "lines have SwitchName=, Switches=, Nodes=, LinkSpeed=, BlockName= and BlockSizes=");
    }
    values[key] = word.text.substr(equals + 1);
  }
  const auto value = [&](const char* key) {
    const auto found = values.find(key);
    return found == values.end() ? std::string_view() : found->second;
  };
  const std::string_view name = value("switchname").empty() ? value("blockname") : value("switchname");
  if (name.empty()) return {};  // BlockSizes, or a comment.
  if (auto added = tree.add(name, value("nodes"), value("switches")); !added) {
    return fail_at(file, line.number, 1, added.error().message, added.error().help);
  }
  return {};
}

}  // namespace

Result<Draft> read_slurm_conf(std::string_view text, const std::string& file) {
  SlurmTree tree(file);
  for (const TextLine& line : lines_of(text)) {
    if (auto read = read_slurm_line(line, file, tree); !read) return tl::unexpected(read.error());
  }
  tree.join_tops();
  return tree.take();
}

}  // namespace espalier
