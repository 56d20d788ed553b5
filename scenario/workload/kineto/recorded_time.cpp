#include "scenario/workload/kineto/recorded_time.h"

#include <algorithm>

namespace espalier::scenario {
namespace {

struct Edge {
  double time;
  bool communicates;
  int change;
};

}  // namespace

RecordedTime time_recorded(const std::vector<BusyTime>& times) {
  if (times.empty()) return {};
  std::vector<Edge> edges;
  for (const BusyTime& one : times) {
    edges.push_back({one.begin, one.communicates, 1});
    edges.push_back({one.end, one.communicates, -1});
  }
  std::ranges::stable_sort(edges, {}, &Edge::time);
  RecordedTime recorded{edges.back().time - edges.front().time, 0};
  int calls = 0;
  int computing = 0;
  double since = edges.front().time;
  for (const Edge& edge : edges) {
    if (calls > 0 && computing == 0) recorded.exposed_us += edge.time - since;
    since = edge.time;
    (edge.communicates ? calls : computing) += edge.change;
  }
  return recorded;
}

}  // namespace espalier::scenario
