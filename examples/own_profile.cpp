#include <espalier/forecast.h>
#include <espalier/literals.h>
#include <espalier/profile.h>
#include <espalier/software.h>
#include <espalier/value.h>
#include <fmt/format.h>

#include <fstream>

// Software of one's own: own_profile [MACHINE [PROFILE]] takes a shipped profile, lets every hop take twice as long,
// and asks what that costs.
int main(int argc, char** argv) {
  using namespace espalier;
  using namespace espalier::literals;
  const Machine machine = value(read_machine(argc > 1 ? argv[1] : "dgx-h100"));
  const std::string shipped = argc > 2 ? argv[2] : "nccl-hopper";
  profile::Profile slower = value(read_software(shipped)).profile;
  slower.name = "slower";
  slower.about = shipped + " with hops of twice the time";
  for (auto& [key, costs] : slower.ways) {
    for (Picoseconds& hop : costs.hop) hop.count *= 2;
  }
  const std::string path = "slower.yaml";
  std::ofstream(path) << profile::profile_yaml(slower, {});

  const Forecast before = value(Forecast::make(machine, "all_reduce", {.profile = shipped}));
  const Forecast after = value(Forecast::make(machine, "all_reduce", {.profile = path}));
  for (const Bytes size : {1_KiB, 1_MiB, 1_GiB}) {
    fmt::print("{:>10} B: {:9.2f} us, {:9.2f} us with slower hops\n", size.count,
               value(before.best(size)).seconds * 1e6, value(after.best(size)).seconds * 1e6);
  }
}
