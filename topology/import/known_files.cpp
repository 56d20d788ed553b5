#include "topology/import/known_files.h"

#include <algorithm>
#include <array>

#include "topology/import/formats/formats.h"

namespace espalier {
namespace {

constexpr std::string_view not_read = "it is not read";
constexpr std::string_view other_measurement = "compare and diagnose read it";
constexpr std::string_view astra_network =
    "write it as that of the second: YAML with topology:, npus_count:, bandwidth: and latency: of each dimension";
constexpr std::string_view amd_topology =
    "copy all that amd-smi topology prints, its tables of hops and link types above all";
constexpr std::string_view without_csv = "run amd-smi topology without --csv";
constexpr std::string_view joins_hosts = "iblinkinfo and ibnetdiscover print what joins the hosts";
constexpr std::string_view nvidia_topology = "run nvidia-smi topo -m, and nvidia-smi nvlink -s beside it";
constexpr std::string_view pairs = "compare and diagnose read its matrices of GPU pairs";
constexpr std::string_view of_one_host =
    "it is of copies within one host, by no collective; p2pBandwidthLatencyTest and nvbandwidth are read";
constexpr std::string_view topograph = "import Slurm's topology.conf that topograph writes";
constexpr std::string_view measured = "compare, calibrate and report --measured read it";

struct Sign {
  std::string_view part;     ///< What the beginning holds.
  std::string_view another;  ///< And this; may be empty.
  KnownFile file;
};
constexpr KnownFile old_mscclpp{"a plan of MSCCL++'s older dialect",
                                "write it again with the DSL of MSCCL++ 0.8 or later, whose plans are read"};
constexpr std::array signs = {
    Sign{"<graphs", "", {"which rings and trees NCCL chose", "espalier import FILE MACHINE --collective NAME", true}},
    Sign{"<algo", "", {"a schedule of MSCCL", "espalier import FILE MACHINE", true}},
    Sign{"\"inputChunks\"", "\"threadblocks\"", old_mscclpp},
    Sign{"\"i_cids\"", "\"threadblocks\"", old_mscclpp},
    Sign{"\"gpus\"", "\"threadblocks\"", {"a plan of MSCCL++", "espalier import FILE MACHINE", true}},
    Sign{
        "NCCL INFO ",
        "",
        {"a log of NCCL",
         "espalier import FILE MACHINE --collective NAME has its rings; NCCL_TOPO_DUMP_FILE writes the machine", true}},
    Sign{"num_ranks ",
         "rank ",
         {"a schedule in GOAL", "a scenario runs it: training: {trace: FILE} (docs/scenarios.md)"}},
    Sign{"\"espalier_schedule\"", "", {"a plan", "espalier verify, simulate and run read it"}},
    Sign{"# nThread", "minBytes", {"what nccl-tests printed", measured, false, true}},
    Sign{"out-of-place", "busbw", {"what nccl-tests printed", measured, false, true}},
    Sign{"float     sum ", "", {"what nccl-tests printed", measured, false, true}},
    Sign{"\"minimum_bytes\"", "\"iterations\"", {"what nccl-tests printed", measured, false, true}},
    Sign{"Time, us", "Bandwidth, GB/s", {"what ucc_perftest printed", not_read}},
    Sign{"#iterations", "BW average[", {"what perftest printed", other_measurement}},
    Sign{"#iterations", "t_typical[usec]", {"what perftest printed", other_measurement}},
    Sign{"GPU Bandwidth Latency Test]", "", {"what p2pBandwidthLatencyTest printed", pairs}},
    Sign{"nvbandwidth Version", "", {"what nvbandwidth printed", pairs}},
    Sign{"[CUDA Bandwidth Test]", "", {"what CUDA's sample bandwidthTest printed", of_one_host}},
    Sign{"RocmBandwidthTest", "", {"what rocm-bandwidth-test printed", of_one_host}},
    Sign{"TransferBench v", "", {"what TransferBench printed", of_one_host}},
    Sign{"Network Tests v", "random ring", {"what GPCNeT printed", not_read}},
    Sign{"# OSU ", "", {"what the OSU benchmarks printed", other_measurement}},
    Sign{"Intel(R) MPI Benchmarks", "", {"what the Intel MPI Benchmarks printed", other_measurement}},
    Sign{"#bytes #repetitions", "", {"what the Intel MPI Benchmarks printed", other_measurement}},
    Sign{" - SW ",
         "( '",
         {"what ibnetdiscover -p printed", "ibnetdiscover without -p prints it in a form that is read"}},
    Sign{"Ca\t: 0x", "ports", {"what ibhosts printed", "ibnetdiscover prints what joins the hosts"}},
    Sign{"Switch\t: 0x", "ports", {"what ibswitches printed", "ibnetdiscover prints what joins the switches"}},
    Sign{"CA type:", "Port GUID:", {"what ibstat printed", joins_hosts}},
    Sign{"Infiniband device '", "link_layer:", {"what ibstatus printed", joins_hosts}},
    Sign{" ==> ", "mlx", {"what ibdev2netdev printed", joins_hosts}},
    Sign{"hca_id:", "port_lid:", {"what ibv_devinfo printed", joins_hosts}},
    Sign{"Port counters: ", "PortXmitData", {"what perfquery printed", joins_hosts}},
    Sign{"LINK TYPE TABLE", "", {"what amd-smi topology printed", amd_topology}},
    Sign{"WEIGHT TABLE", "", {"what amd-smi topology printed", amd_topology}},
    Sign{"HOPS TABLE", "", {"what amd-smi topology printed", amd_topology}},
    Sign{"ACCESS TABLE", "", {"what amd-smi topology printed", amd_topology}},
    Sign{"LINK METRIC TABLE", "", {"what amd-smi xgmi printed", "run amd-smi topology"}},
    Sign{"XGMI LINK STATUS", "", {"what amd-smi xgmi printed", "run amd-smi topology"}},
    Sign{"\"link_metrics\"", "\"link_type\"", {"what amd-smi xgmi printed", "run amd-smi topology"}},
    Sign{"link_accessibility_gpu", "", {"what amd-smi topology printed as CSV", without_csv}},
    Sign{"gpu,gpu_0", "", {"what amd-smi topology printed as CSV", without_csv}},
    Sign{"HSA System Attributes", "", {"what rocminfo printed", "run rocm-smi --showtopo, or amd-smi topology"}},
    Sign{"SystemGUID:", "NodeGUID:", {"what ibdiagnet wrote", joins_hosts}},
    Sign{"generated by IBDIAG", "", {"what ibdiagnet wrote", joins_hosts}},
    Sign{"LLDP neighbors:",
         "",
         {"what lldpctl printed", "write the network as YAML (docs/topology.md) or as DOT with bandwidth="}},
    Sign{"NvLink Link Status", "", {"what dcgmi printed", nvidia_topology}},
    Sign{"Topology Information", "GPU ID:", {"what dcgmi printed", nvidia_topology}},
    Sign{"(Topology) ", "DRM devices", {"what rocm-smi printed as JSON", "run rocm-smi --showtopo without --json"}},
    Sign{"ROCm System Management Interface", "", {"what rocm-smi printed", "run rocm-smi --showtopo"}},
    Sign{"| NVIDIA-SMI ", "", {"what nvidia-smi printed", nvidia_topology}},
    Sign{"NVSMI LOG", "", {"what nvidia-smi -q printed", nvidia_topology}},
    Sign{"GPU 0: ", "(UUID: GPU-", {"what nvidia-smi -L printed", nvidia_topology}},
    Sign{"Package L#", "", {"what lstopo drew", "run lstopo of.xml"}},
    Sign{"Socket L#", "", {"what lstopo drew", "run lstopo of.xml"}},
    Sign{"available: ",
         "node distances:",
         {"what numactl -H printed", "run lstopo of.xml, or espalier topo detect there"}},
    Sign{"PCI bridge: ", "3D controller: ", {"what lspci printed", "run lstopo of.xml, or espalier topo detect there"}},
    Sign{"\"coll_perf\"", "\"header\"", {"a record of NCCL's inspector", other_measurement}},
    Sign{"nccl_bus_bandwidth_gbs{", "", {"a record of NCCL's inspector", other_measurement}},
    Sign{"\"cat\": \"GROUP_API\"", "", {"what NCCL's example profiler printed", not_read}},
    Sign{"\"schemaVersion\"",
         "",
         {"a trace of the PyTorch profiler", "a scenario runs it: training: {trace: NAME} for NAME.0.json, ..."}},
    Sign{"\"traceEvents\"", "", {"a timeline", "compare reads timelines of simulate and run", false, true}},
    Sign{"\"pg_config\"", "", {"a dump of PyTorch's flight recorder", other_measurement}},
    Sign{"\"topologies-per-dim\"", "", {"ASTRA-sim's network file of its first version", astra_network}},
    Sign{"\"units-count\"", "\"link-latency\"", {"ASTRA-sim's network file of its first version", astra_network}},
    Sign{"\"topology-name\"", "\"dimensions-count\"", {"ASTRA-sim's network file of its first version", astra_network}},
    Sign{"\"logical-dims\"",
         "",
         {"ASTRA-sim's dimensions for ns-3", "import its analytical network file (npus_count:)"}},
    Sign{"-implementation",
         "\"scheduling-policy\"",
         {"a system file of ASTRA-sim, which chooses among its algorithms", "import its network file (npus_count:)"}},
    Sign{"\"scheduling-policy\"", "", {"a system file of ASTRA-sim", "import its network file (npus_count:)"}},
    Sign{"\"memory-type\"", "", {"a memory file of ASTRA-sim", "import its network file (npus_count:)"}},
    Sign{"Downlink_speed_Gbps", "", {"a topology of htsim", not_read}},
    Sign{"<tree", "root=", {"trees of ForestColl", not_read}},
    Sign{"\"intranode_sketch\"", "", {"a sketch of TACCL", not_read}},
    Sign{"\"gpus_per_node\"", "\"alpha\"", {"a topology of TACCL", not_read}},
    Sign{"collective_type,min_bytes", "", {"a configuration of NCCL's tuner", "espalier tune --nccl-tuner writes one"}},
    Sign{"collective,size_bytes,algorithm", "", {"a table of NCCL's tuner", not_read}},
    Sign{"HYBRID_", "", {"a workload of SimAI", "a training scenario says the same (docs/scenarios.md)"}},
    Sign{"allreduce,:", "", {"a table of bandwidths of SimAI", not_read}},
    Sign{"RingName=", "Nodes=", {"Slurm's topology of rings", not_read}},
    Sign{"spine-1", "switches:", {"a model of topograph", topograph}},
    Sign{"switches:\n", "\nblocks:\n", {"a model of topograph", topograph}},
    Sign{"\"compounded_links\"", "", {"what NetQ knows of a network", topograph}},
    Sign{"ENABLE_QCN", "FLOW_FILE", {"a configuration of ns-3 for SimAI", "import the topology file beside it"}},
    Sign{"Switch\t", "\nHca\t", {"a network for ibsim", "run ibnetdiscover under it"}},
};

/// Chakra traces begin with the length of their metadata, a number of seven bits a byte, whose first field is a version
/// (tag 0x0a) or a named attribute (tag 0x12, in it the name by tag 0x0a).
/// Source: mlcommons/chakra, schema/protobuf/et_def.proto.
bool is_chakra(std::string_view text) {
  if (text.starts_with("\x1f\x8b")) return true;
  constexpr std::size_t longest_length = 4;
  std::size_t at = 0;
  while (at < std::min(longest_length, text.size()) && static_cast<unsigned char>(text[at]) >= 0x80U) ++at;
  const std::string_view metadata = text.substr(std::min(at + 1, text.size()));
  constexpr std::size_t shortest = 6;
  if (metadata.size() < shortest) return false;
  if (metadata[0] == '\x12') {
    const auto named = static_cast<std::size_t>(metadata[3]);
    return metadata[2] == '\x0a' && named > 0 && named < metadata.size() - 4 &&
           std::ranges::all_of(metadata.substr(4, named),
                               [](char letter) { return letter == '_' || (letter >= 'a' && letter <= 'z'); });
  }
  return metadata[0] == '\x0a' && static_cast<unsigned char>(metadata[1]) < 0x20U &&
         std::ranges::all_of(metadata.substr(2, 3),
                             [](char letter) { return letter == '.' || (letter >= '0' && letter <= '9'); });
}

}  // namespace

std::optional<KnownFile> recognise_file(std::string_view text) {
  if (is_chakra(text))
    return KnownFile{"a Chakra trace", "a scenario runs it: training: {trace: NAME} for NAME.0.et, ..."};
  constexpr std::string_view compiled_goal("\x7f\x10\0\0\0\0\0\0", 8);  // 4223, as LogGOPSim's txt2bin begins.
  if (text.starts_with(compiled_goal)) {
    return KnownFile{"a compiled schedule in GOAL",
                     "a scenario runs it under a name that ends in .bin: training: {trace: FILE} (docs/scenarios.md)"};
  }
  const std::string_view beginning = text.substr(0, sniffed_bytes);
  for (const Sign& sign : signs) {
    if (beginning.find(sign.part) != std::string_view::npos && beginning.find(sign.another) != std::string_view::npos) {
      return sign.file;
    }
  }
  return std::nullopt;
}

}  // namespace espalier
