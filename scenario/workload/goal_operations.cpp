#include "scenario/workload/goal_operations.h"

namespace espalier::scenario {

bool add_goal_operation(std::vector<ChakraNode>& nodes, const GoalOperation& operation) {
  constexpr std::int64_t longest_ns = std::int64_t{3600} * 1'000'000'000;
  constexpr std::int64_t max_cpus = 1024;
  const bool is_calc = operation.type == ChakraType::compute;
  if (operation.amount < 0 || operation.amount > (is_calc ? longest_ns : max_message_size.count)) return false;
  if (operation.cpu < 0 || operation.cpu >= max_cpus) return false;
  ChakraNode begin;
  begin.id = nodes.size();
  begin.name = "begin";
  ChakraNode node;
  node.id = begin.id + 1;
  node.type = operation.type;
  node.after = {begin.id};
  node.comm_tag = operation.tag;
  if (is_calc) {
    node.name = "calc";
    node.stream = static_cast<std::uint16_t>(operation.cpu);
    node.duration_ns = static_cast<std::uint64_t>(operation.amount);
  } else {
    const bool sends = operation.type == ChakraType::send;
    node.name = sends ? "send" : "recv";
    node.comm_size = operation.amount;
    (sends ? node.comm_dst : node.comm_src) = operation.peer;
  }
  nodes.push_back(std::move(begin));
  nodes.push_back(std::move(node));
  return true;
}

}  // namespace espalier::scenario
