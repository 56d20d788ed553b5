#pragma once

// Tested by: tests/options/options_test.py

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/measured/relatives.h"
#include "cli/measured/too_fast_for.h"

namespace espalier::cli {

/// A part that may be what is slow.
struct NamedSuspect {
  std::string part;  ///< As --without names it; "a late rank".
  double probability = 0;
};

/// Whether a machine is as fast as it should be, and what to think where it is not.
struct MachineVerdict {
  std::string machine;
  compare::Judgement judgement;
  std::optional<ImpossibleTime> impossible;
  std::optional<Relative> relative;
  std::vector<NamedSuspect> suspects;
  std::string diagnose;  ///< The command line that looks for the bad part; empty where it is as predicted.
};

/// Suspects as a picture of the machine shows them.
struct PicturedSuspects {
  std::string sentence;
  std::shared_ptr<const Topology> machine;  ///< With these parts as slow as they may be.
};

/// The parts that may be at fault; nothing where none is, or the machine has more than 16 ranks.
std::optional<PicturedSuspects> picture_suspects(const Console& console, const MeasuredMachine& given);

/// Judges what was measured, `times` beside what was predicted of it. Where that does not fit, relatives of the machine
/// are tried, and where it is slow and none fits, parts are suspected (machines of up to 16 ranks).
MachineVerdict find_verdict(const Console& console, const MeasuredMachine& given,
                            std::span<const compare::PredictedTime> times);

/// "as predicted, within a factor of 1.03 (median)": one line, without the machine's name.
std::string verdict_sentence(const MachineVerdict& verdict);
/// {"kind", "factor", "text", "fits", "suspects", "diagnose"}.
nlohmann::ordered_json verdict_json(const MachineVerdict& verdict);

/// The same of two tables, of which A stands for a prediction of B. No machine is known.
std::string judgement_sentence(const compare::Judgement& judgement);
nlohmann::ordered_json judgement_json(const compare::Judgement& judgement);

}  // namespace espalier::cli
