#pragma once

// Tested by: python/tests/torch_backend.py

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "python/torch/device_communicator.h"
#include "python/torch/device_stage.h"
#include "python/torch/mailroom.h"
#include "python/torch/page_allocator.h"
#include "python/torch/store_meeting.h"
#include "python/torch/tensor_elements.h"

namespace espalier::python {

/// What the environment says of a backend's calls (docs/torch.md).
struct BackendSettings {
  std::string transport = "auto";
  std::string algorithm = "auto";
  std::string topology;
  struct Plan {
    std::string path;
    std::int64_t least = 0;
    std::int64_t most = -1;
  };
  std::vector<Plan> plans;
  DeviceTensors device_tensors = DeviceTensors::automatic;
};

/// How the jobs of a group are made: the group's own, and those of its messages.
struct JobTerms {
  Engine& engine;
  c10::intrusive_ptr<c10d::Store> store;
  std::chrono::milliseconds timeout{};
  BackendSettings settings;
  std::string session;  ///< Of the group's own job.

  struct Members {
    std::string name;  ///< Of the job, within the group.
    std::uint32_t rank = 0;
    std::uint32_t world = 1;
    bool is_pair = false;  ///< Of messages: topology, plans and algorithm are for the group's own job.
    bool is_whole_job = false;
  };
  /// Joins; collective. Throws std::runtime_error where it fails.
  [[nodiscard]] Meeting::Joined meet(const Members& members, const std::atomic<bool>* is_over = nullptr,
                                     Owned<EngineGpu> gpu = nullptr) const;
};

/// The jobs of a group's collectives, for whoever ends them. Thread-safe.
class GroupJobs {
 public:
  explicit GroupJobs(Owned<EngineJob> host) : host_(std::move(host)) {}
  [[nodiscard]] EngineJob& host() const { return *host_; }
  void add(std::shared_ptr<EngineJob> on_devices);
  /// Ends what is under way on all ranks, and what comes.
  void abort(const std::string& reason);

 private:
  const Owned<EngineJob> host_;
  std::mutex mutex_;
  std::shared_ptr<EngineJob> on_devices_;
  std::optional<std::string> aborted_;
};

/// The c10d backend `espalier`: the collectives of a process group, by the engine, on the CPU's memory or on GPUs
/// (device_communicator.h); tensors of other devices go through host memory (device_stage.h). A group is a job
/// of its own, whose ranks meet through the store. Its collectives run one after the other on a thread of the group, in
/// the order of the calls, which all members make alike; sends and receives go beside them.
///
/// Calls return at once, with a Work. Tensors need not be contiguous. What is wrong with a call's tensors throws
/// std::invalid_argument before anything is sent; what fails later is in the Work, as std::runtime_error.
class ProcessGroupEspalier final : public BackendBase {
 public:
  using Work = c10::intrusive_ptr<c10d::Work>;
  using Tensors = std::vector<at::Tensor>;
  using Lists = std::vector<Tensors>;

  /// Joins the group's job; collective. `is_whole_job`: the group of all ranks.
  ProcessGroupEspalier(Engine& engine, c10::intrusive_ptr<c10d::Store> store, int rank, int size,
                       std::chrono::milliseconds timeout, const BackendSettings& settings, bool is_whole_job);
  ~ProcessGroupEspalier() override;

  const std::string getBackendName() const override { return "espalier"; }

