#include "engine/verbs/verbs_device.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

namespace espalier::engine {
namespace {

constexpr std::uint32_t first_completions = 1024;

using DeviceList = std::unique_ptr<ibv_device*, VerbsDeleter<ibv_free_device_list>>;

Result<void> cannot(std::string_view what) {
  return fail(ErrorCode::unavailable, fmt::format("cannot {}: {}", what, std::generic_category().message(errno)),
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

/// Calls `use` with devices until it is true; the names of all.
template <typename Use>
std::string find_device(Use use) {
  int count = 0;
  const DeviceList devices(ibv_get_device_list(&count));
  std::string names;
  for (int i = 0; i < count; ++i) {
    ibv_device* device = devices.get()[i];
    names += std::string(names.empty() ? "" : ", ") + ibv_get_device_name(device);
    if (use(device)) break;
  }
  return names;
}

}  // namespace

bool VerbsDevice::is_any_active() {
  bool is_found = false;
  find_device([&](ibv_device* device) {
    const VerbsObject<ibv_context, ibv_close_device> context(ibv_open_device(device));
    ibv_port_attr attributes{};
    is_found = context && active_port(context.get(), 0, attributes) != 0;
    return is_found;
  });
  return is_found;
}

Result<std::unique_ptr<VerbsDevice>> VerbsDevice::open(const std::string& name, const VerbsOptions& options) {
  std::unique_ptr<VerbsDevice> opened(new VerbsDevice);
  const std::string names = find_device([&](ibv_device* device) {
    if (!name.empty() && name != ibv_get_device_name(device)) return false;
    opened->context_.reset(ibv_open_device(device));
    opened->port_ =
        opened->context_ ? active_port(opened->context_.get(), options.port, opened->attributes_) : std::uint8_t{0};
    return opened->port_ != 0;
  });
  if (names.empty()) {
    return fail(ErrorCode::unavailable, "this machine has no RDMA device",
                "rdma link add rxe0 type rxe netdev NAME makes one in software of a network interface");
  }
  if (opened->port_ == 0) {
    return fail(ErrorCode::unavailable,
                fmt::format("no active port on {}", name.empty() ? "any RDMA device" : "RDMA device '" + name + "'"),
                fmt::format("this machine has {}; see `rdma link`", names));
  }
  if (auto ready = opened->set_up(options); !ready) return tl::unexpected(ready.error());
  return opened;
}

Result<void> VerbsDevice::set_up(const VerbsOptions& options) {
  if (auto chosen = choose_gid(options.gid_index); !chosen) return chosen;
  ibv_device_attr device{};
  if (ibv_query_device(context_.get(), &device) != 0) return cannot("ask the RDMA device what it can do");
  most_completions_ = static_cast<std::uint32_t>(device.max_cqe);
  domain_.reset(ibv_alloc_pd(context_.get()));
  if (!domain_) return cannot("make a protection domain");
  channel_.reset(ibv_create_comp_channel(context_.get()));
  if (!channel_) return cannot("make a completion channel");
  capacity_ = std::min(first_completions, most_completions_);
  completions_.reset(ibv_create_cq(context_.get(), static_cast<int>(capacity_), nullptr, channel_.get(), 0));
  if (!completions_) return cannot("make a completion queue");
  make_nonblocking(channel_->fd);
  make_nonblocking(context_->async_fd);
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

Result<void> VerbsDevice::reserve(std::uint32_t completions) {
  const std::uint32_t needed = reserved_ + completions;
  if (needed > capacity_) {
    const std::uint32_t larger = std::min(most_completions_, std::max(needed, 2 * capacity_));
    if (needed > larger || ibv_resize_cq(completions_.get(), static_cast<int>(larger)) != 0) {
      return fail(ErrorCode::too_large, fmt::format("{} has no room for {} completions", name(), needed),
                  "use fewer connections per peer (--sockets)");
    }
    capacity_ = larger;
  }
  reserved_ = needed;
  return {};
}

bool VerbsDevice::poll() {
  std::array<ibv_wc, 32> found;
  const int count = ibv_poll_cq(completions_.get(), static_cast<int>(found.size()), found.data());
  for (int i = 0; i < count; ++i) {
    const ibv_wc& completion = found[static_cast<std::size_t>(i)];
    const auto handler = handlers_.find(completion.qp_num);
    if (handler != handlers_.end()) handler->second->handle(completion);
  }
  return count > 0;
}

void VerbsDevice::arm() {
  if (ibv_req_notify_cq(completions_.get(), 0) != 0) failure_ = fmt::format("{} gives no notice", name());
}

void VerbsDevice::disarm() {
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  while (ibv_get_cq_event(channel_.get(), &queue, &context) == 0) ibv_ack_cq_events(queue, 1);
  ibv_async_event event{};
  while (ibv_get_async_event(context_.get(), &event) == 0) {
    const bool is_port = event.event_type == IBV_EVENT_PORT_ERR && event.element.port_num == port_;
    if (is_port || event.event_type == IBV_EVENT_DEVICE_FATAL || event.event_type == IBV_EVENT_CQ_ERR) {
      failure_ = fmt::format("RDMA device {}: {}", name(), ibv_event_type_str(event.event_type));
    }
    ibv_ack_async_event(&event);
  }
}

}  // namespace espalier::engine
