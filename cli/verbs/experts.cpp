#include <fmt/format.h>

#include <map>

#include "cli/compute/exchange_rows.h"
#include "cli/flags/inputs.h"
#include "cli/flags/modes.h"
#include "cli/output/json_text.h"
#include "cli/output/table.h"
#include "cli/verbs/commands.h"
#include "compute/gpu.h"
#include "experts/exchange.h"

namespace espalier::cli {
namespace {

struct ExpertsFlags {
  TopologyFlags machine;
  std::string software = "deepep-normal";
  std::string dispatch;
  std::string combine = "bf16";
  std::string gpu = "h100-sxm";
  std::string batch;
  std::int64_t first = 0;
  experts::Exchange exchange{.tokens = 128, .hidden = 7168, .top_k = 8, .experts = 256};
};

/// An exchange with its answer.
struct AnsweredExchange {
  ExchangeRow row;
  experts::MachineRates machine;
  std::vector<experts::Phase> phases;

  [[nodiscard]] double seconds() const {
    double sum = 0;
    for (const experts::Phase& phase : phases) sum += phase.seconds;
    return sum;
  }
};

Result<std::vector<ExchangeRow>> rows_of(const Console& console, const ExpertsFlags& flags) {
  ExchangeRow usual{flags.exchange, static_cast<std::size_t>(flags.first)};
  const auto software = experts::parse_software(flags.software);
  if (!software) return tl::unexpected(software.error());
  usual.exchange.software = *software;
  for (const auto& [written, format] :
       {std::pair(&flags.dispatch, &usual.exchange.dispatch), std::pair(&flags.combine, &usual.exchange.combine)}) {
    if (written->empty()) continue;
    const auto parsed = experts::parse_format(*written);
    if (!parsed) return tl::unexpected(parsed.error());
    *format = *parsed;
  }
  if (flags.batch.empty()) return std::vector{usual};
  const auto text = read_whole(console, flags.batch);
  if (!text) return tl::unexpected(text.error());
  return read_exchange_rows(*text, flags.batch, usual);
}

Result<std::vector<AnsweredExchange>> answer_rows(const Topology& topology, std::vector<ExchangeRow> rows,
                                                  int multiprocessors) {
  std::map<std::size_t, Result<experts::MachineRates>> rates;
  std::vector<AnsweredExchange> answered;
  for (ExchangeRow& row : rows) {
    if (!rates.contains(row.ranks)) rates.emplace(row.ranks, experts::find_rates(topology, row.ranks));
    const auto& found = rates.at(row.ranks);
    auto phases = found ? [&]() -> Result<std::vector<experts::Phase>> {
      experts::MachineRates machine = *found;
      machine.multiprocessors = multiprocessors;
      return experts::predict(machine, row.exchange);
    }()
        : Result<std::vector<experts::Phase>>(tl::unexpected(found.error()));
    if (!phases) return fail(phases.error().code, row.where + phases.error().message, phases.error().help);
    answered.push_back({std::move(row), *found, *std::move(phases)});
  }
  return answered;
}

nlohmann::ordered_json experts_document(const Topology& topology, const std::vector<AnsweredExchange>& answered) {
  nlohmann::ordered_json document = {
      {"schema", "espalier/experts/1"}, {"topology", topology.name()}, {"exchanges", nlohmann::ordered_json::array()}};
  for (const AnsweredExchange& each : answered) {
    const experts::Exchange& exchange = each.row.exchange;
    nlohmann::ordered_json phases = nlohmann::ordered_json::array();
    for (const experts::Phase& phase : each.phases) {
      phases.push_back({{"name", phase.name},
                        {"seconds", phase.seconds},
                        {"start", phase.start},
                        {"limit", experts::name_of(phase.limit)}});
    }
    document["exchanges"].push_back({{"software", experts::name_of(exchange.software)},
                                     {"ranks", each.machine.ranks},
                                     {"boxes", each.machine.boxes},
                                     {"link_rate", each.machine.link_rate},
                                     {"nic_rate", each.machine.nic_rate},
                                     {"tokens", exchange.tokens},
                                     {"hidden", exchange.hidden},
                                     {"top_k", exchange.top_k},
                                     {"experts", exchange.experts},
                                     {"sms", exchange.sms},
                                     {"dispatch", experts::name_of(exchange.dispatch)},
                                     {"combine", experts::name_of(exchange.combine)},
                                     {"seconds", each.seconds()},
                                     {"phases", std::move(phases)}});
  }
  return document;
}

Table experts_table(const std::vector<AnsweredExchange>& answered) {
  Table table;
  table.add_column("software", {}, Table::Align::left);
  for (const char* const title : {"ranks", "boxes", "tokens"}) table.add_column(title);
  table.add_column("phase", {}, Table::Align::left);
  table.add_column("time", "(us)");
  table.add_column("start", "(us)");
  table.add_column("limit", {}, Table::Align::left);
  for (const AnsweredExchange& each : answered) {
    for (const experts::Phase& phase : each.phases) {
      table.add_row({std::string(experts::name_of(each.row.exchange.software)), std::to_string(each.machine.ranks),
                     std::to_string(each.machine.boxes), std::to_string(each.row.exchange.tokens),
                     std::string(phase.name), fmt::format("{:.2f}", phase.seconds * 1e6),
                     fmt::format("{:.2f}", phase.start * 1e6), std::string(experts::name_of(phase.limit))});
    }
  }
  return table;
}

ExitCode run_experts(const Console& console, const ExpertsFlags& flags) {
  const auto gpu = compute::find_gpu(flags.gpu);
  if (!gpu) return console.refuse_usage(gpu.error());
  auto rows = rows_of(console, flags);
  if (!rows) return flags.batch.empty() ? console.refuse_usage(rows.error()) : console.refuse(rows.error());
  const auto topology = load_topology(console, flags.machine);
  if (!topology) return refuse(console, topology.error());
  const auto answered = answer_rows(*topology, *std::move(rows), (*gpu)->multiprocessors);
  if (!answered) return flags.batch.empty() ? console.refuse_usage(answered.error()) : console.refuse(answered.error());
  if (console.json) {
    console.print(json_text(experts_document(*topology, *answered)));
  } else if (console.csv) {
    console.print_bytes(experts_table(*answered).csv());
  } else {
    console.print(fmt::format("# {}\n", topology->name()) + experts_table(*answered).text());
  }
  return ExitCode::ok;
}

}  // namespace

void add_experts_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<ExpertsFlags>();
  CLI::App* command =
      app.add_subcommand("experts", "What software takes to send tokens to experts on other GPUs, and back");
  flags->machine.add_to(*command);
  flags->machine.add_damage_to(*command);
  const auto number = [&](const char* option, std::int64_t& place, const char* what) {
    command->add_option(option, place, what)->type_name("N")->capture_default_str();
  };
  const auto word = [&](const char* option, std::string& place, const char* what, const char* type) {
    return command->add_option(option, place, what)->type_name(type)->capture_default_str();
  };
  word("--software", flags->software, "deepep-normal, deepep-low-latency, trtllm-nvlink or trtllm-nvlink-one-sided",
       "NAME");
  number("--tokens", flags->exchange.tokens, "Tokens of a rank");
  number("--hidden", flags->exchange.hidden, "Elements of a token");
  number("--top-k", flags->exchange.top_k, "Experts that a token goes to");
  number("--experts", flags->exchange.experts, "Experts of all ranks together");
  number("--sms", flags->exchange.sms, "Multiprocessors that deepep-normal is given");
  number("--max-boxes", flags->exchange.max_boxes, "Boxes that deepep-normal's experts of a token may be in");
  word("--dispatch", flags->dispatch, "bf16, fp8 or nvfp4, what tokens are sent as (default fp8)", "FORMAT");
  word("--combine", flags->combine, "bf16 or nvfp4, what comes back", "FORMAT");
  command->add_option("--first", flags->first, "As many ranks of the machine, from the first on (default: all)")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{2}, std::int64_t{1} << 20U));
  word("--gpu", flags->gpu, "Whose multiprocessors there are (espalier compute lists them)", "NAME");
  command
      ->add_option("--batch", flags->batch,
                   "Answer rows of CSV (docs/expert-parallel.md); what they leave out is as the flags say; - is "
                   "standard input")
      ->type_name("FILE");
  add_csv_to(*command, session.console);
  command->footer(examples({"espalier experts dgx-h100 --tokens 4096 --sms 24",
                            "espalier experts dgx-h100-x4 --software deepep-low-latency --tokens 128",
                            "espalier experts gb200-nvl72 --software trtllm-nvlink --first 16 --json",
                            "espalier experts dgx-h200 --batch rows.csv --json"}));
  command->callback(
      [flags, &session] { session.run = [flags, &session] { return run_experts(session.console, *flags); }; });
}

}  // namespace espalier::cli
