// Slurm's topology.yaml: a list of topologies; the one with cluster_default is taken, else the first.

#include "topology/import/formats/readers.h"
#include "topology/import/formats/slurm_tree.h"
#include "topology/import/lines.h"
#include "topology/import/yaml_file.h"

namespace espalier {
namespace {

std::string_view text_of(Value map, std::string_view key) {
  const Value value = map.is_map() ? map.find(key) : Value();
  return value && value.is_scalar() ? value.text() : std::string_view();
}

bool is_default(Value topology) {
  const std::string_view text = text_of(topology, "cluster_default");
  return text == "True" || text == "true" || text == "yes";
}

/// The entries of tree.switches or block.blocks; `key` names an entry.
Result<void> add_entries(const YamlFile& yaml, Value list, std::string_view key, SlurmTree& tree) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Value entry = list.item(i);
    const std::string_view name = text_of(entry, key);
    if (name.empty())
      return yaml.fail_at(entry, "this entry has no '" + std::string(key) + "'", "write '- switch: NAME'");
    if (auto added = tree.add(name, text_of(entry, "nodes"), text_of(entry, "children"), key == "block"); !added) {
      return yaml.fail_at(entry, added.error().message, added.error().help);
    }
  }
  return {};
}

}  // namespace

Result<Draft> read_slurm_yaml(std::string_view text, const std::string& file) {
  const auto yaml = YamlFile::parse(text, file);
  if (!yaml) return tl::unexpected(yaml.error());
  const Value list = yaml->root();
  if (!list.is_list() || list.size() == 0)
    return yaml->fail_at(list, "this is no list of topologies", "write '- topology: NAME'");
  Value chosen = list.item(0);
  for (std::size_t i = list.size(); i-- > 0;) {
    if (is_default(list.item(i))) chosen = list.item(i);
  }
  SlurmTree tree(file);
  for (const auto& [part, entries, key] :
       {std::array{"tree", "switches", "switch"}, std::array{"block", "blocks", "block"}}) {
    const Value body = chosen.is_map() ? chosen.find(part) : Value();
    const Value found = body && body.is_map() ? body.find(entries) : Value();
    if (!found || !found.is_list()) continue;
    if (auto added = add_entries(*yaml, found, key, tree); !added) return tl::unexpected(added.error());
    tree.join_tops();
    return tree.take();
  }
  return yaml->fail_at(chosen, "the topology has neither tree.switches nor block.blocks",
                       "a flat topology does not say what joins its nodes; use --replicate");
}

}  // namespace espalier
