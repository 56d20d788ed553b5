#include <espalier/communicator.h>
#include <espalier/planner.h>
#include <espalier/topology.h>
#include <espalier/transport.h>
#include <espalier/value.h>
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>

// A transport of one's own: ranks are threads of one process, and what they send each other lies in queues.
// own_transport [RANKS [PORT]] runs an all_reduce over it; ranks meet at that port.
namespace {

using namespace espalier;
using engine::StreamCall;

/// Group, source, destination, number of the stream.
using StreamKey = std::tuple<std::uint64_t, std::uint32_t, std::uint32_t, std::uint32_t>;

class Queues {
 public:
  using Message = std::vector<std::byte>;
  void push(const StreamKey& stream, Message message) {
    const std::lock_guard lock(mutex_);
    queues_[stream].push_back(std::move(message));
  }
  std::optional<Message> pop(const StreamKey& stream) {
    const std::lock_guard lock(mutex_);
    auto& queue = queues_[stream];
    if (queue.empty()) return std::nullopt;
    Message message = std::move(queue.front());
    queue.pop_front();
    return message;
  }

 private:
  std::mutex mutex_;
  std::map<StreamKey, std::deque<Message>> queues_;
};

/// What is posted has left at once, as it is copied.
class QueueSender final : public engine::Sender {
 public:
  QueueSender(Queues& queues, StreamKey key) : queues_(queues), key_(key) {}
  bool open(const StreamCall& call) override {
    call_ = &call;
    departed_ = 0;
    const auto* header = reinterpret_cast<const std::byte*>(call.header);
    queues_.push(key_, {header, header + sizeof(engine::CallHeader)});
    return true;
  }
  bool post(std::uint32_t index) override {
    const engine::Op& op = call_->op(index);
    Queues::Message message;
    message.reserve(static_cast<std::size_t>(op.bytes));
    for (std::uint32_t i = 0; i < op.piece_count; ++i) {
      const engine::Piece& piece = call_->pieces(op)[i];
      const std::byte* from = call_->buffers->at(piece.source);
      message.insert(message.end(), from, from + piece.length);
    }
    queues_.push(key_, std::move(message));
    departed_ = index + 1;
    return true;
  }
  std::uint32_t departed() override { return departed_; }
  void close() override {}
  bool is_settled() override { return true; }

 private:
  Queues& queues_;
  StreamKey key_;
  const StreamCall* call_ = nullptr;
  std::uint32_t departed_ = 0;
};

/// Shows each message to the executor, which copies or adds it.
class QueueReceiver final : public engine::Receiver {
 public:
  QueueReceiver(Queues& queues, StreamKey key) : queues_(queues), key_(key) {}
  bool open(const StreamCall& call) override {
    const auto header = queues_.pop(key_);
    if (!header) return false;
    engine::CallHeader theirs;
    std::copy_n(header->data(), sizeof(theirs), reinterpret_cast<std::byte*>(&theirs));
    if (!(theirs == *call.header)) {
      call.error->set({ErrorCode::invalid_input,
                       engine::describe_mismatch(std::get<2>(key_), *call.header, std::get<1>(key_), theirs),
                       {}});
      return false;
    }
    arrived_ = 0;
    return true;
  }
  bool places(std::uint32_t) const override { return false; }
  bool allow(std::uint32_t) override { return true; }
  std::uint32_t arrived() override { return arrived_; }
  bool is_ready(std::uint32_t index) override {
    if (index != arrived_) return false;
    if (!shown_) shown_ = queues_.pop(key_);
    return shown_.has_value();
  }
  const std::byte* source(const engine::Piece&, std::int64_t skipped) const override {
    return shown_->data() + skipped;
  }
  void release(std::uint32_t index) override {
    shown_.reset();
    arrived_ = index + 1;
  }
  void close() override {}

