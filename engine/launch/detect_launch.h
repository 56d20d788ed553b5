#pragma once

// Tested by: tests/unit/engine/launch/detect_launch_test.cpp

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/rendezvous/environment.h"

namespace espalier::engine::launch {

/// Port of the rendezvous when neither a flag nor a launcher names one.
inline constexpr std::uint16_t default_rendezvous_port = 29510;

/// Who started this process.
enum class Launcher {
  none,      ///< Nobody: a process of its own.
  flags,     ///< --rank, --world and --rendezvous.
  espalier,  ///< A LocalJob of this program.
  open_mpi,  ///< mpirun of Open MPI: OMPI_COMM_WORLD_*.
  pmi,       ///< mpiexec of MPICH, Intel MPI and others: PMI_RANK and PMI_SIZE.
  slurm,     ///< srun: SLURM_PROCID and SLURM_NTASKS.
  torchrun,  ///< RANK and WORLD_SIZE.
};

/// The launcher's name as a user knows it ("mpirun", "srun", ...).
std::string_view to_string(Launcher launcher);

/// What the user said outright; it wins over the environment.
struct LaunchFlags {
  std::optional<std::uint32_t> rank;
  std::optional<std::uint32_t> world;
  std::optional<std::string> rendezvous;  ///< HOST:PORT, [IPV6]:PORT or HOST.
};

/// Which rank of what job this process is, and where the job meets.
struct LaunchInfo {
  Launcher launcher = Launcher::none;
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  std::uint32_t local_rank = 0;  ///< Among the ranks of this machine; 0 when the launcher does not say.
  std::string host = "127.0.0.1";
  std::uint16_t port = default_rendezvous_port;
  std::string job;                 ///< The launcher's id of the job; tells jobs on one port apart.
  std::string rank_variable;       ///< Where the launcher told the rank; empty when it did not.
  bool is_one_machine = false;     ///< The launcher says that all ranks sit on this machine.
  std::optional<int> listener_fd;  ///< Rank 0 of a LocalJob: the socket it inherited (adopt_listener).

  /// Whether `espalier run` or `espalier.run` started all ranks on this machine, with rank 0's socket open before.
  [[nodiscard]] bool is_local_job() const { return launcher == Launcher::espalier && job.starts_with("local "); }
  [[nodiscard]] bool is_launched() const { return launcher != Launcher::none; }
};

/// Reads the launcher's variables. Order: flags, espalier, Open MPI, PMI, torchrun, Slurm; the first that is set
/// decides. Where Open MPI's, PMI's and torchrun's are set together they must agree on rank and world; Slurm's describe
/// its own tasks, which may be mpirun's daemons, and a batch script's shell is no task.
///
/// Where the job meets, the first of: --rendezvous; ESPALIER_RENDEZVOUS; MASTER_ADDR; Slurm's first host; 127.0.0.1,
/// which is an error when the ranks sit on several machines. The port, the first of: the one named there; MASTER_PORT +
/// 1 (torch's own store listens on MASTER_PORT); 20000 to 29999 by a hash of the job's id; 29510. Errors: invalid_input
/// when half a set is given, a number cannot be read, a rank is not below its world, sets contradict each other, or
/// nothing says where to meet; each names the variables.
Result<LaunchInfo> detect_launch(const rendezvous::Environment& environment, const LaunchFlags& flags = {});

}  // namespace espalier::engine::launch
