#include <espalier/forecast.h>
#include <espalier/literals.h>
#include <espalier/profile.h>
#include <espalier/software.h>
#include <espalier/value.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

// Software of one's own: own_profile [MACHINE [PROFILE]] takes a shipped profile, lets every hop take twice as long
// in a file of its own, and asks what that costs.
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
  std::string folder = (std::filesystem::temp_directory_path() / "own-profile-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return fmt::print(stderr, "no folder for the profile\n"), 1;
  const std::string path = folder + "/slower.yaml";
  if (!(std::ofstream(path) << profile::profile_yaml(slower, {})).flush()) {
    return fmt::print(stderr, "cannot write {}\n", path), 1;
  }

  const Forecast before = value(Forecast::make(machine, "all_reduce", {.profile = shipped}));
  const Forecast after = value(Forecast::make(machine, "all_reduce", {.profile = path}));
  for (const Bytes size : {1_KiB, 1_MiB, 1_GiB}) {
    fmt::print("{:>10} B: {:9.2f} us, {:9.2f} us with slower hops\n", size.count,
               value(before.best(size)).seconds * 1e6, value(after.best(size)).seconds * 1e6);
  }
  std::filesystem::remove_all(folder);
}
