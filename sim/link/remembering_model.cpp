#include "sim/link/remembering_model.h"

#include "sim/link/link_model.h"

namespace espalier::sim {

std::unique_ptr<Model> make_remembering_model(ModelKind kind, const Network& network, const Conditions& conditions) {
  if (kind != ModelKind::link) return make_model(kind, network, conditions);
  auto model = std::make_unique<LinkModel>(network, conditions);
  model->remember_lone_runs();
  return model;
}

}  // namespace espalier::sim
