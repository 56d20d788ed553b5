#include <fmt/format.h>

#include <sstream>

#include "cli/compute/questions.h"
#include "cli/flags/inputs.h"
#include "cli/output/json_text.h"
#include "cli/output/table.h"
#include "cli/verbs/commands.h"
#include "compute/gpu.h"
#include "compute/model.h"

namespace espalier::cli {
namespace {

struct ComputeFlags {
  std::string batch;
};

/// A line of JSON for each line of JSON.
ExitCode answer_batch(const Console& console, const std::string& path) {
  const auto text = read_whole(console, path);
  if (!text) return console.refuse(text.error());
  std::istringstream lines(*text);
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const auto question = nlohmann::json::parse(line, nullptr, false);
    auto answer =
        question.is_discarded()
            ? Result<nlohmann::ordered_json>(fail(
                  ErrorCode::invalid_input, "this is no JSON",
                  "write one object on a line, as {\"product\": {\"rows\": 4096, \"columns\": 4096, \"depth\": 4096}}"))
            : answer_question(question);
    if (!answer)
      answer =
          nlohmann::ordered_json{{"line", number}, {"error", answer.error().message}, {"help", answer.error().help}};
    console.print(answer->dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n");
  }
  return ExitCode::ok;
}

nlohmann::ordered_json gpus_document() {
  nlohmann::ordered_json document = {{"schema", "espalier/gpus/1"}, {"gpus", nlohmann::ordered_json::array()}};
  for (const compute::Gpu& gpu : compute::gpus()) {
    document["gpus"].push_back({{"name", gpu.name},
                                {"what", gpu.what},
                                {"bf16", gpu.bf16},
                                {"fp8", gpu.fp8},
                                {"tf32", gpu.tf32},
                                {"fp32", gpu.fp32},
                                {"memory", gpu.memory},
                                {"memory_rate", gpu.memory_rate},
                                {"multiprocessors", gpu.multiprocessors},
                                {"fp4", gpu.fp4},
                                {"memory_part", gpu.memory_part},
                                {"tile_part", gpu.tile_part},
                                {"tile_overhead", gpu.tile_overhead},
                                {"sustained", gpu.sustained}});
  }
  const compute::Software software;
  document["software"] = {
      {"slowed", software.slowed}, {"last_bucket", software.last_bucket}, {"tensor_hidden", software.tensor_hidden}};
  return document;
}

ExitCode list_gpus(const Console& console) {
  if (console.json) {
    console.print(json_text(gpus_document()));
    return ExitCode::ok;
  }
  Table table;
  table.add_column("gpu", {}, Table::Align::left);
  for (const char* const title : {"bf16", "fp8", "tf32"}) table.add_column(title, "(TFLOP/s)");
  table.add_column("memory", "(GB)");
  table.add_column("rate", "(GB/s)");
  table.add_column("what", {}, Table::Align::left);
  for (const compute::Gpu& gpu : compute::gpus()) {
    const auto tera = [](double rate) { return rate > 0 ? fmt::format("{:.1f}", rate / 1e12) : std::string("-"); };
    table.add_row({std::string(gpu.name), tera(gpu.bf16), tera(gpu.fp8), tera(gpu.tf32),
                   fmt::format("{:.0f}", gpu.memory / 1e9), fmt::format("{:.0f}", gpu.memory_rate / 1e9),
                   std::string(gpu.what)});
  }
  console.print(table.text());
  return ExitCode::ok;
}

}  // namespace

void add_compute_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<ComputeFlags>();
  CLI::App* command = app.add_subcommand("compute", "What GPUs take to compute: products, attention, layers, steps");
  command
      ->add_option("--batch", flags->batch,
                   "Answer questions, a line of JSON each (docs/compute.md); - is standard input")
      ->type_name("FILE");
  command->footer(examples({"espalier compute", "espalier compute --batch questions.jsonl"}));
  command->callback([flags, &session] {
    session.run = [flags, &session] {
      return flags->batch.empty() ? list_gpus(session.console) : answer_batch(session.console, flags->batch);
    };
  });
}

}  // namespace espalier::cli
