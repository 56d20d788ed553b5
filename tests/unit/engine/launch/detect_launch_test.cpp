#include "engine/launch/detect_launch.h"

#include <gtest/gtest.h>

#include "engine/launch/endpoint.h"

namespace espalier::engine::launch {
namespace {

std::string message_of(const rendezvous::Environment& environment, const LaunchFlags& flags = {}) {
  const auto info = detect_launch(environment, flags);
  return info ? std::string("detected ") + std::string(to_string(info->launcher)) : info.error().message;
}

TEST(DetectLaunch, NobodyLaunchedAPlainProcess) {
  const auto info = detect_launch({{"HOME", "/"}, {"MASTER_PORT", "not looked at"}});
  ASSERT_TRUE(info.has_value());
  EXPECT_FALSE(info->is_launched());
  EXPECT_EQ(info->world, 1U);
}

TEST(DetectLaunch, FlagsWinOverEverything) {
  const rendezvous::Environment mpi{{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"RANK", "nonsense"}};
  const auto info = detect_launch(mpi, {3, 4, "node7:1234"});
  ASSERT_TRUE(info.has_value()) << info.error().message;
  EXPECT_EQ(info->launcher, Launcher::flags);
  EXPECT_EQ(info->rank, 3U);
  EXPECT_EQ(info->world, 4U);
  EXPECT_EQ(info->host, "node7");
  EXPECT_EQ(info->port, 1234);
}

TEST(DetectLaunch, HalfOfTheFlagsIsAnError) {
  EXPECT_EQ(message_of({}, {1, std::nullopt, {}}), "--rank is given, but --world is not");
  EXPECT_EQ(message_of({}, {std::nullopt, 2, {}}), "--world is given, but --rank is not");
  EXPECT_EQ(message_of({}, {2, 2, {}}), "--rank 2 is not below --world 2");
  EXPECT_EQ(message_of({}, {0, 2, "a b"}), "--rendezvous: 'a b' is no HOST:PORT");
}

TEST(DetectLaunch, OpenMpiOnOneMachine) {
  const auto info = detect_launch({{"OMPI_COMM_WORLD_RANK", "3"},
                                   {"OMPI_COMM_WORLD_SIZE", "8"},
                                   {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                                   {"OMPI_COMM_WORLD_LOCAL_SIZE", "8"},
                                   {"PMIX_NAMESPACE", "1234.1"},
                                   {"PMIX_RANK", "3"}});
  ASSERT_TRUE(info.has_value()) << info.error().message;
  EXPECT_EQ(info->launcher, Launcher::open_mpi);
  EXPECT_EQ(info->rank, 3U);
  EXPECT_EQ(info->world, 8U);
  EXPECT_EQ(info->local_rank, 3U);
  EXPECT_EQ(info->host, "127.0.0.1");
  EXPECT_EQ(info->job, "mpirun 1234.1");
  EXPECT_GE(info->port, 20000);
  EXPECT_LT(info->port, 30000);
}

TEST(DetectLaunch, OpenMpiOnSeveralMachinesNeedsAPlaceToMeet) {
  rendezvous::Environment environment{{"OMPI_COMM_WORLD_RANK", "3"},
                                      {"OMPI_COMM_WORLD_SIZE", "8"},
                                      {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}};
  EXPECT_EQ(message_of(environment), "mpirun started ranks on several machines, but nothing says where rank 0 is");
  EXPECT_EQ(detect_launch(environment, {{}, {}, "node0:99"})->host, "node0");
  environment["ESPALIER_RENDEZVOUS"] = "[fe80::1%eth0]:77";
  EXPECT_EQ(detect_launch(environment)->host, "fe80::1%eth0");
  EXPECT_EQ(detect_launch(environment)->port, 77);
}

TEST(DetectLaunch, Pmi) {
  const auto info = detect_launch({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}});
  ASSERT_TRUE(info.has_value()) << info.error().message;
  EXPECT_EQ(info->launcher, Launcher::pmi);
  EXPECT_EQ(info->local_rank, 1U);
  EXPECT_EQ(info->port, default_rendezvous_port);
  EXPECT_EQ(message_of({{"PMIX_RANK", "1"}}), "PMIX_RANK is set, but no variable says how many ranks there are");
}

TEST(DetectLaunch, TorchrunMeetsBesideItsStore) {
  const auto info = detect_launch({{"RANK", "1"},
                                   {"WORLD_SIZE", "16"},
                                   {"LOCAL_RANK", "1"},
                                   {"LOCAL_WORLD_SIZE", "8"},
                                   {"MASTER_ADDR", "node0"},
                                   {"MASTER_PORT", "29500"},
                                   {"TORCHELASTIC_RUN_ID", "run"},
                                   {"TORCHELASTIC_RESTART_COUNT", "2"}});
  ASSERT_TRUE(info.has_value()) << info.error().message;
  EXPECT_EQ(info->launcher, Launcher::torchrun);
  EXPECT_EQ(info->host, "node0");
  EXPECT_EQ(info->port, 29501);
  EXPECT_EQ(info->job, "torchrun run.2");
}

TEST(DetectLaunch, TorchrunWithHalfOfItsSet) {
  EXPECT_EQ(message_of({{"RANK", "1"}}), "RANK is set, but WORLD_SIZE is not");
  EXPECT_EQ(message_of({{"WORLD_SIZE", "2"}}), "WORLD_SIZE is set, but RANK is not");
  EXPECT_EQ(message_of({{"RANK", "1"}, {"WORLD_SIZE", "2"}}), "RANK and WORLD_SIZE are set, but MASTER_ADDR is not");
  EXPECT_EQ(message_of({{"RANK", "2"}, {"WORLD_SIZE", "2"}}), "RANK is 2, which is not below WORLD_SIZE, 2");
  EXPECT_EQ(message_of({{"RANK", "-1"}, {"WORLD_SIZE", "2"}}), "RANK is '-1', which is no number");
  EXPECT_EQ(message_of({{"RANK", "1"}, {"WORLD_SIZE", "2x"}}), "WORLD_SIZE is '2x', which is no number");
  EXPECT_EQ(message_of({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "65535"}}),
            "MASTER_PORT is 65535, but the rendezvous needs the port above it");
}

TEST(DetectLaunch, SlurmMeetsOnItsFirstHost) {
  rendezvous::Environment environment{{"SLURM_PROCID", "5"},
                                      {"SLURM_NTASKS", "8"},
                                      {"SLURM_LOCALID", "1"},
                                      {"SLURM_JOB_ID", "42"},
                                      {"SLURM_STEP_ID", "0"},
                                      {"SLURM_STEP_NUM_NODES", "2"},
                                      {"SLURM_STEP_NODELIST", "node[07-09,12]"}};
  const auto info = detect_launch(environment);
  ASSERT_TRUE(info.has_value()) << info.error().message;
  EXPECT_EQ(info->launcher, Launcher::slurm);
  EXPECT_EQ(info->rank, 5U);
  EXPECT_EQ(info->local_rank, 1U);
  EXPECT_EQ(info->host, "node07");
  EXPECT_EQ(info->job, "srun 42.0");
  environment["SLURM_STEP_NUM_TASKS"] = "6";  // The step's own number wins over the job's.
  EXPECT_EQ(detect_launch(environment)->world, 6U);
  environment["SLURM_STEP_NUM_NODES"] = "1";
  EXPECT_EQ(detect_launch(environment)->host, "127.0.0.1");
  environment.erase("SLURM_STEP_ID");  // The shell of a batch script.
  EXPECT_FALSE(detect_launch(environment)->is_launched());
  EXPECT_EQ(message_of({{"SLURM_PROCID", "0"}}), "SLURM_PROCID is set, but SLURM_NTASKS is not");
}

TEST(DetectLaunch, MpirunInsideASlurmStepIsMpirun) {
  const auto info = detect_launch({{"OMPI_COMM_WORLD_RANK", "3"},
                                   {"OMPI_COMM_WORLD_SIZE", "4"},
                                   {"SLURM_PROCID", "0"},
                                   {"SLURM_NTASKS", "1"},
                                   {"SLURM_STEP_ID", "0"}});
  ASSERT_TRUE(info.has_value()) << info.error().message;
  EXPECT_EQ(info->launcher, Launcher::open_mpi);
}

TEST(DetectLaunch, ContradictionsNameBothSets) {
  const rendezvous::Environment both{{"OMPI_COMM_WORLD_RANK", "3"},
                                     {"OMPI_COMM_WORLD_SIZE", "4"},
                                     {"RANK", "0"},
                                     {"WORLD_SIZE", "4"},
                                     {"MASTER_ADDR", "a"}};
  EXPECT_EQ(message_of(both), "OMPI_COMM_WORLD_RANK=3 and OMPI_COMM_WORLD_SIZE=4 contradict RANK=0 and WORLD_SIZE=4");
  rendezvous::Environment agreeing = both;
  agreeing["RANK"] = "3";
  EXPECT_EQ(message_of(agreeing), "detected mpirun");
}

TEST(DetectLaunch, RanksOfALocalJobIgnoreWhatIsAroundThem) {
  const auto info = detect_launch({{"ESPALIER_RANK", "0"},
                                   {"ESPALIER_WORLD", "4"},
                                   {"ESPALIER_RENDEZVOUS", "127.0.0.1:4321"},
                                   {"ESPALIER_JOB", "local 1"},
                                   {"ESPALIER_LISTENER_FD", "5"},
                                   {"RANK", "7"},
                                   {"WORLD_SIZE", "9"},
                                   {"MASTER_PORT", "0"}});
  ASSERT_TRUE(info.has_value()) << info.error().message;
  EXPECT_EQ(info->launcher, Launcher::espalier);
  EXPECT_EQ(info->port, 4321);
  EXPECT_EQ(info->job, "local 1");
  EXPECT_EQ(info->listener_fd, 5);
}

TEST(DetectLaunch, AllRanksOfAJobDeriveOnePort) {
  rendezvous::Environment environment{
      {"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "0"}, {"PMIX_NAMESPACE", "77"}};
  const std::uint16_t port = detect_launch(environment)->port;
  environment["OMPI_COMM_WORLD_RANK"] = "1";
  EXPECT_EQ(detect_launch(environment)->port, port);
  environment["PMIX_NAMESPACE"] = "78";
  EXPECT_NE(detect_launch(environment)->port, port);
}

TEST(Endpoint, IsReadInAllItsForms) {
  EXPECT_EQ(parse_endpoint("node0:80").value(), (Endpoint{"node0", 80}));
  EXPECT_EQ(parse_endpoint("node0").value(), (Endpoint{"node0", std::nullopt}));
  EXPECT_EQ(parse_endpoint("10.0.0.1:65535").value(), (Endpoint{"10.0.0.1", 65535}));
  EXPECT_EQ(parse_endpoint("[::1]:80").value(), (Endpoint{"::1", 80}));
  EXPECT_EQ(parse_endpoint("[::1]").value(), (Endpoint{"::1", std::nullopt}));
  EXPECT_EQ(parse_endpoint("fe80::1%eth0").value(), (Endpoint{"fe80::1%eth0", std::nullopt}));
  for (const char* wrong : {"", ":80", "node0:", "node0:0", "node0:65536", "node0:8x", "node0:-1", "[::1", "[::1]80",
                            "[]:80", "http://node0", "no de"}) {
    EXPECT_FALSE(parse_endpoint(wrong).has_value()) << wrong;
  }
}

TEST(FirstHost, OfSlurmsLists) {
  EXPECT_EQ(first_host("node1"), "node1");
  EXPECT_EQ(first_host("node1,node2"), "node1");
  EXPECT_EQ(first_host("node[03-05,7],gpu1"), "node03");
  EXPECT_EQ(first_host("node[7,03-05]"), "node7");
  EXPECT_EQ(first_host("rack[1-2]node[5-9]-ib"), "rack1node5-ib");
  EXPECT_EQ(first_host("node["), "node");
  EXPECT_EQ(first_host(""), "");
}

}  // namespace
}  // namespace espalier::engine::launch
