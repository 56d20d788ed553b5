#include "cli/measured/diagnosis_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/counted.h"
#include "base/format_units.h"
#include "diagnose/setting.h"

namespace espalier::cli {
namespace {

using diagnose::Diagnosis;
using diagnose::Fault;
using diagnose::Suspect;
using Json = nlohmann::ordered_json;

std::string duration_of(double seconds) { return format_duration(Picoseconds(std::llround(seconds * 1e12))); }
std::string whole_percent(double part) { return fmt::format("{:.0f}", 100 * part); }

/// "all_reduce of 256 MiB".
std::string worst_text(const Diagnosis& diagnosis) {
  return fmt::format("{} of {}", diagnosis.worst->question.collective,
                     format_size(diagnosis.worst->points[diagnosis.worst_point].size));
}

std::string verdict_text(const DiagnosisReport& report) {
  const Diagnosis& diagnosis = *report.diagnosis;
  if (report.too_fast) {
    return fmt::format("faster than the machine can be: {} of {} took {}, and no schedule takes less than {}",
                       report.too_fast->evidence->question.collective, format_size(report.too_fast->point.size),
                       duration_of(report.too_fast->point.seconds), duration_of(report.too_fast->bound_seconds));
  }
  switch (diagnosis.verdict) {
    case Diagnosis::Verdict::as_predicted:
      return fmt::format("as predicted, within a factor of {:.2f} (median {:.2f}): nothing points at a part",
                         std::max(diagnosis.factor, 1 / diagnosis.factor),
                         std::max(diagnosis.typical_factor, 1 / diagnosis.typical_factor));
    case Diagnosis::Verdict::faster:
      return fmt::format(
          "{:.2f} times as fast as predicted (median): the machine's file or its profile is not of what was measured",
          1 / diagnosis.typical_factor);
    case Diagnosis::Verdict::slower: break;
  }
  return fmt::format("slower than predicted, by {:.2f} times at {}", diagnosis.factor, worst_text(diagnosis));
}

std::string advice_for(const Suspect& suspect) {
  if (suspect.fault.kind == Fault::Kind::late)
    return "look for a rank that other work holds up, and at its clock and power";
  if (suspect.fault.kind == Fault::Kind::setting) {
    for (const diagnose::Setting& setting : diagnose::nccl_settings()) {
      if (setting.name == suspect.fault.part) return std::string(setting.advice);
    }
  }
  if (suspect.what == "nic")
    return "compare its speed, width and error counters with its peers' (ethtool, ibstat, lspci -vv)";
  if (suspect.what == "gpu")
    return "compare clocks, power, PCIe width and NVLink states with its peers' (nvidia-smi -q, nvidia-smi nvlink -s)";
  if (suspect.what == "host") return "look for other work, power limits and the BIOS settings of this host";
  if (suspect.what.starts_with("all "))
    return "look for a setting that all have: the driver, a rate, ACS or an IOMMU on the way";
  if (suspect.what == "switch" || suspect.what == "pcie") return "look at its ports' counters and firmware";
  if (suspect.what == "rail")
    return "look at this rail's switch, and at what its NICs have in common (ports, firmware, routing)";
  return "read the error counters of both ends, reseat or change the cable";
}

std::string alike_text(const Suspect& suspect) {
  if (suspect.alike.size() < 2) return {};
  constexpr std::size_t shown = 3;
  const std::size_t count = suspect.alike.size() - 1;
  std::string text;
  for (std::size_t i = 1; i <= std::min(shown, count); ++i) text += (i > 1 ? ", " : "") + suspect.alike[i];
  return count > shown ? fmt::format("{} and {} more", text, count - shown) : text;
}

/// "GPU 9, leaf-3 and 4 more".
std::string names_text(std::span<const std::string> names) {
  constexpr std::size_t shown = 8;
  std::string text = fmt::format("{}", fmt::join(names.first(std::min(shown, names.size())), ", "));
  return names.size() > shown ? fmt::format("{} and {} more", text, names.size() - shown) : text;
}

std::string part_text(const Suspect& suspect) {
  return suspect.fault.kind == Fault::Kind::late ? "a late rank" : suspect.fault.part;
}

std::string state_text(const Fault& fault) {
  if (fault.kind == Fault::Kind::late) return "late by " + duration_of(fault.delay);
  if (fault.kind == Fault::Kind::setting) return "set";
  return fault.kind == Fault::Kind::gone ? "gone" : fmt::format("at {:.0f} % of its rate", 100 * fault.rate);
}

/// The program of nccl-tests that measures a collective.
std::string program_of(const std::string& collective) {
  if (collective == "all_to_all") return "alltoall_perf";
  return collective == "send_recv" ? "sendrecv_perf" : collective + "_perf";
}

/// What runs the next test, and what reads it.
std::string next_test_text(const DiagnosisReport& report) {
  const diagnose::NextTest& test = *report.next_test;
  const std::int64_t size = test.size.count;
  return fmt::format(
      "Next test, which leaves at most {} of these: {} of {} on {} alone\n"
      "  {} -b {} -e {} > next.txt\n"
      "  espalier diagnose {} FILE... 'next.txt@{}'\n",
      test.left, test.question.collective, format_size(test.size), test.question.ranks,
      program_of(test.question.collective), size, size, report.machine, test.question.ranks);
}

}  // namespace

Table suspects_table(const Diagnosis& diagnosis, double least) {
  Table table;
  table.add_column("probability", "(%)");
  table.add_column("part", {}, Table::Align::left);
  table.add_column("what", {}, Table::Align::left);
  table.add_column("how", {}, Table::Align::left);
  table.add_column("explains", "(%)");
  table.add_column("no test here tells it from", {}, Table::Align::left);
  for (const Suspect& suspect : diagnosis.suspects) {
    if (suspect.probability < least) continue;
    table.add_row({whole_percent(suspect.probability), part_text(suspect), suspect.what, state_text(suspect.fault),
                   whole_percent(suspect.explains), alike_text(suspect)});
  }
  return table;
}

std::string diagnosis_text(const DiagnosisReport& report) {
  const Diagnosis& diagnosis = *report.diagnosis;
  std::string text = fmt::format("{}: {}\n", report.machine, verdict_text(report));
  text += fmt::format("  {} against {}\n", counted(report.rows, "measured time"),
                      report.profile.empty() ? "links alone" : "profile " + report.profile);
  if (!diagnosis.suspects.empty()) {
    constexpr double shown_from = 0.005;  // As one per cent.
    text += "\n" + suspects_table(diagnosis, shown_from).text("  ");
    const Suspect& first = diagnosis.suspects.front();
    text += fmt::format("\n{}\n  {}\n", first.evidence, advice_for(first));
    if (first.together_with) text += fmt::format("  together with {}\n", describe(*first.together_with));
    if (!first.same_predictions.empty()) {
      text += fmt::format("These measurements cannot tell {} from {}.\n", part_text(first),
                          fmt::join(first.same_predictions, ", "));
    }
  }
  if (report.next_test) text += "\n" + next_test_text(report);
  for (const CountedPart& part : report.counted) {
    text += fmt::format("\nCounters speak against {} ({}){}.\n", part.part, part.says,
                        diagnosis.suspects.empty() ? ", which no measured time shows" : "");
  }
  if (!report.unknown_devices.empty()) {
    text += fmt::format("\nLeft out: counters of {}, which {} does not have: {}.\n",
                        counted(report.unknown_devices.size(), "device"), report.machine,
                        names_text(report.unknown_devices));
  }
  if (!diagnosis.untouched.empty()) {
    text += fmt::format("\nNot tested here: {}.\n", fmt::join(diagnosis.untouched, ", "));
  }
  return text;
}

Json diagnosis_json(const DiagnosisReport& report) {
  const Diagnosis& diagnosis = *report.diagnosis;
  Json json{{"schema", "espalier/diagnosis/1"},
            {"machine", report.machine},
            {"profile", report.profile.empty() ? Json() : Json(report.profile)},
            {"rows", report.rows},
            {"healthy", diagnosis.healthy() && !report.too_fast},
            {"verdict", verdict_text(report)},
            {"probability_healthy", diagnosis.probability_healthy},
            {"factor", diagnosis.factor},
            {"suspects", Json::array()},
            {"untouched", diagnosis.untouched},
            {"next_test", nullptr},
            {"counters", Json::array()},
            {"unknown_devices", report.unknown_devices}};
  for (const CountedPart& part : report.counted) json["counters"].push_back({{"part", part.part}, {"says", part.says}});
  for (const Suspect& suspect : diagnosis.suspects) {
    Json one{{"part", suspect.fault.kind == Fault::Kind::late ? Json() : Json(suspect.fault.part)},
             {"kind", name_of(suspect.fault.kind)},
             {"what", suspect.what},
             {"probability", suspect.probability},
             {"explains", suspect.explains},
             {"evidence", suspect.evidence}};
    if (suspect.fault.kind == Fault::Kind::slow) one["rate"] = suspect.fault.rate;
    if (suspect.fault.kind == Fault::Kind::late) one["delay"] = suspect.fault.delay;
    one["alike"] = suspect.alike;
    one["same_predictions"] = suspect.same_predictions;
    one["together_with"] = suspect.together_with ? Json(describe(*suspect.together_with)) : Json();
    one["advice"] = advice_for(suspect);
    json["suspects"].push_back(std::move(one));
  }
  if (report.next_test) {
    json["next_test"] = {{"ranks", report.next_test->question.ranks},
                         {"collective", report.next_test->question.collective},
                         {"size", report.next_test->size.count},
                         {"left", report.next_test->left}};
  }
  return json;
}

}  // namespace espalier::cli
