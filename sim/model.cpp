#include "sim/model.h"

#include <string>

#include "base/check.h"
#include "base/suggest.h"
#include "sim/fair/fair_model.h"
#include "sim/link/link_model.h"

namespace espalier::sim {

std::string_view to_string(ModelKind kind) {
  switch (kind) {
    case ModelKind::link: return "link";
    case ModelKind::fair: return "fair";
  }
  ESPALIER_CHECK(false, "a model has a name");
}

Result<ModelKind> parse_model(std::string_view name) {
  std::array<std::string_view, all_models.size()> names;
  for (std::size_t i = 0; i < all_models.size(); ++i) {
    names[i] = to_string(all_models[i]);
    if (name == names[i]) return all_models[i];
  }
  return fail(ErrorCode::invalid_input, "there is no model '" + std::string(name) + "'", suggest(name, names));
}

std::unique_ptr<Model> make_model(ModelKind kind, const Network& network, const Conditions& conditions) {
  switch (kind) {
    case ModelKind::link: return std::make_unique<LinkModel>(network, conditions);
    case ModelKind::fair: return std::make_unique<FairModel>(network, conditions);
  }
  ESPALIER_CHECK(false, "there is a model of every kind");
}

}  // namespace espalier::sim
