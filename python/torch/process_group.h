#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
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
#include "python/torch/schedule_choice.h"
#include "python/torch/store_meeting.h"
#include "python/torch/tensor_elements.h"

namespace espalier::python {

/// How the jobs of a group are made: the group's own, and those of its messages.
struct JobTerms {
  c10::intrusive_ptr<c10d::Store> store;
  std::chrono::milliseconds timeout{};
  BackendSettings settings;

  /// Joins; collective. Throws std::runtime_error where it fails.
  [[nodiscard]] std::unique_ptr<Communicator> meet(const std::string& name, std::uint32_t rank, std::uint32_t world,
                                                   GroupSchedules schedules, const std::atomic<bool>* is_over,
                                                   std::unique_ptr<engine::Device> device = nullptr) const;
};

/// The jobs of a group's collectives, for whoever ends them. Thread-safe.
class GroupJobs {
 public:
  explicit GroupJobs(std::unique_ptr<Communicator> host) : host_(std::move(host)) {}
  [[nodiscard]] Communicator& host() const { return *host_; }
  void add(std::shared_ptr<Communicator> on_devices);
  /// Ends what is under way on all ranks, and what comes.
  void abort(const std::string& reason);

 private:
  const std::unique_ptr<Communicator> host_;
  std::mutex mutex_;
  std::shared_ptr<Communicator> on_devices_;
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
  ProcessGroupEspalier(c10::intrusive_ptr<c10d::Store> store, int rank, int size, std::chrono::milliseconds timeout,
                       const BackendSettings& settings, bool is_whole_job);
  ~ProcessGroupEspalier() override;

  const std::string getBackendName() const override { return "espalier"; }

  Work broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  Work allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  Work allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override;
  Work reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  Work allgather(Lists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
  Work _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override;
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
  void work_off();

  // Of the group's thread.
  /// Where the engine works for a call on tensors of this device; null for the host.
  DeviceCommunicator* on_device(c10::Device device);
  void join_on_devices(c10::Device device);
  /// A collective on dense tensors, undefined where this rank has none; their pointers are set here.
  void run(CallArguments arguments, const at::Tensor& send, const at::Tensor& receive);
  static void expect(const Result<void>& result);
  /// Memory for calls on the tensor's device, which keep it for the next.
  at::Tensor scratch(std::size_t bytes, const at::Tensor& like);
  void move_now(CollectiveKind kind, const at::Tensor& send, const at::Tensor& receive, std::size_t part_bytes,
                std::uint32_t root = 0);
  void gather_now(CollectiveKind kind, const Tensors& outputs, const Tensors& inputs, std::uint32_t root);
  void scatter_now(const at::Tensor& output, const Tensors& parts, std::uint32_t root);
  void all_reduce_now(const char* call, const at::Tensor& tensor, const c10d::ReduceOp& operation);
  void reduce_now(const at::Tensor& tensor, const c10d::ReduceOp& operation, std::uint32_t root);
  void reduce_scatter_now(const char* call, const at::Tensor& output, const at::Tensor& flat,
                          const c10d::ReduceOp& operation);
  void exchange_now(const Tensors& outputs, const Tensors& inputs);
  void send_and_receive(const Tensors& received, const Tensors& sent);
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

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Call> calls_;
  std::uint64_t sequence_ = 0;
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace espalier::python
