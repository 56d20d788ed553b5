#include "cli/flags/modes.h"

#include <gtest/gtest.h>

#include "cli/flags/missing_file.h"
#include "cli/flags/usage_error.h"

namespace espalier::cli {
namespace {

struct Line {
  CLI::App app;
  std::string chunk, size, what;

  explicit Line(std::vector<std::string> words) {
    app.name("espalier");
    CLI::App* const simulate = app.add_subcommand("simulate");
    simulate->add_option("WHAT", what);
    simulate->add_option("--chunk", chunk);
    simulate->add_option("-s,--size", size);
    app.add_subcommand("topo")->require_subcommand(1)->add_subcommand("show");
    std::ranges::reverse(words);
    app.parse(std::move(words));
  }
  [[nodiscard]] const CLI::App& verb() const { return *app.get_subcommand("simulate"); }
};

TEST(Modes, AnOptionThatNoModeListsIsRefused) {
  const Line line({"simulate", "plan.json", "--chunk", "4K"});
  EXPECT_FALSE(find_idle_option(line.verb(), {"a plan", "it has none", {"WHAT", "--chunk"}, {}}));
  const auto idle = find_idle_option(line.verb(), {"a plan", "its chunk is given", {"WHAT", "--size"}, {}});
  ASSERT_TRUE(idle);
  EXPECT_EQ(idle->message, "--chunk does not apply to a plan: its chunk is given");
  EXPECT_EQ(idle->help, "leave --chunk out");
}

TEST(Modes, OptionsAreKnownByAnyOfTheirNamesAndArgumentsByTheirs) {
  const Line line({"simulate", "plan.json", "-s", "4K"});
  EXPECT_FALSE(find_idle_option(line.verb(), {"a plan", "", {"WHAT", "-s"}, {}}));
  EXPECT_FALSE(find_idle_option(line.verb(), {"a plan", "", {"WHAT", "--size"}, {}}));
  EXPECT_EQ(find_idle_option(line.verb(), {"--list", "why", {"--size"}, "do this"})->message,
            "WHAT does not apply to --list: why");
  EXPECT_TRUE(was_given(line.verb(), "--size"));
  EXPECT_FALSE(was_given(line.verb(), "--chunk"));
}

TEST(UsageErrors, NameTheNearestVerbAndOption) {
  const auto told = [](const std::vector<std::string>& words) {
    const Line line({"simulate"});
    const Error error = usage_error(line.app, CLI::RequiredError("A subcommand"), words);
    return error.message + "; " + error.help;
  };
  EXPECT_EQ(told({"--json", "simulat", "x"}), "espalier has no verb 'simulat'; did you mean 'espalier simulate'?");
  EXPECT_EQ(told({"topo", "shw"}), "espalier topo has no verb 'shw'; did you mean 'espalier topo show'?");
  EXPECT_EQ(told({"topo", "wibble"}), "espalier topo has no verb 'wibble'; espalier topo --help lists them");
  EXPECT_EQ(told({"simulate", "x", "--chonk=4K"}), "espalier simulate has no option --chonk; did you mean '--chunk'?");
  EXPECT_EQ(told({"simulate", "x", "--wibble"}), "espalier simulate has no option --wibble; espalier simulate --help");
  const Line line({"simulate"});
  EXPECT_EQ(find_unfinished(line.app, {}), &line.app);
  EXPECT_EQ(find_unfinished(line.app, std::vector<std::string>{"topo"}), line.app.get_subcommand("topo"));
  EXPECT_EQ(find_unfinished(line.app, std::vector<std::string>{"simulate"}), nullptr);
  EXPECT_EQ(find_unfinished(line.app, std::vector<std::string>{"simulat"}), nullptr);
}

TEST(MissingFiles, MeanTheNearestNameOrTheFileWithItsEnding) {
  const std::vector<std::string> shipped = {"dgx1v", "one-host"};
  EXPECT_EQ(missing_file("one-hst", shipped).help, "did you mean 'one-host'?");
  EXPECT_EQ(missing_file("one-hst", shipped).message, "cannot read one-hst: there is no such file");
  const std::string configs = ESPALIER_SOURCE_DIR "/configs/";
  EXPECT_EQ(missing_file(configs + "dgx1v").help, "did you mean '" + configs + "dgx1v.yaml'?");
  EXPECT_EQ(missing_file(configs + "dgx1w.yaml").help, "did you mean '" + configs + "dgx1v.yaml'?");
  EXPECT_EQ(missing_file("/nowhere/at-all.yaml").help, "check the path");
  EXPECT_EQ(missing_file("nothing-like-these", shipped).help,
            "check the path, or name a shipped machine (espalier topo show --list)");
}

}  // namespace
}  // namespace espalier::cli
