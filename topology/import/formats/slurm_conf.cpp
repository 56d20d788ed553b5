// Slurm's topology.conf: a line per switch (SwitchName=, Switches=, Nodes=) or block (BlockName=, Nodes=). What
// `scontrol show topology` prints says more of each in the same form.

#include <algorithm>
#include <array>
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

constexpr std::array read_keys = {"switchname", "switches", "nodes", "blockname"};
/// Keys that say nothing of what joins what: rates that Slurm does not use, and what follows from the rest.
constexpr std::array passed_keys = {"linkspeed", "blocksizes", "blocksize", "blockindex", "level", "aggregatedblock"};

Result<void> read_slurm_line(const TextLine& line, const std::string& file, SlurmTree& tree) {
  std::map<std::string, std::string_view> values;
  auto words = TextLine{without_stream_tag(line.text), line.number}.words();
  // A launcher or a log may have put a label before what scontrol printed.
  const auto begin = std::ranges::find_if(words, [](const Word& word) {
    const std::string key = lower_case(word.text.substr(0, word.text.find('=')));
    constexpr std::array beginnings = {"switchname", "blockname", "aggregatedblock", "blocksizes"};
    return word.text.starts_with('#') || std::ranges::find(beginnings, key) != beginnings.end();
  });
  const bool is_label = std::none_of(words.begin(), begin,
                                     [](const Word& word) { return word.text.find('=') != std::string_view::npos; });
  if (begin != words.end() && is_label) words.erase(words.begin(), begin);
  const bool is_foreign =
      std::ranges::none_of(words, [](const Word& word) { return word.text.find('=') != std::string_view::npos; });
  if (is_foreign) return {};  // A shell's prompt, or a comment.
  bool is_shown = false;      // By scontrol.
  for (const Word& word : words) {
    if (word.text.starts_with('#')) break;
    const std::size_t equals = word.text.find('=');
    const std::string key = lower_case(word.text.substr(0, equals));
    const bool is_read = std::ranges::find(read_keys, key) != read_keys.end();
    const bool is_passed = std::ranges::find(passed_keys, key) != passed_keys.end();
    if (equals == std::string_view::npos || (!is_read && !is_passed)) {
      return fail_at(file, line.number, word.column, cited(word.text) + " is not read",
                     "lines have SwitchName=, Switches=, Nodes=, LinkSpeed=, BlockName= and BlockSizes=");
    }
    if (key == "aggregatedblock") return {};  // Of blocks that have lines of their own.
    is_shown = is_shown || key == "level";
    if (is_read) values[key] = word.text.substr(equals + 1);
  }
  const auto value = [&](const char* key) {
    const auto found = values.find(key);
    return found == values.end() ? std::string_view() : found->second;
  };
  // `scontrol show topology` repeats at each switch the nodes of those below it.
  if (is_shown && !value("switches").empty()) values.erase("nodes");
  const std::string_view name = value("switchname").empty() ? value("blockname") : value("switchname");
  if (name.empty()) return {};  // BlockSizes, or a comment.
  if (auto added = tree.add(name, value("nodes"), value("switches"), value("switchname").empty()); !added) {
    return fail_at(file, line.number, 1, added.error().message, added.error().help);
  }
  return {};
}

}  // namespace

Result<Draft> read_slurm_conf(std::string_view text, const std::string& file) {
  SlurmTree tree(file);
  const std::string plain = without_escapes(text);
  std::string whole;  // A line with those that a backslash at its end joins to it.
  for (const TextLine& line : lines_of(plain)) {
    whole += line.text;
    if (whole.ends_with('\\')) {
      whole.pop_back();
      continue;
    }
    if (auto read = read_slurm_line({whole, line.number}, file, tree); !read) return tl::unexpected(read.error());
    whole.clear();
  }
  if (auto read = read_slurm_line({whole, 1}, file, tree); !read) return tl::unexpected(read.error());
  tree.join_tops();
  return tree.take();
}

}  // namespace espalier