  Work broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  Work allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  Work allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override;
  Work reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  Work allgather(Lists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
  Work _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override;
  // What 1.13 does not know overrides nothing there.
  Work allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                       const c10d::AllgatherOptions& options) ESPALIER_SINCE_2;
  Work reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                       const c10d::ReduceScatterOptions& options) ESPALIER_SINCE_2;
  Work allgather_coalesced(Lists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
  Work gather(Lists& outputs, Tensors& inputs, const c10d::GatherOptions& options) override;
  Work scatter(Tensors& outputs, Lists& inputs, const c10d::ScatterOptions& options) override;
  Work reduce_scatter(Tensors& outputs, Lists& inputs, const c10d::ReduceScatterOptions& options) override;
  Work _reduce_scatter_base(at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options) override;
  Work alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& output_splits,
                     std::vector<std::int64_t>& input_splits, const c10d::AllToAllOptions& options) override;
  Work alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) override;
  Work send(Tensors& tensors, int to, int tag) override;
  Work recv(Tensors& tensors, int from, int tag) override;
  Work recvAnysource(Tensors& tensors, int tag) override;
  Work barrier(const c10d::BarrierOptions& options) override;
  /// By the store: works also while collectives are stuck, and names the ranks that did not come.
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override;
  void setSequenceNumberForGroup() override {}
  std::uint64_t getSequenceNumberForGroup() override;

  // Later versions call these; each overrides where there is one.
  /// How long calls are waited for that do not say how long.
  void setTimeout(std::chrono::milliseconds timeout);
  void abort() { abort_all("its process group was aborted"); }
  void shutdown() { leave(); }
  bool supportsSplitting() const { return true; }
  /// A group of some members, by their ranks in this one; of those alone. Collective among them.
  c10::intrusive_ptr<BackendBase> split(const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
                                        const c10::intrusive_ptr<BackendBase::Options>& options);
  c10::intrusive_ptr<BackendBase::Options> getBackendOptions();

  /// How each rank is reached: "shm", "tcp" or "verbs", by rank.
  [[nodiscard]] std::vector<std::string> transports() const;
  /// Ends what is under way on all ranks.
  void abort_all(const std::string& reason);
  /// Ends the calls that were made, and leaves. No call may follow.
  void leave();
  /// As `leave`, of all groups of this process that are still there; a reason ends what is under way on all ranks.
  static void leave_all(const std::string& reason);

 private:
  /// What the group's thread does for a call; the stage says where the tensors lie for it.
  using CarryOut = std::function<void(DeviceStage&)>;

  struct Call {
    c10::intrusive_ptr<GroupWork> work;
    std::shared_ptr<DeviceStage> stage;
    CarryOut carry_out;
  };
  /// What a call takes and gives, for its Work.
  struct Kind {
    c10d::OpType type = c10d::OpType::UNKNOWN;
    const char* title = "";
    std::chrono::milliseconds timeout = c10d::kUnsetTimeout;
  };

  c10::intrusive_ptr<GroupWork> make_work(const Kind& kind, const Tensors& inputs, Outputs outputs,
                                          std::function<void(const std::string&)> give_up);
  c10::intrusive_ptr<GroupWork> make_message(c10d::OpType type, const char* title, const Tensors& tensors,
                                             std::optional<std::uint32_t> peer);
  Work start(const Kind& kind, const Tensors& inputs, Outputs outputs, std::shared_ptr<DeviceStage> stage,
             CarryOut carry_out);
  /// One of the group's threads, at any time one is in charge. What waits for a call in what a future calls back would
  /// wait for the thread that it is on: a call made there puts another in charge.
  struct Worker {
    std::thread thread;
    bool has_ended = false;
  };
  void put_in_charge();
  void work_off(Worker& self);

  // Of the group's thread.
  /// Where the engine works for a call on tensors of this device; null for the host.
  DeviceCommunicator* on_device(c10::Device device);
  void join_on_devices(c10::Device device);
  /// A collective on dense tensors, undefined where this rank has none; their pointers are set here.
  void run(EngineCall call, const at::Tensor& send, const at::Tensor& receive);
  /// Memory for calls on the tensor's device, which keep it for the next.
  at::Tensor scratch(std::size_t bytes, const at::Tensor& like);
  /// `type`: of the elements, alike on all ranks; what the engine has no type for goes as bytes.
  void move_now(EngineCollective kind, const at::Tensor& send, const at::Tensor& receive, at::ScalarType type,
                std::size_t part_bytes, std::uint32_t root = 0);
  void gather_now(EngineCollective kind, const Tensors& outputs, const Tensors& inputs, std::uint32_t root);
  void scatter_now(const at::Tensor& output, const Tensors& parts, std::uint32_t root);
  void all_reduce_now(const char* call, const at::Tensor& tensor, const c10d::ReduceOp& operation);
  void reduce_now(const at::Tensor& tensor, const c10d::ReduceOp& operation, std::uint32_t root);
  void reduce_scatter_now(const char* call, const at::Tensor& output, const at::Tensor& flat,
                          const c10d::ReduceOp& operation);
  void exchange_now(const Tensors& outputs, const Tensors& inputs);
  void add_sparse_now(const at::Tensor& tensor);

  std::uint32_t checked_root(const char* call, std::int64_t root) const;
  std::uint32_t checked_peer(const char* call, int peer) const;
  [[nodiscard]] std::size_t members() const { return static_cast<std::size_t>(getSize()); }

  JobTerms terms_;
  std::shared_ptr<GroupJobs> jobs_;        ///< Works hold it weakly, to end what they are tired of waiting for.
  std::unique_ptr<SharedTensors> shared_;  ///< Of the group's thread; null where no rank is reached by shared memory.
  std::vector<std::string> transports_;
  std::shared_ptr<Mailroom> mailroom_;              ///< As above.
  bool has_looked_for_devices_ = false;             ///< Of the group's thread, as what follows.
  std::unique_ptr<DeviceCommunicator> on_devices_;  ///< Null where no call is carried out on devices.
  DeviceStage* stage_ = nullptr;                    ///< Of the call that is carried out.
  DeviceCommunicator* in_use_ = nullptr;            ///< By that call.
  at::Tensor scratch_;
  std::uint64_t monitored_barriers_ = 0;
  bool is_whole_job_;
  std::atomic<std::int64_t> messages_ = 0;                     ///< That were started.
  std::atomic<std::chrono::milliseconds> limit_ = kNoTimeout;  ///< Of waiting for calls.

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Call> calls_;
  std::uint64_t sequence_ = 0;
  bool is_ending_ = false;
  std::list<Worker> workers_;  ///< The last is in charge.
};

}  // namespace espalier::python
