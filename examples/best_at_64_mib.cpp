#include <espalier/forecast.h>
#include <espalier/literals.h>
#include <espalier/value.h>
#include <fmt/format.h>

// What is fastest for an all_reduce of 64 MiB, and how near it comes to what nothing can beat: best_at_64_mib
// [MACHINE].
int main(int argc, char** argv) {
  using namespace espalier;
  using namespace espalier::literals;
  const Machine machine = value(read_machine(argc > 1 ? argv[1] : "dgx1v"));
  const Forecast forecast = value(Forecast::make(machine, "all_reduce"));
  const Prediction best = value(forecast.best(64_MiB));
  fmt::print("{}: {:.2f} us, {:.2f} of {:.2f} GB/s bus bandwidth\n", best.algorithm, best.seconds * 1e6,
             best.busbw / 1e9, forecast.busbw_limit() / 1e9);
}