 private:
  Queues& queues_;
  StreamKey key_;
  std::optional<Queues::Message> shown_;
  std::uint32_t arrived_ = 0;
};

class QueueGroup final : public engine::GroupTransport {
 public:
  QueueGroup(Queues& queues, engine::GroupInfo info) : queues_(queues), info_(std::move(info)) {}
  std::uint32_t choose_stream(const Schedule&, const Transfer&) const override { return 0; }
  Bytes default_chunk() const override { return Bytes{65536}; }
  Result<std::unique_ptr<engine::Sender>> connect(std::uint32_t member, std::uint32_t stream,
                                                  std::chrono::steady_clock::time_point) override {
    return std::make_unique<QueueSender>(queues_,
                                         StreamKey{info_.id, info_.members[info_.self], info_.members[member], stream});
  }
  Result<std::unique_ptr<engine::Receiver>> accept(std::uint32_t member, std::uint32_t stream,
                                                   std::chrono::steady_clock::time_point) override {
    return std::make_unique<QueueReceiver>(
        queues_, StreamKey{info_.id, info_.members[member], info_.members[info_.self], stream});
  }

 private:
  Queues& queues_;
  engine::GroupInfo info_;
};

class QueueTransport final : public engine::Transport {
 public:
  explicit QueueTransport(std::shared_ptr<Queues> queues) : queues_(std::move(queues)) {}
  std::string_view name() const override { return "queues"; }
  Result<std::string> open(engine::Device&) override { return std::string("queues"); }
  Result<engine::Reach> attach(std::uint32_t, std::string_view) override { return engine::Reach{"same process"}; }
  Result<std::unique_ptr<engine::GroupTransport>> join(const engine::GroupInfo& group) override {
    return std::make_unique<QueueGroup>(*queues_, group);
  }
  bool can_wake() const override { return true; }  // It is soon looked again.
  void sleep(std::chrono::nanoseconds longest) override {
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(longest, std::chrono::microseconds(20)));
  }

 private:
  std::shared_ptr<Queues> queues_;
};

/// The element that every rank has after the all_reduce of its number.
float run_rank(std::uint32_t rank, std::uint32_t world, std::uint16_t port, const std::shared_ptr<Queues>& queues) {
  JobOptions options;
  options.rendezvous.rank = rank;
  options.rendezvous.world = world;
  options.rendezvous.host = "127.0.0.1";
  options.rendezvous.port = port;
  options.rendezvous.secret = "threads of one process";
  options.make_transports = [queues](auto&, const auto&) {
    std::vector<std::unique_ptr<engine::Transport>> transports;
    transports.push_back(std::make_unique<QueueTransport>(queues));
    return transports;
  };
  const auto network = std::make_shared<Topology>(value(generate_fully_connected({.ranks = world})));
  const ScheduleSource ring = [network](const Collective& collective, Bytes) {
    return planners::plan(*network, collective, *planners::find_planner("ring")).map([](Schedule schedule) {
      return SourcedSchedule{std::make_shared<const Schedule>(std::move(schedule)), Bytes{}};
    });
  };
  const auto job = value(Communicator::join(std::move(options), ring));
  constexpr std::size_t count = 1'000'000;
  std::vector<float> data(count, static_cast<float>(rank));
  value(job->all_reduce(data.data(), data.data(), count, ElementType::float32, ReduceOperation::sum));
  return data[count - 1];
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint32_t world = argc > 1 ? static_cast<std::uint32_t>(std::max(1, std::atoi(argv[1]))) : 4;
  const auto port = static_cast<std::uint16_t>(argc > 2 ? std::atoi(argv[2]) : 29514);
  const auto queues = std::make_shared<Queues>();
  std::vector<float> results(world);
  {
    std::vector<std::jthread> ranks;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      ranks.emplace_back([&, rank] { results[rank] = run_rank(rank, world, port, queues); });
    }
  }
  fmt::print("{} ranks over queues: {} (the sum of their numbers)\n", world, results.front());
  const bool agree = std::ranges::all_of(results, [&](float each) { return each == results.front(); });
  return agree && results.front() == static_cast<float>(world) * static_cast<float>(world - 1) / 2 ? 0 : 1;
}
