#include "topology/import/formats/gpu_names.h"

#include "tests/support/imported.h"

namespace espalier {
namespace {

using test::import_good;
using test::links;

using Names = std::map<std::int64_t, std::string>;

const std::string two_gpus =
    "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV4\t0-9\t0\nGPU1\tNV4\t X \t0-9\t0\n";

TEST(GpuNames, AreReadAsToolsPrintThem) {
  const std::string a100 = "NVIDIA A100-SXM4-80GB";
  EXPECT_EQ(gpu_names_in("GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1-2)\nGPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-3)\n"),
            (Names{{0, a100}, {1, a100}}));
  EXPECT_EQ(gpu_names_in("GPU models and configuration: GPU 0: NVIDIA H200\n"), (Names{{0, "NVIDIA H200"}}));
  EXPECT_EQ(gpu_names_in("GPU 0,1: NVIDIA GB200\nGPU 0,1 Compute Capability: 10.0\n"),
            (Names{{0, "NVIDIA GB200"}, {1, "NVIDIA GB200"}}));
  EXPECT_EQ(gpu_names_in("|   0  NVIDIA A100-SXM4-80GB          On  | 00000000:07:00.0 Off |                    0 |\n"
                         "| N/A   34C    P0              61W / 400W |      4MiB / 81920MiB |      0%      Default |\n"),
            (Names{{0, a100}}));
  EXPECT_EQ(gpu_names_in("#   Rank  0 Pid   1320 on node-1 device  3 [0x00] NVIDIA A100-SXM4-80GB\n"),
            (Names{{3, a100}}));
  EXPECT_EQ(gpu_names_in("Device: 1, NVIDIA RTX A6000, pciBusID: 4b, pciDeviceID: 0, pciDomainID:0\n"),
            (Names{{1, "NVIDIA RTX A6000"}}));
  EXPECT_EQ(gpu_names_in("Device 2: NVIDIA GH200 480GB (00000009:01:00)\n"), (Names{{2, "NVIDIA GH200 480GB"}}));
  // nvidia-smi's table cuts names that others print whole.
  const std::string cut = "|   0  Tesla V100-SXM2...  Off  | 00000000:1B:00.0 Off |\n",
                    whole = "GPU 0: Tesla V100-SXM2-16GB\n";
  EXPECT_EQ(gpu_names_in(cut + whole), (Names{{0, "Tesla V100-SXM2-16GB"}}));
  EXPECT_EQ(gpu_names_in(whole + cut), (Names{{0, "Tesla V100-SXM2-16GB"}}));
  // Two machines below each other.
  EXPECT_EQ(gpu_names_in("GPU 0: NVIDIA H100 PCIe\nGPU 0: NVIDIA L40S\nGPU 1: NVIDIA L40S\n"),
            (Names{{1, "NVIDIA L40S"}}));
  EXPECT_EQ(gpu_names_in("GPU 0: fine\n\tLink 0: 25 GB/s\n|   0  N/A  N/A  1234  G  /usr/lib/xorg/Xorg\n"), Names{});
}

TEST(GpuNames, TellTheRateAndTheProfileOfAMatrix) {
  const ImportedTopology plain = import_good({two_gpus});
  EXPECT_EQ(links(plain.topology, "gpu0", "gpu1"), "4 x 25 GB/s nvlink");
  EXPECT_EQ(plain.profile, "");
  // Four NVLinks of an A40 or RTX A6000 are 112.5 GB/s both ways, 14.0625 each way of each.
  const ImportedTopology a6000 =
      import_good({"GPU 0: NVIDIA RTX A6000 (UUID: GPU-1)\nGPU 1: NVIDIA RTX A6000 (UUID: GPU-2)\n" + two_gpus});
  EXPECT_EQ(links(a6000.topology, "gpu0", "gpu1"), "4 x 14062.5 MB/s nvlink");
  EXPECT_EQ(a6000.profile, "nccl-ampere");
  // Below the matrix as well, as reports have it.
  const ImportedTopology h100 = import_good({two_gpus + "\n#  Rank  0 Group  0 Pid 7 on a device  0 [0x8d] NVIDIA H100 "
                                                        "80GB HBM3\n#  Rank  1 Group  0 Pid 8 on a device  1 [0x91] "
                                                        "NVIDIA H100 80GB HBM3\n"});
  EXPECT_EQ(h100.profile, "nccl-hopper");
  EXPECT_EQ(h100.gpu, "h100-sxm");
  // Blackwell's links have 50 GB/s, also where the name alone tells it.
  EXPECT_EQ(links(import_good({"GPU 0,1: NVIDIA GB200\n" + two_gpus}).topology, "gpu0", "gpu1"), "4 x 50 GB/s nvlink");
  // A preset is asked for, and what was measured is known better.
  EXPECT_EQ(links(import_good({"GPU 0: NVIDIA H200\n" + two_gpus}, {.preset = "b200-sxm"}).topology, "gpu0", "gpu1"),
            "4 x 50 GB/s nvlink");
}

TEST(GpuNames, OfAmdTellTheRateOfXgmi) {
  const std::string table =
      "==== Link Type between two GPUs ====\n GPU0 GPU1\nGPU0 0 XGMI\nGPU1 XGMI 0\n==== Numa Nodes ====\n"
      "GPU[0] : (Topology) Numa Node: 0\nGPU[1] : (Topology) Numa Node: 0\n";
  EXPECT_EQ(links(import_good({table}).topology, "gpu0", "gpu1"), "1 x 50 GB/s xgmi");
  const ImportedTopology mi300 =
      import_good({"GPU models and configuration: AMD Instinct MI300X (gfx942:sramecc+:xnack-)\n" + table});
  EXPECT_EQ(links(mi300.topology, "gpu0", "gpu1"), "1 x 64 GB/s xgmi");
  EXPECT_EQ(mi300.profile, "rccl-mi300x");
  EXPECT_EQ(mi300.gpu, "mi300x");
  EXPECT_EQ(links(import_good({"AMD Radeon Graphics (gfx908)\n" + table}).topology, "gpu0", "gpu1"),
            "1 x 46 GB/s xgmi");
  EXPECT_EQ(links(import_good({"ARCH=gfx90a;gfx942\n" + table}).topology, "gpu0", "gpu1"), "1 x 50 GB/s xgmi");
  EXPECT_EQ(amd_gpu_in("AMD Instinct MI300X (gfx942)\nAMD Instinct MI250X (gfx90a)\n"), "");
}

}  // namespace
}  // namespace espalier
