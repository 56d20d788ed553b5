#include "engine/verbs/verbs_device.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/error_text.h"
#include "engine/executor/clock.h"

namespace espalier::engine {
namespace {

constexpr std::uint32_t first_completions = 1024;
/// Between two looks whether the device is being removed.
constexpr std::int64_t removal_look_ns = 200'000'000;

using DeviceList = std::unique_ptr<ibv_device*, VerbsDeleter<ibv_free_device_list>>;

Result<void> cannot(std::string_view what) {
  return fail(ErrorCode::unavailable, fmt::format("cannot {}: {}", what, error_text(errno)),
              "raise the limit of locked memory (ulimit -l), and see what `rdma resource` shows");
}

void make_nonblocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

/// The first active port, or the wanted one if it is active; 0 if there is none.
std::uint8_t active_port(ibv_context* context, std::uint8_t wanted, ibv_port_attr& attributes) {
  ibv_device_attr device{};
  if (ibv_query_device(context, &device) != 0) return 0;
  for (std::uint8_t port = 1; port <= device.phys_port_cnt; ++port) {
    if (wanted != 0 && port != wanted) continue;
    if (ibv_query_port(context, port, &attributes) == 0 && attributes.state == IBV_PORT_ACTIVE) return port;
  }
  return 0;
}

/// Calls `use` with devices until it is true. False: there are none.
template <typename Use>
bool find_device(Use use) {
  int count = 0;
  const DeviceList devices(ibv_get_device_list(&count));
  for (int i = 0; i < count; ++i) {
    if (use(devices.get()[i])) break;
  }
  return count > 0;
}

/// How many ports a device has; 0 if it does not say.
std::uint8_t port_count(ibv_context* context) {
  ibv_device_attr device{};
  return context != nullptr && ibv_query_device(context, &device) == 0 ? device.phys_port_cnt : std::uint8_t{0};
}

/// "port 1 (active), port 2 (down)".
std::string describe_ports(ibv_context* context) {
  const std::uint8_t count = port_count(context);
  if (count == 0) return "no port that can be asked";
  std::string ports;
  for (unsigned number = 1; number <= count; ++number) {
    const auto port = static_cast<std::uint8_t>(number);
    ibv_port_attr attributes{};
    const bool is_known = ibv_query_port(context, port, &attributes) == 0;
    ports += fmt::format("{}port {} ({})", ports.empty() ? "" : ", ", port,
                         is_known ? ibv_port_state_str(attributes.state) : "not to be asked");
  }
  return ports;
}

/// Why no port was opened; `wanted.port` is 0 where any would have done.
Result<std::unique_ptr<VerbsDevice>> refuse_port(const VerbsPortName& wanted) {
  std::string all;
  std::string ports;
  bool has_port = wanted.port == 0;
  const bool is_any_there = find_device([&](ibv_device* device) {
    const VerbsObject<ibv_context, ibv_close_device> context(ibv_open_device(device));
    const std::string own = describe_ports(context.get());
    all += fmt::format("{}{} with {}", all.empty() ? "" : "; ", ibv_get_device_name(device), own);
    if (wanted.device != ibv_get_device_name(device)) return false;
    ports = own;
    has_port |= wanted.port <= port_count(context.get());
    return false;
  });
  if (!is_any_there) {
    return fail(ErrorCode::unavailable, "this machine has no RDMA device",
                "rdma link add rxe0 type rxe netdev NAME makes one in software of a network interface");
  }
  const std::string hint = fmt::format("this machine has {}; see `rdma link`", all);
  const std::string port = wanted.port == 0 ? "port" : fmt::format("port {}", wanted.port);
  if (wanted.device.empty()) {
    return fail(ErrorCode::unavailable, fmt::format("no active {} on any RDMA device", port), hint);
  }
  if (ports.empty()) {
    return fail(ErrorCode::unavailable, fmt::format("there is no RDMA device '{}'", wanted.device), hint);
  }
  return fail(ErrorCode::unavailable,
              has_port ? fmt::format("no active {} on RDMA device '{}'", port, wanted.device)
                       : fmt::format("RDMA device '{}' has no {}", wanted.device, port),
              fmt::format("it has {}; see `rdma link`", ports));
}

}  // namespace

std::vector<VerbsPort> VerbsDevice::list_ports() {
  std::vector<VerbsPort> ports;
  find_device([&](ibv_device* device) {
    const VerbsObject<ibv_context, ibv_close_device> context(ibv_open_device(device));
    const unsigned count = port_count(context.get());
    for (unsigned number = 1; number <= count; ++number) {
      const auto port = static_cast<std::uint8_t>(number);
      ibv_port_attr attributes{};
      const bool is_known = ibv_query_port(context.get(), port, &attributes) == 0;
      ports.push_back({ibv_get_device_name(device), port, is_known && attributes.state == IBV_PORT_ACTIVE});
    }
    return false;
  });
  return ports;
}

bool VerbsDevice::is_any_active() { return std::ranges::any_of(list_ports(), &VerbsPort::is_active); }

Result<std::unique_ptr<VerbsDevice>> VerbsDevice::open(const std::string& name, const VerbsOptions& options,
                                                       std::uint32_t rail) {
  VerbsPortName wanted;
  if (!name.empty()) {
    auto parsed = parse_verbs_port(name);
    if (!parsed) return tl::unexpected(parsed.error());
    wanted = std::move(*parsed);
  }
  if (wanted.port == 0) wanted.port = options.port;
  std::unique_ptr<VerbsDevice> opened(new VerbsDevice);
  opened->rail_ = rail;
  find_device([&](ibv_device* device) {
    if (!wanted.device.empty() && wanted.device != ibv_get_device_name(device)) return false;
    opened->context_.reset(ibv_open_device(device));
    opened->port_ =
        opened->context_ ? active_port(opened->context_.get(), wanted.port, opened->attributes_) : std::uint8_t{0};
    return opened->port_ != 0;
  });
  if (opened->port_ == 0) return refuse_port(wanted);
  if (auto ready = opened->set_up(options); !ready) return tl::unexpected(ready.error());
  return opened;
}

Result<void> VerbsDevice::set_up(const VerbsOptions& options) {
  ibv_device_attr device{};
  if (ibv_query_device(context_.get(), &device) != 0) return cannot("ask the RDMA device what it can do");
  name_ = ibv_get_device_name(context_->device);
  if (device.phys_port_cnt > 1) name_ += fmt::format(":{}", port_);
  may_see_removal_ = access(context_->device->dev_path, F_OK) == 0;
  looked_for_removal_ns_ = now_ns();
  if (auto chosen = choose_gid(options.gid_index); !chosen) return chosen;
  max_completions_ = static_cast<std::uint32_t>(device.max_cqe);
  domain_.reset(ibv_alloc_pd(context_.get()));
  if (!domain_) return cannot("make a protection domain");
  channel_.reset(ibv_create_comp_channel(context_.get()));
  if (!channel_) return cannot("make a completion channel");
  capacity_ = std::min(first_completions, max_completions_);
  completions_.reset(ibv_create_cq(context_.get(), static_cast<int>(capacity_), nullptr, channel_.get(), 0));
  if (!completions_) return cannot("make a completion queue");
  make_nonblocking(channel_->fd);
  make_nonblocking(context_->async_fd);
  const auto shared = std::min(options.shared_receives, static_cast<std::uint32_t>(device.max_srq_wr));
  return shared > 0 && device.max_srq > 0 ? make_shared_receives(shared) : Result<void>();
}

Result<void> VerbsDevice::make_shared_receives(std::uint32_t most) {
  ibv_srq_init_attr wanted{};
  wanted.attr.max_wr = most;
  wanted.attr.max_sge = 1;
  receives_.reset(ibv_create_srq(domain_.get(), &wanted));
  if (!receives_) return cannot("make a shared receive queue");
  max_receives_ = most;
  return {};
}

Result<void> VerbsDevice::choose_gid(int wanted) {
  int best = -1;
  int best_worth = -1;
  for (int index = 0; index < attributes_.gid_tbl_len; ++index) {
    ibv_gid_entry entry{};
    if (wanted >= 0 && index != wanted) continue;
    if (ibv_query_gid_ex(context_.get(), port_, static_cast<std::uint32_t>(index), &entry, 0) != 0) continue;
    constexpr std::array<std::uint8_t, 12> mapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
    const bool is_ipv4 = std::equal(mapped.begin(), mapped.end(), entry.gid.raw);
    const int worth = (entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? 2 : 0) + (is_ipv4 ? 1 : 0);
    if (worth <= best_worth) continue;
    best = index;
    best_worth = worth;
    gid_ = entry.gid;
  }
  if (best < 0) {
    return fail(ErrorCode::unavailable,
                wanted < 0 ? fmt::format("port {} of {} has no GID", port_, name())
                           : fmt::format("port {} of {} has no GID {}", port_, name(), wanted),
                "give its network interface an address");
  }
  gid_index_ = static_cast<std::uint8_t>(best);
  return {};
}

Result<void> VerbsDevice::reserve(const Demand& demand) {
  const std::uint32_t receives = reserved_receives_ + demand.receives;
  // Receive work that was once posted to the shared queue stays there.
  const std::uint32_t receive_completions =
      receives_ ? std::max(posted_receives_, std::min(receives, max_receives_)) : receives;
  const std::uint32_t needed = reserved_ + demand.work + receive_completions;
  if (needed > capacity_) {
    const std::uint32_t larger = std::min(max_completions_, std::max(needed, 2 * capacity_));
    if (needed > larger || ibv_resize_cq(completions_.get(), static_cast<int>(larger)) != 0) {
      return fail(ErrorCode::too_large, fmt::format("{} has no room for {} completions", name(), needed),
                  "use fewer connections per peer (--sockets)");
    }
    capacity_ = larger;
  }
  reserved_ += demand.work;
  reserved_receives_ = receives;
  post_shared_receives();
  return {};
}

void VerbsDevice::give_back(const Demand& demand) {
  reserved_ -= demand.work;
  reserved_receives_ -= demand.receives;
}

void VerbsDevice::post_shared_receives() {
  if (!receives_) return;
  const std::uint32_t wanted = std::min(reserved_receives_, max_receives_);
  constexpr std::uint32_t max_at_once = 32;
  std::array<ibv_recv_wr, max_at_once> work{};
  while (posted_receives_ < wanted) {
    const std::uint32_t count = std::min(max_at_once, wanted - posted_receives_);
    for (std::uint32_t i = 0; i < count; ++i) work[i].next = i + 1 < count ? &work[i + 1] : nullptr;
    ibv_recv_wr* refused = nullptr;
    if (const int error = ibv_post_srq_recv(receives_.get(), work.data(), &refused); error != 0) {
      failure_ = fmt::format("RDMA device {}: {}", name(), error_text(error));
      return;
    }
    posted_receives_ += count;
  }
}

bool VerbsDevice::poll() {
  std::array<ibv_wc, 32> found;
  const int count = ibv_poll_cq(completions_.get(), static_cast<int>(found.size()), found.data());
  bool has_failed = false;
  for (int i = 0; i < count; ++i) {
    const ibv_wc& completion = found[static_cast<std::size_t>(i)];
    // The opcode means something only of what succeeded; shared receive work does not fail with a queue pair.
    if (receives_ && completion.status == IBV_WC_SUCCESS &&
        (static_cast<unsigned>(completion.opcode) & IBV_WC_RECV) != 0) {
      --posted_receives_;
    }
    has_failed |= completion.status != IBV_WC_SUCCESS;
    const auto handler = handlers_.find(completion.qp_num);
    if (handler != handlers_.end()) handler->second->handle(completion);
  }
  if (has_failed) take_events();  // The device may know more than the queue pair.
  post_shared_receives();
  constexpr std::uint32_t polls_per_look = 4096;
  if (count == 0 && ++empty_polls_ % polls_per_look == 0) look_for_removal();
  return count > 0;
}

void VerbsDevice::set_failed(ibv_event_type why) {
  failure_ = fmt::format("RDMA device {}: {}", name(), ibv_event_type_str(why));
}

/// A driver that cannot part with its users has the removal wait for them, and tells them nothing: all that they see
/// of it is that the device's entry has gone.
void VerbsDevice::look_for_removal() {
  const std::int64_t now = now_ns();
  if (!may_see_removal_ || now - looked_for_removal_ns_ < removal_look_ns) return;
  looked_for_removal_ns_ = now;
  if (access(context_->device->dev_path, F_OK) != 0 && errno == ENOENT) {
    failure_ = fmt::format("RDMA device {}: it is being removed", name());
  }
}

void VerbsDevice::arm() {
  look_for_removal();
  if (ibv_req_notify_cq(completions_.get(), 0) != 0) failure_ = fmt::format("{} gives no notice", name());
}

void VerbsDevice::disarm() {
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  while (ibv_get_cq_event(channel_.get(), &queue, &context) == 0) ibv_ack_cq_events(queue, 1);
  take_events();
}

void VerbsDevice::take_events() {
  ibv_async_event event{};
  while (ibv_get_async_event(context_.get(), &event) == 0) {
    switch (event.event_type) {
      case IBV_EVENT_PORT_ERR:
        if (event.element.port_num == port_) set_failed(event.event_type);
        break;
      case IBV_EVENT_DEVICE_FATAL:
      case IBV_EVENT_CQ_ERR:
      case IBV_EVENT_SRQ_ERR: set_failed(event.event_type); break;
      case IBV_EVENT_QP_FATAL:
      case IBV_EVENT_QP_REQ_ERR:
      case IBV_EVENT_QP_ACCESS_ERR:
        if (const auto handler = handlers_.find(event.element.qp->qp_num); handler != handlers_.end()) {
          handler->second->handle(event.event_type);
        }
        break;
      default: break;
    }
    ibv_ack_async_event(&event);
  }
}

}  // namespace espalier::engine
