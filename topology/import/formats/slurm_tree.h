#pragma once

// Tested by: tests/unit/topology/import/import_test.cpp

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "topology/import/draft.h"

namespace espalier {

/// The switches and nodes of a Slurm topology, of either spelling of its files.
class SlurmTree {
 public:
  explicit SlurmTree(const std::string& file) {
    draft_.file = file;
    draft_.scope = Draft::Scope::fabric;
  }

  /// A switch with the hosts and switches below it, as hostlists (dev[0-5],other). `what` is a switch or a block.
  /// Errors: a message without a place, for the caller to add.
  /// `is_block`: of Slurm's topology/block, whose blocks are NVLink domains where machines have such.
  Result<void> add(std::string_view name, std::string_view nodes, std::string_view switches, bool is_block = false);
  /// Joins the switches that nothing is above with one more, unless one of them reaches all hosts: Slurm's blocks meet
  /// in what the file leaves out.
  void join_tops();

  /// A trunk is as wide as what is below it: the files know no rates.
  /// Errors: infeasible when there are no nodes; invalid_input when switches are below themselves.
  Result<Draft> take();

 private:
  [[nodiscard]] bool reaches_all_hosts(std::size_t top) const;
  Result<std::size_t> hosts_below(std::size_t node, int depth);

  Draft draft_;
  std::map<std::string, std::size_t> hosts_, switches_;
  std::map<std::size_t, std::vector<std::size_t>> below_;
  std::map<std::size_t, std::size_t> counts_;
  std::map<std::size_t, bool> has_above_;
};

/// The names of a hostlist: "node[1-3,5],login1". Errors: invalid_input, without a place.
Result<std::vector<std::string>> read_hostlist(std::string_view list);

}  // namespace espalier
