#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "nccl_plugins/tuner/forecast_table.h"
#include "nccl_plugins/tuner/interface.h"

namespace espalier::nccl_plugins::tuner {
namespace {

std::string variable(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? std::string() : text;
}

/// Where the shipped profiles are: beside an installed library.
std::string shipped_profiles() {
  if (const std::string configs = variable("ESPALIER_CONFIGS"); !configs.empty()) return configs + "/profiles";
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&shipped_profiles), &info) == 0) return {};
  const auto folder = std::filesystem::path(info.dli_fname).parent_path();
  for (const char* relative : {"../share/espalier/configs/profiles", "../../share/espalier/configs/profiles"}) {
    std::error_code status;
    if (std::filesystem::is_directory(folder / relative, status)) return (folder / relative).string();
  }
  return {};
}

/// One table for all communicators of the process, and why there is none.
Result<std::shared_ptr<ForecastTable>> shared_table() {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<ForecastTable>> known;
  const std::scoped_lock lock(mutex);
  const std::string machine = variable("ESPALIER_TUNER_MACHINE"), profile = variable("ESPALIER_TUNER_PROFILE");
  if (machine.empty()) {
    return fail(ErrorCode::unavailable, "ESPALIER_TUNER_MACHINE names no machine file");
  }
  std::shared_ptr<ForecastTable>& table = known[machine + "\n" + profile];
  if (!table) {
    auto loaded = ForecastTable::load(machine, profile, shipped_profiles());
    if (!loaded) return tl::unexpected(loaded.error());
    table = *loaded;
  }
  return table;
}

/// A communicator. Without a table it leaves NCCL to itself.
struct Communicator {
  std::shared_ptr<ForecastTable> table;
  Logger logger = nullptr;
  std::mutex mutex;
  std::set<std::pair<int, std::size_t>> logged;  ///< Function and power of two: each is told once.

  void log(LogLevel level, const std::string& text) const {
    if (logger != nullptr) logger(level, tuning_subsystem, __FILE__, __LINE__, "espalier tuner: %s", text.c_str());
  }
  bool is_new(Function function, std::size_t bytes) {
    const std::scoped_lock lock(mutex);
    std::size_t power = 0;
    for (; bytes > 1; bytes /= 2) ++power;
    return logged.emplace(static_cast<int>(function), power).second;
  }
};

NcclResult begin(void** context, std::size_t ranks, std::size_t nodes, Logger logger) {
  *context = nullptr;
  try {
    auto communicator = std::make_unique<Communicator>();
    communicator->logger = logger;
    const auto table = shared_table();
    if (!table) {
      communicator->log(LogLevel::warn, table.error().message + "; NCCL chooses itself");
    } else if ((*table)->machine().rank_count() != ranks || (*table)->host_count() != nodes) {
      communicator->log(LogLevel::info, fmt::format("{} has {} ranks on {} machines, the communicator {} on {}; NCCL "
                                                    "chooses itself",
                                                    (*table)->machine().name(), (*table)->machine().rank_count(),
                                                    (*table)->host_count(), ranks, nodes));
    } else {
      communicator->table = *table;
    }
    *context = communicator.release();
  } catch (const std::exception&) {
    return NcclResult::system_error;
  }
  return NcclResult::success;
}

NcclResult init_v2(std::size_t ranks, std::size_t nodes, Logger logger, void** context) {
  return begin(context, ranks, nodes, logger);
}
NcclResult init_v5(void** context, std::uint64_t /*communicator*/, std::size_t ranks, std::size_t nodes, Logger logger,
                   void* /*nvlink_domains*/, void* /*constants*/) {
  return begin(context, ranks, nodes, logger);
}

std::optional<CollectiveKind> kind_of(Function function) {
  switch (function) {
    case Function::broadcast: return CollectiveKind::broadcast;
    case Function::reduce: return CollectiveKind::reduce;
    case Function::all_gather: return CollectiveKind::all_gather;
    case Function::reduce_scatter: return CollectiveKind::reduce_scatter;
    case Function::all_reduce: return CollectiveKind::all_reduce;
  }
  return std::nullopt;
}

