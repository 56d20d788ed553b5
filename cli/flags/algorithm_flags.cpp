#include "cli/flags/algorithm_flags.h"

#include <algorithm>
#include <sstream>

#include "forecast/question.h"
#include "planners/nccl/nccl.h"

namespace espalier::cli {

Result<std::vector<std::string>> parse_algorithms(const std::string& text, bool variants) {
  return parse_algorithms(text, variants, variants);
}

Result<std::vector<std::string>> parse_algorithms(const std::string& text, bool variants, bool nccl) {
  std::vector<std::string> algorithms;
  const auto add = [&](const std::string& name) {
    if (std::ranges::find(algorithms, name) == algorithms.end()) algorithms.push_back(name);
  };
  std::istringstream names(text);
  for (std::string name; std::getline(names, name, ',');) {
    if (name == "all") {
      for (const planners::Planner& planner : planners::all_planners()) add(std::string(planner.name));
      continue;
    }
    if (forecast::is_nccl_algorithm(name)) {
      const auto known = [&](const planners::Planner& planner) { return planner.name == name; };
      if (!nccl || (name != "nccl" && std::ranges::none_of(planners::nccl_planners(), known))) {
        return fail(ErrorCode::invalid_input, "-a: " + name + " is not planned here",
                    "simulate --profile takes nccl and nccl/ with ring, tree, nvls, nvls_tree, collnet_direct, "
                    "collnet_chain, pat, pxn or p2p");
      }
    } else if (forecast::is_packing_variant(name)) {
      if (!variants) {
        return fail(ErrorCode::invalid_input, "-a: " + name + " is a variant of packing, which is not planned here",
                    "write packing, or plan it with: espalier plan ... -a " + name);
      }
    } else if (const auto planner = planners::find_planner(name); !planner && name != "auto") {
      return fail(planner.error().code, "-a: " + planner.error().message, planner.error().help + "; also auto and all");
    }
    add(name);
  }
  if (algorithms.empty()) return fail(ErrorCode::invalid_input, "-a names no algorithm", "write -a auto");
  return algorithms;
}

std::string planner_names() {
  std::string names;
  for (const planners::Planner& planner : planners::all_planners())
    names += (names.empty() ? "" : ", ") + std::string(planner.name);
  return names;
}

std::string algorithm_names() { return "auto, all, " + planner_names(); }

}  // namespace espalier::cli
