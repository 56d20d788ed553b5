#include "topology/import/nvml/nvlink_payload.h"

#include <array>
#include <cstdint>

namespace espalier {

Bandwidth nvlink_payload(double signalled) {
  struct Rate {
    double shown;
    std::int64_t megabytes;
  };
  constexpr std::array rates = {Rate{53.125, 50'000}, Rate{26.562, 25'000}, Rate{25.781, 25'000}, Rate{25.0, 25'000},
                                Rate{20.0, 20'000}};
  for (const Rate& rate : rates) {
    const double difference = signalled - rate.shown;
    if (difference < 0.01 && difference > -0.01) return {rate.megabytes * 1'000'000};
  }
  return {static_cast<std::int64_t>(signalled * 1000) * 1'000'000};
}

}  // namespace espalier