/// The fastest by the forecast among those that NCCL may take; nothing leaves NCCL to itself.
template <class MayTake>
std::optional<Forecast> choose(void* context, Function function, std::size_t bytes, const MayTake& may_take) {
  auto* const communicator = static_cast<Communicator*>(context);
  if (communicator == nullptr || !communicator->table) return std::nullopt;
  const auto kind = kind_of(function);
  if (!kind) return std::nullopt;
  try {
    for (const Forecast& forecast : communicator->table->rank(*kind, bytes)) {
      if (!may_take(forecast.algorithm, forecast.protocol)) continue;
      if (communicator->is_new(function, bytes)) {
        communicator->log(LogLevel::info, fmt::format("{} of {} bytes by {}/{}, forecast {:.1f} us", to_string(*kind),
                                                      bytes, algorithm_names[forecast.algorithm],
                                                      protocol_names[forecast.protocol], forecast.seconds * 1e6));
      }
      return forecast;
    }
    if (communicator->is_new(function, bytes)) {
      communicator->log(LogLevel::info, fmt::format("{} of {} bytes: the forecast has nothing that NCCL takes; NCCL "
                                                    "chooses itself",
                                                    to_string(*kind), bytes));
    }
  } catch (const std::exception& lack) {
    communicator->log(LogLevel::warn, fmt::format("{}; NCCL chooses itself", lack.what()));
  }
  return std::nullopt;
}

constexpr std::size_t collnet_direct = 2, collnet_chain = 3, nvls = 4, nvls_tree = 5;

NcclResult choose_v2(void* context, Function function, std::size_t bytes, int has_collnet, int has_nvls,
                     int /*operations*/, int* algorithm, int* protocol, int* /*channels*/) {
  const auto chosen = choose(context, function, bytes, [&](std::size_t candidate, std::size_t) {
    if (candidate == collnet_direct || candidate == collnet_chain) return has_collnet != 0;
    return (candidate != nvls && candidate != nvls_tree) || has_nvls != 0;
  });
  if (!chosen) return NcclResult::success;
  *algorithm = static_cast<int>(chosen->algorithm);
  *protocol = static_cast<int>(chosen->protocol);
  return NcclResult::success;
}

/// The table lies in memory row by row, whatever its type says.
NcclResult choose_by_costs(void* context, Function function, std::size_t bytes, float** costs, int algorithms,
                           int protocols) {
  auto* const table = reinterpret_cast<float*>(costs);
  const auto cost = [&](std::size_t algorithm, std::size_t protocol) -> float* {
    const bool is_in =
        algorithm < static_cast<std::size_t>(algorithms) && protocol < static_cast<std::size_t>(protocols);
    return is_in ? table + algorithm * static_cast<std::size_t>(protocols) + protocol : nullptr;
  };
  const auto chosen = choose(context, function, bytes, [&](std::size_t algorithm, std::size_t protocol) {
    const float* const known = cost(algorithm, protocol);
    return known != nullptr && *known != ignored_cost;
  });
  if (chosen) *cost(chosen->algorithm, chosen->protocol) = 0;
  return NcclResult::success;
}

NcclResult choose_v3(void* context, Function function, std::size_t bytes, int /*operations*/, float** costs,
                     int algorithms, int protocols, int* /*channels*/) {
  return choose_by_costs(context, function, bytes, costs, algorithms, protocols);
}
NcclResult choose_v4(void* context, Function function, std::size_t bytes, int /*operations*/, float** costs,
                     int algorithms, int protocols, int /*registered*/, int* /*channels*/) {
  return choose_by_costs(context, function, bytes, costs, algorithms, protocols);
}

NcclResult destroy(void* context) {
  delete static_cast<Communicator*>(context);
  return NcclResult::success;
}

}  // namespace

ESPALIER_NCCL_EXPORT const InterfaceV2 ncclTunerPlugin_v2 = {"espalier", init_v2, choose_v2, destroy};
ESPALIER_NCCL_EXPORT const InterfaceV3 ncclTunerPlugin_v3 = {"espalier", init_v2, choose_v3, destroy};
ESPALIER_NCCL_EXPORT const InterfaceV4 ncclTunerPlugin_v4 = {"espalier", init_v2, choose_v4, destroy};
ESPALIER_NCCL_EXPORT const InterfaceV5 ncclTunerPlugin_v5 = {"espalier", init_v5, choose_v4, destroy};

}  // namespace espalier::nccl_plugins::tuner
