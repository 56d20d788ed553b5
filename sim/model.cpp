#include "sim/model.h"

#include "base/check.h"
#include "sim/fair_model.h"
#include "sim/link_model.h"

namespace espalier::sim {

std::string_view to_string(ModelKind kind) {
  switch (kind) {
    case ModelKind::link: return "link";
    case ModelKind::fair: return "fair";
  }
  ESPALIER_CHECK(false, "a model has a name");
}

std::unique_ptr<Model> make_model(ModelKind kind, const Network& network, const Conditions& conditions) {
  switch (kind) {
    case ModelKind::link: return std::make_unique<LinkModel>(network, conditions);
    case ModelKind::fair: return std::make_unique<FairModel>(network, conditions);
  }
  ESPALIER_CHECK(false, "there is a model of every kind");
}

}  // namespace espalier::sim
