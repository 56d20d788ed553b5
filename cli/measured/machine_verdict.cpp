#include "cli/measured/machine_verdict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/format_units.h"
#include "cli/measured/diagnosis_job.h"

namespace espalier::cli {
namespace {

using Kind = compare::Judgement::Kind;

/// Whole machines and boxes are diagnosed at once; larger ones take longer than a verdict should.
constexpr std::size_t max_suspected_ranks = 16;

std::vector<diagnose::Suspect> find_suspects(const Console& console, const MeasuredMachine& given) {
  if (given.topology.rank_count() > max_suspected_ranks) return {};
  DiagnosisTables tables;
  if (!tables.add(given.topology, given.measured, {}, given.algorithm)) return {};
  Console silent = console;
  silent.quiet = true;
  auto diagnosed = diagnose_tables(silent, given.topology, tables, given.software);
  if (!diagnosed) return {};
  constexpr std::size_t shown = 3;
  std::vector<diagnose::Suspect> suspects = std::move(diagnosed->diagnosis.suspects);
  if (suspects.size() > shown) suspects.resize(shown);
  return suspects;
}

std::vector<NamedSuspect> suspect_parts(const Console& console, const MeasuredMachine& given) {
  std::vector<NamedSuspect> named;
  for (const diagnose::Suspect& suspect : find_suspects(console, given)) {
    const bool is_late = suspect.fault.kind == diagnose::Fault::Kind::late;
    std::string name = is_late ? "a late rank" : suspect.fault.part;
    if (suspect.alike.size() > 1) name += fmt::format(" or one of {} like it", suspect.alike.size() - 1);
    named.push_back({std::move(name), suspect.probability});
  }
  return named;
}

double as_factor(double factor) { return std::max(factor, 1 / factor); }

std::string relative_text(const Relative& relative) {
  return fmt::format("{} with {} {}, within a factor of {:.2f} (median)", relative.machine, relative.options,
                     relative.fits() ? "fits" : "comes nearest", relative.judgement.typical());
}

std::string off_by(const compare::Judgement& judgement) {
  return fmt::format("{:.2f} times {}", as_factor(judgement.factor), judgement.band->name);
}

std::string suspects_text(const std::vector<NamedSuspect>& suspects) {
  std::string text;
  for (const NamedSuspect& suspect : suspects) {
    text += fmt::format("{}{} ({:.0f} %)", text.empty() ? "" : ", ", suspect.part, 100 * suspect.probability);
  }
  return text;
}

}  // namespace

std::string judgement_sentence(const compare::Judgement& judgement) {
  switch (judgement.kind) {
    case Kind::slower: return fmt::format("slower than predicted, by {} (median)", off_by(judgement));
    case Kind::faster: return fmt::format("faster than predicted, by {} (median)", off_by(judgement));
    case Kind::as_predicted: break;
  }
  std::string text = fmt::format("as predicted, within a factor of {:.2f} (median)", judgement.typical());
  if (judgement.odd) {
    text += fmt::format(", but for {}, which took {:.2f} times as long", format_size(judgement.odd->size),
                        judgement.odd->measured / judgement.odd->predicted);
  }
  return text;
}

std::optional<PicturedSuspects> picture_suspects(const Console& console, const MeasuredMachine& given) {
  constexpr double hardly = 0.05;  // What is left of a part that is gone: it stays in the picture.
  std::vector<diagnose::Fault> faults;
  std::string sentence;
  for (const diagnose::Suspect& suspect : find_suspects(console, given)) {
    using FaultKind = diagnose::Fault::Kind;
    if (suspect.fault.kind == FaultKind::late || suspect.fault.kind == FaultKind::setting) continue;
    sentence += fmt::format(
        "{}{} ({:.0f} %{})", sentence.empty() ? "" : ", ", suspect.fault.part, 100 * suspect.probability,
        suspect.alike.size() > 1 ? fmt::format(", or one of {} like it", suspect.alike.size() - 1) : std::string());
    const bool is_gone = suspect.fault.kind == diagnose::Fault::Kind::gone;
    faults.push_back(
        {diagnose::Fault::Kind::slow, suspect.fault.part, is_gone ? hardly : suspect.fault.rate, 0, false});
  }
  if (faults.empty()) return std::nullopt;
  auto machine = diagnose::with_faults(given.topology, faults);
  if (!machine) return std::nullopt;
  return PicturedSuspects{
      fmt::format("In {} the machine is slower than predicted; suspects, red and dotted in its picture: {}.",
                  given.measured.file, sentence),
      std::make_shared<const Topology>(*std::move(machine))};
}

MachineVerdict find_verdict(const Console& console, const MeasuredMachine& given,
                            std::span<const compare::PredictedTime> times) {
  MachineVerdict verdict;
  verdict.machine = given.argument;
  verdict.judgement = compare::judge(times);
  verdict.impossible = find_impossible(given.topology, given.measured);
  if (!verdict.impossible && verdict.judgement.kind == Kind::as_predicted) return verdict;
  verdict.relative = find_relative(console, given, verdict.judgement);
  const bool fits = verdict.relative && verdict.relative->fits();
  if (fits || verdict.impossible || verdict.judgement.kind != Kind::slower) return verdict;
  verdict.suspects = suspect_parts(console, given);
  verdict.diagnose = fmt::format("espalier diagnose {} {}{}{}", given.argument, given.measured.file,
                                 given.options.empty() ? "" : " ", given.options);
  return verdict;
}

std::string verdict_sentence(const MachineVerdict& verdict) {
  const auto& relative = verdict.relative;
  if (verdict.impossible) {
    const std::string which =
        relative ? relative_text(*relative) : "its file is not of what was measured, and none of its relatives fits";
    return fmt::format("faster than the machine can be: {}; {}", describe(*verdict.impossible), which);
  }
  if (relative && relative->is_launch && relative->fits()) {
    return fmt::format("as predicted with {}, within a factor of {:.2f} (median); without, off by {}",
                       relative->options, relative->judgement.typical(), off_by(verdict.judgement));
  }
  std::string text = judgement_sentence(verdict.judgement);
  if (relative) text += "; " + relative_text(*relative);
  if (!verdict.suspects.empty()) text += "; suspects: " + suspects_text(verdict.suspects);
  if (!verdict.diagnose.empty()) text += "; look further with " + verdict.diagnose;
  return text;
}

nlohmann::ordered_json judgement_json(const compare::Judgement& judgement) {
  constexpr std::array kinds = {"as_predicted", "slower", "faster"};
  nlohmann::ordered_json json = {{"kind", kinds[static_cast<std::size_t>(judgement.kind)]},
                                 {"text", judgement_sentence(judgement)},
                                 {"factor", judgement.factor},
                                 {"sizes", judgement.band != nullptr ? judgement.band->name : ""}};
  return json;
}

nlohmann::ordered_json verdict_json(const MachineVerdict& verdict) {
  using Json = nlohmann::ordered_json;
  Json json = judgement_json(verdict.judgement);
  if (verdict.impossible) json["kind"] = "impossible";
  json["text"] = verdict_sentence(verdict);
  json["relative"] = nullptr;
  if (const auto& relative = verdict.relative) {
    json["relative"] = {{"machine", relative->machine},
                        {"profile", relative->software},
                        {"options", relative->options},
                        {"fits", relative->fits()},
                        {"factor", relative->judgement.typical()}};
  }
  json["suspects"] = Json::array();
  for (const NamedSuspect& suspect : verdict.suspects) {
    json["suspects"].push_back({{"part", suspect.part}, {"probability", suspect.probability}});
  }
  json["diagnose"] = verdict.diagnose.empty() ? Json() : Json(verdict.diagnose);
  return json;
}

}  // namespace espalier::cli
