#include "tests/support/imported.h"

namespace espalier {
namespace {

using test::import_good;
using test::links;
using test::refusal;

TEST(AmdSmi, PrintsTheTablesOfRocmSmi) {
  const std::string tables =
      "ACCESS TABLE:\n             0000:03:00.0 0000:0c:00.0 0000:22:00.0\n0000:03:00.0 ENABLED ENABLED ENABLED\n"
      "WEIGHT TABLE:\n             0000:03:00.0 0000:0c:00.0 0000:22:00.0\n0000:03:00.0 0            15 30\n"
      "0000:0c:00.0 15           0 15\n0000:22:00.0 30 15 0\n\nHOPS TABLE:\n"
      "             0000:03:00.0 0000:0c:00.0 0000:22:00.0\n0000:03:00.0 0            1 1\n0000:0c:00.0 1 0 1\n"
      "0000:22:00.0 1 1 0\n\nLINK TYPE TABLE:\n             0000:03:00.0 0000:0c:00.0 0000:22:00.0\n"
      "0000:03:00.0 SELF         XGMI XGMI\n0000:0c:00.0 XGMI SELF XGMI\n0000:22:00.0 XGMI XGMI SELF\n\n"
      "NUMA BW TABLE:\n             0000:03:00.0 0000:0c:00.0 0000:22:00.0\n0000:03:00.0 N/A 50000-50000 N/A\n\n"
      "Legend:\n  SELF = Current GPU\n";
  const auto imported =
      import_topology(std::vector<ImportFile>{{"amd.txt", tables}}, {.preset = "mi300x", .name = "box"});
  ASSERT_TRUE(imported) << imported.error().message;
  const Topology& box = imported->topology;
  EXPECT_EQ(box.rank_count(), 3U);
  const auto joined = [&](const char* a, const char* b) {
    return !box.links_between(box.find_node(a), box.find_node(b)).empty();
  };
  EXPECT_TRUE(joined("gpu0", "gpu1"));
  EXPECT_TRUE(joined("gpu1", "gpu2"));
  EXPECT_FALSE(joined("gpu0", "gpu2"));  // Its weight is that of two links.

  // Links inside a package that the driver does not name.
  std::string unnamed = tables;
  unnamed.replace(unnamed.find("XGMI XGMI\n0000:0c:00.0 XGMI SELF"), 9, "XGMI UNKNOWN");
  EXPECT_EQ(refusal(unnamed), "");

  // What `amd-smi xgmi` prints below it is of other things.
  const auto both = import_topology(
      std::vector<ImportFile>{{"amd.txt", tables + "XGMI LINK STATUS:\n       bdf           GPU0  GPU1  GPU2\n"
                                                   "GPU0   0000:03:00.0  SELF  U  U\n"}},
      {.preset = "mi300x", .name = "box"});
  EXPECT_TRUE(both) << both.error().message;

  const auto cut = import_topology(
      std::vector<ImportFile>{{"amd.txt", tables.substr(0, tables.find("0000:22:00.0 XGMI XGMI SELF"))}},
      {.preset = "mi300x", .name = "box"});
  ASSERT_FALSE(cut);
  EXPECT_NE(cut.error().message.find("amd.txt:1:1"), std::string::npos) << cut.error().message;
  EXPECT_EQ(cut.error().help, "copy all that `amd-smi topology` prints");
}

/// JSON of ROCm 6.3 and later: a list of links per GPU. `hidden` keys are left out, as options of the tool do.
std::string links_json(const std::vector<std::vector<std::string>>& types, const std::string& hidden = "") {
  std::string json = "[\n";
  for (std::size_t from = 0; from < types.size(); ++from) {
    json += "    {\n        \"gpu\": " + std::to_string(from) + ",\n        \"bdf\": \"0000:" + std::to_string(from) +
            "1:00.0\",\n        \"links\": [\n";
    for (std::size_t to = 0; to < types.size(); ++to) {
      const std::string& type = types[from][to];
      const bool is_far = type == "XGMI2";
      json += "            {\n                \"gpu\": " + std::to_string(to);
      const auto add = [&](const std::string& key, const std::string& value) {
        if (hidden.find(key) == std::string::npos) json += ",\n                \"" + key + "\": " + value;
      };
      add("bdf", "\"0000:" + std::to_string(to) + "1:00.0\"");
      add("weight", from == to ? "0" : type == "PCIE" ? "40" : is_far ? "30" : "15");
      add("link_status", "\"ENABLED\"");
      add("link_type", "\"" + type.substr(0, 4) + "\"");
      add("num_hops", from == to ? "0" : type == "PCIE" ? "2" : "1");
      add("bandwidth", from == to ? "\"N/A\"" : "\"50000-100000\"");
      add("atomics", "\"64,32\"");
      json += "\n            }" + std::string(to + 1 < types.size() ? "," : "") + "\n";
    }
    json += "        ]\n    }" + std::string(from + 1 < types.size() ? "," : "") + "\n";
  }
  return json + "]\n";
}

const std::vector<std::vector<std::string>> three = {
    {"SELF", "XGMI", "XGMI2"}, {"XGMI", "SELF", "XGMI"}, {"XGMI2", "XGMI", "SELF"}};

TEST(AmdSmi, JsonOfLinks) {
  const ImportedTopology imported = import_good({links_json(three)}, {.preset = "mi300x"});
  EXPECT_EQ(imported.topology.rank_count(), 3U);
  EXPECT_EQ(links(imported.topology, "gpu0", "gpu1"), "1 x 64 GB/s xgmi");
  EXPECT_EQ(links(imported.topology, "gpu2", "gpu1"), "1 x 64 GB/s xgmi");
  EXPECT_EQ(links(imported.topology, "gpu0", "gpu2"), "");  // Its weight is that of two links.
  // A shell's prompt, a warning before and another command behind it; the model in the report around it.
  const std::string pasted = "root@node:~# amd-smi topology --json\n[WARN] user is not in group render\n" +
                             links_json(three) +
                             "root@node:~# python3 env.py\n  GPU: AMD Instinct MI300X (gfx942:sramecc+)\n";
  const ImportedTopology named = import_good({pasted});
  EXPECT_EQ(links(named.topology, "gpu0", "gpu1"), "1 x 64 GB/s xgmi");
  EXPECT_EQ(links(named.topology, "gpu0", "gpu2"), "");
  std::string tagged = "[1,0]<stdout>:" + links_json(three);
  for (std::size_t at = 0; (at = tagged.find('\n', at)) != std::string::npos; ++at)
    tagged.insert(at + 1, "[1,0]<stdout>:");
  EXPECT_EQ(import_good({tagged}).topology.rank_count(), 3U);
  // Without weights xGMI of one hop counts, and that is said; without hops weights are enough.
  const ImportedTopology types = import_good({links_json(three, "weight num_hops bandwidth")}, {.preset = "mi300x"});
  EXPECT_EQ(links(types.topology, "gpu0", "gpu2"), "1 x 64 GB/s xgmi");
  EXPECT_NE(test::codes(types).find("I104"), std::string::npos);
  EXPECT_EQ(links(import_good({links_json(three, "num_hops")}, {.preset = "mi300x"}).topology, "gpu0", "gpu2"), "");
  // PCIe alone joins no GPUs directly.
  EXPECT_EQ(links(import_good({links_json({{"SELF", "PCIE"}, {"PCIE", "SELF"}})}).topology, "gpu0", "gpu1"), "");
}

TEST(AmdSmi, JsonOfMapsBeforeRocm63) {
  const std::string text = R"([
    {"gpu": 0, "link_accessibility": {"gpu_0": "ENABLED", "gpu_1": "ENABLED"}, "weight": {"gpu_0": 0, "gpu_1": 15},
     "hops": {"gpu_0": 0, "gpu_1": 1}, "link_type": {"gpu_0": "SELF", "gpu_1": "XGMI"},
     "numa_bandwidth": {"gpu_0": "N/A", "gpu_1": "50000-200000"}},
    {"gpu": 1, "link_accessibility": {"gpu_0": true, "gpu_1": true}, "weight": {"gpu_0": 15, "gpu_1": 0},
     "hops": {"gpu_0": 1, "gpu_1": 0}, "link_type": {"gpu_0": "XGMI", "gpu_1": "SELF"},
     "numa_bandwidth": {"gpu_0": "50000-200000", "gpu_1": "N/A"}}
])";
  EXPECT_EQ(links(import_good({text}, {.preset = "mi250"}).topology, "gpu0", "gpu1"), "1 x 50 GB/s xgmi");
}

TEST(AmdSmi, JsonThatIsCutIsRefused) {
  const std::string json = links_json(three);
  EXPECT_NE(refusal(json.substr(0, json.size() / 2)), "");
  EXPECT_EQ(refusal(R"([{"gpu": 0, "links": [{"gpu": 0, "link_type": "SELF"}, {"gpu": 1, "link_type": "XGMI"}]},
 {"gpu": 1, "links": [{"gpu": 1, "link_type": "SELF"}]}])"),
            "a:2:2: there is no link_type from GPU 1 to GPU 0");
  EXPECT_EQ(refusal(links_json(three, "link_type weight") + "\"link_type\""),
            "a:2:5: there is no link_type from GPU 0 to GPU 0");
}

}  // namespace
}  // namespace espalier
