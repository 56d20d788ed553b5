#pragma once

// Tested by: tests/unit/engine/verbs/verbs_device_test.cpp

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "engine/verbs/rail_devices.h"
#include "engine/verbs/verbs_options.h"

namespace espalier::engine {

template <auto Destroy>
struct VerbsDeleter {
  template <typename Object>
  void operator()(Object* object) const {
    Destroy(object);
  }
};
template <typename Object, auto Destroy>
using VerbsObject = std::unique_ptr<Object, VerbsDeleter<Destroy>>;

/// What hears of the completions of a queue pair.
class CompletionHandler {
 public:
  virtual ~CompletionHandler() = default;
  virtual void handle(const ibv_wc& completion) = 0;
  /// The device says that the queue pair failed, which completions may not.
  virtual void handle(ibv_event_type failure) = 0;
};

/// An opened device and port, with the one completion queue of all queue pairs on it, and their one receive queue where
/// the device has such. Receive work has no memory, so whose it is makes no difference. Used by one thread at a time.
class VerbsDevice {
 public:
  /// The ports of this machine's devices.
  static std::vector<VerbsPort> list_ports();
  /// Whether any of them is active.
  static bool is_any_active();
  /// `name`: NAME or NAME:PORT; empty for the first that has an active port. Errors: unavailable, with what there is.
  /// `rail`: its place among the devices of this rank.
  static Result<std::unique_ptr<VerbsDevice>> open(const std::string& name, const VerbsOptions& options,
                                                   std::uint32_t rail = 0);

  [[nodiscard]] ibv_pd* domain() const { return domain_.get(); }
  [[nodiscard]] ibv_cq* completions() const { return completions_.get(); }
  [[nodiscard]] std::uint32_t rail() const { return rail_; }
  /// Null: each queue pair has its own.
  [[nodiscard]] ibv_srq* shared_receives() const { return receives_.get(); }
  /// With its port, NAME:PORT, if the device has several.
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::uint8_t port() const { return port_; }
  [[nodiscard]] std::uint8_t gid_index() const { return gid_index_; }
  [[nodiscard]] const ibv_gid& gid() const { return gid_; }
  [[nodiscard]] std::uint16_t lid() const { return attributes_.lid; }
  [[nodiscard]] bool is_ethernet() const { return attributes_.link_layer == IBV_LINK_LAYER_ETHERNET; }
  [[nodiscard]] ibv_mtu mtu() const { return attributes_.active_mtu; }
  /// Readable when completions come after `arm`, and when the device or its port fails.
  [[nodiscard]] int completions_fd() const { return channel_->fd; }
  [[nodiscard]] int events_fd() const { return context_->async_fd; }

  /// Of one queue pair: pieces of work that may be under way, and messages that may come before this process looks.
  struct Demand {
    std::uint32_t work = 0;
    std::uint32_t receives = 0;
  };
  /// Makes room for the completions of one more queue pair, and posts shared receive work for it, up to what
  /// VerbsOptions allow for all. Errors: too_large, unavailable.
  Result<void> reserve(const Demand& demand);
  void give_back(const Demand& demand);
  void add(std::uint32_t queue_pair, CompletionHandler& handler) { handlers_[queue_pair] = &handler; }
  void remove(std::uint32_t queue_pair) { handlers_.erase(queue_pair); }

  /// Hands the completions that are there to their handlers. False: there were none.
  bool poll();
  /// What comes from now on makes `completions_fd` readable.
  void arm();
  /// Takes what made it readable, and looks at the device's events.
  void disarm();
  /// Why the device or its port is of no more use.
  [[nodiscard]] const std::optional<std::string>& failure() const { return failure_; }

 private:
  void take_events();
  void look_for_removal();
  VerbsDevice() = default;
  Result<void> set_up(const VerbsOptions& options);
  Result<void> choose_gid(int wanted);
  Result<void> make_shared_receives(std::uint32_t most);
  void post_shared_receives();
  void set_failed(ibv_event_type why);

  VerbsObject<ibv_context, ibv_close_device> context_;
  VerbsObject<ibv_pd, ibv_dealloc_pd> domain_;
  VerbsObject<ibv_comp_channel, ibv_destroy_comp_channel> channel_;
  VerbsObject<ibv_cq, ibv_destroy_cq> completions_;
  VerbsObject<ibv_srq, ibv_destroy_srq> receives_;
  ibv_port_attr attributes_{};
  ibv_gid gid_{};
  std::string name_;
  std::uint8_t port_ = 0;
  std::uint8_t gid_index_ = 0;
  std::uint32_t rail_ = 0;
  std::uint32_t reserved_ = 0;
  std::uint32_t max_receives_ = 0;       ///< That the shared receive queue holds.
  std::uint32_t reserved_receives_ = 0;  ///< For the queue pairs that there are; more than it holds with many.
  std::uint32_t posted_receives_ = 0;
  std::uint32_t capacity_ = 0;
  std::uint32_t max_completions_ = 0;
  std::unordered_map<std::uint32_t, CompletionHandler*> handlers_;  ///< By queue pair.
  std::uint32_t empty_polls_ = 0;
  std::int64_t looked_for_removal_ns_ = 0;
  bool may_see_removal_ = false;  ///< Its entry in sysfs was there.
  std::optional<std::string> failure_;
};

}  // namespace espalier::engine
