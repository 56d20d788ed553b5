#include "engine/launch/detect_launch.h"

#include <fmt/format.h>

#include <charconv>
#include <vector>

#include "engine/launch/endpoint.h"

namespace espalier::engine::launch {
namespace {

constexpr std::size_t longest_job_id = 128;

/// The variables of one launcher. `world` may have a second name; empty names are not looked up.
struct Names {
  Launcher launcher;
  const char* rank;
  const char* world;
  const char* local_rank;
  const char* local_world;
};
constexpr Names open_mpi_names{Launcher::open_mpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                               "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr Names pmi_names{Launcher::pmi, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"};
constexpr Names torchrun_names{Launcher::torchrun, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr Names espalier_names{Launcher::espalier, "ESPALIER_RANK", "ESPALIER_WORLD", "ESPALIER_RANK",
                               "ESPALIER_WORLD"};

/// What one launcher's variables say.
struct Found {
  LaunchInfo info;
  const char* rank_name = "";
  const char* world_name = "";
  bool spans_machines = false;
};

tl::unexpected<Error> invalid(std::string message, std::string help = {}) {
  return fail(ErrorCode::invalid_input, std::move(message), std::move(help));
}

std::optional<std::string> value_of(const rendezvous::Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  if (found == environment.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

Result<std::optional<std::uint32_t>> number_of(const rendezvous::Environment& environment, const std::string& name) {
  const auto text = value_of(environment, name);
  if (!text) return std::nullopt;
  std::uint32_t number = 0;
  const char* last = text->data() + text->size();
  const auto [end, error] = std::from_chars(text->data(), last, number);
  if (error != std::errc() || end != last) return invalid(fmt::format("{} is '{}', which is no number", name, *text));
  return number;
}

/// Rank and world of one launcher; nothing when neither is set.
Result<std::optional<Found>> find_set(const rendezvous::Environment& environment, const Names& names) {
  const auto rank = number_of(environment, names.rank);
  if (!rank) return tl::unexpected(rank.error());
  const auto world = number_of(environment, names.world);
  if (!world) return tl::unexpected(world.error());
  if (!*rank && !*world) return std::nullopt;
  if (!*rank || !*world) {
    return invalid(
        fmt::format("{} is set, but {} is not", *rank ? names.rank : names.world, *rank ? names.world : names.rank),
        "set both, unset both, or say --rank and --world");
  }
  if (**rank >= **world) {
    return invalid(fmt::format("{} is {}, which is not below {}, {}", names.rank, **rank, names.world, **world));
  }
  const auto local_rank = number_of(environment, names.local_rank);
  if (!local_rank) return tl::unexpected(local_rank.error());
  const auto local_world = number_of(environment, names.local_world);
  if (!local_world) return tl::unexpected(local_world.error());
  Found found;
  found.info.launcher = names.launcher;
  found.info.rank = **rank;
  found.info.world = **world;
  found.info.local_rank = local_rank->value_or(0);
  found.rank_name = names.rank;
  found.world_name = names.world;
  found.spans_machines = *local_world && **local_world < **world;
  found.info.rank_variable = names.rank;
  found.info.is_one_machine = *local_world && **local_world == **world;
  return found;
}

/// Tasks of srun. A batch script's shell has a SLURM_PROCID too, but no step.
Result<std::optional<Found>> find_slurm(const rendezvous::Environment& environment) {
  const bool is_batch_shell = value_of(environment, "SLURM_JOB_ID") && !value_of(environment, "SLURM_STEP_ID");
  if (is_batch_shell || !value_of(environment, "SLURM_PROCID")) return std::nullopt;
  const char* world = value_of(environment, "SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  auto found = find_set(environment, {Launcher::slurm, "SLURM_PROCID", world, "SLURM_LOCALID", ""});
  if (!found || !*found) return found;
  const char* nodes_name = value_of(environment, "SLURM_STEP_NUM_NODES") ? "SLURM_STEP_NUM_NODES" : "SLURM_NNODES";
  const auto nodes = number_of(environment, nodes_name);
  if (!nodes) return tl::unexpected(nodes.error());
  (*found)->spans_machines = nodes->value_or(1) > 1;
  (*found)->info.is_one_machine = *nodes && **nodes == 1;
  return found;
}

/// The one of mpirun's, PMI's and torchrun's that decides, if any; all that are set must agree.
Result<std::optional<Found>> find_agreed(const rendezvous::Environment& environment) {
  std::optional<Found> first;
  for (const Names& names : {open_mpi_names, pmi_names, torchrun_names}) {
    auto found = find_set(environment, names);
    if (!found) return found;
    if (!*found) continue;
    if (!first) {
      first = **found;
      continue;
    }
    const LaunchInfo& one = first->info;
    const LaunchInfo& other = (*found)->info;
    if (one.rank == other.rank && one.world == other.world) continue;
    return invalid(
        fmt::format("{}={} and {}={} contradict {}={} and {}={}", first->rank_name, one.rank, first->world_name,
                    one.world, (*found)->rank_name, other.rank, (*found)->world_name, other.world),
        "unset those of the launcher that did not start this process, or say --rank and --world");
  }
  return first;
}

Result<Found> find_launcher(const rendezvous::Environment& environment, const LaunchFlags& flags) {
  if (flags.rank.has_value() != flags.world.has_value()) {
    return invalid(flags.rank ? "--rank is given, but --world is not" : "--world is given, but --rank is not");
  }
  if (flags.rank) {
    if (*flags.rank >= *flags.world) {
      return invalid(fmt::format("--rank {} is not below --world {}", *flags.rank, *flags.world));
    }
    Found found;
    found.info.launcher = Launcher::flags;
    found.info.rank = *flags.rank;
    found.info.world = *flags.world;
    return found;
  }
  auto own = find_set(environment, espalier_names);
  if (!own) return tl::unexpected(own.error());
  if (*own) return **own;
  auto agreed = find_agreed(environment);
  if (!agreed) return tl::unexpected(agreed.error());
  if (*agreed) return **agreed;
  auto slurm = find_slurm(environment);
  if (!slurm) return tl::unexpected(slurm.error());
  if (*slurm) return **slurm;
  if (value_of(environment, "PMIX_RANK")) {
    return invalid("PMIX_RANK is set, but no variable says how many ranks there are", "say --rank and --world");
  }
  return Found{};
}

/// The launcher's own id of the job, if it has one.
std::string job_of(const rendezvous::Environment& environment, Launcher launcher) {
  const auto get = [&](const char* name) { return value_of(environment, name).value_or(""); };
  std::string job = get("ESPALIER_JOB");
  if (!job.empty()) return job.substr(0, longest_job_id);
  switch (launcher) {
    case Launcher::open_mpi: {
      const std::string pmix = get("PMIX_NAMESPACE");
      job = pmix.empty() ? get("OMPI_MCA_ess_base_jobid") : pmix;
      break;
    }
    case Launcher::pmi: job = get("PMI_JOBID"); break;
    case Launcher::slurm:
      job = get("SLURM_JOB_ID");
      if (!job.empty()) job += "." + get("SLURM_STEP_ID");
      break;
    case Launcher::torchrun:
      job = get("TORCHELASTIC_RUN_ID");
      if (!job.empty()) job += "." + get("TORCHELASTIC_RESTART_COUNT");
      break;
    case Launcher::none:
    case Launcher::flags:
    case Launcher::espalier: break;
  }
  return job.empty() ? job : fmt::format("{} {}", to_string(launcher), job).substr(0, longest_job_id);
}

/// FNV-1a: the same on every machine.
std::uint16_t port_of_job(const std::string& job) {
  std::uint32_t hash = 0x811C9DC5U;
  for (const char letter : job) hash = (hash ^ static_cast<std::uint8_t>(letter)) * 0x01000193U;
  constexpr std::uint32_t first_port = 20000;
  constexpr std::uint32_t port_count = 10000;
  return static_cast<std::uint16_t>(first_port + hash % port_count);
}

Result<std::uint16_t> default_port(const rendezvous::Environment& environment, const std::string& job) {
  const auto master = number_of(environment, "MASTER_PORT");
  if (!master) return tl::unexpected(master.error());
  if (!*master) return job.empty() ? default_rendezvous_port : port_of_job(job);
  constexpr std::uint32_t last_port = 65535;
  if (**master == 0 || **master >= last_port) {
    return invalid(fmt::format("MASTER_PORT is {}, but the rendezvous needs the port above it", **master),
                   "choose a MASTER_PORT from 1 to 65534, or name another port by --rendezvous HOST:PORT");
  }
  return static_cast<std::uint16_t>(**master + 1);
}

/// The host that the environment names, or why there is none.
Result<std::string> default_host(const rendezvous::Environment& environment, const Found& found) {
  if (const auto master = value_of(environment, "MASTER_ADDR")) return *master;
  if (found.info.launcher == Launcher::torchrun) {
    return invalid("RANK and WORLD_SIZE are set, but MASTER_ADDR is not",
                   "set MASTER_ADDR to rank 0's machine, or say --rendezvous HOST:PORT");
  }
  if (!found.spans_machines) return std::string("127.0.0.1");
  if (found.info.launcher == Launcher::slurm) {
    for (const char* name : {"SLURM_STEP_NODELIST", "SLURM_NODELIST", "SLURM_JOB_NODELIST"}) {
      const auto list = value_of(environment, name);
      if (list && !first_host(*list).empty()) return first_host(*list);
    }
  }
  return invalid(fmt::format("{} started ranks on several machines, but nothing says where rank 0 is",
                             to_string(found.info.launcher)),
                 "say --rendezvous HOST:PORT with rank 0's machine, or set ESPALIER_RENDEZVOUS on all ranks");
}

Result<void> find_meeting_place(const rendezvous::Environment& environment, const LaunchFlags& flags, Found& found) {
  const auto port = default_port(environment, found.info.job);
  const auto said = flags.rendezvous ? flags.rendezvous : value_of(environment, "ESPALIER_RENDEZVOUS");
  if (said) {
    const auto endpoint = parse_endpoint(*said);
    if (!endpoint) {
      return invalid((flags.rendezvous ? "--rendezvous: " : "ESPALIER_RENDEZVOUS: ") + endpoint.error().message,
                     endpoint.error().help);
    }
    found.info.host = endpoint->host;
    if (endpoint->port) {
      found.info.port = *endpoint->port;
      return {};
    }
  } else {
    auto host = default_host(environment, found);
    if (!host) return tl::unexpected(host.error());
    found.info.host = std::move(*host);
  }
  if (!port) return tl::unexpected(port.error());
  found.info.port = *port;
  return {};
}

}  // namespace

std::string_view to_string(Launcher launcher) {
  switch (launcher) {
    case Launcher::none: return "nobody";
    case Launcher::flags: return "--rank";
    case Launcher::espalier: return "espalier";
    case Launcher::open_mpi: return "mpirun";
    case Launcher::pmi: return "mpiexec";
    case Launcher::slurm: return "srun";
    case Launcher::torchrun: return "torchrun";
  }
  return "";
}

Result<LaunchInfo> detect_launch(const rendezvous::Environment& environment, const LaunchFlags& flags) {
  auto found = find_launcher(environment, flags);
  if (!found) return tl::unexpected(found.error());
  found->info.job = job_of(environment, found->info.launcher);
  if (!found->info.is_launched() && !flags.rendezvous) return found->info;
  if (auto placed = find_meeting_place(environment, flags, *found); !placed) return tl::unexpected(placed.error());
  if (found->info.launcher == Launcher::espalier) {
    const auto listener = number_of(environment, "ESPALIER_LISTENER_FD");
    if (!listener) return tl::unexpected(listener.error());
    if (*listener) found->info.listener_fd = static_cast<int>(**listener);
  }
  return found->info;
}

}  // namespace espalier::engine::launch
