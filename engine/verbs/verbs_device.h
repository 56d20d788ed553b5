#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/result.h"
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
};

/// An opened device and port, with the one completion queue of all queue pairs on it. Used by one thread at a time.
class VerbsDevice {
 public:
  /// Whether any device of this machine has an active port.
  static bool is_any_active();
  /// `name`: empty for the first that has an active port. Errors: unavailable, with what there is.
  static Result<std::unique_ptr<VerbsDevice>> open(const std::string& name, const VerbsOptions& options);

  [[nodiscard]] ibv_pd* domain() const { return domain_.get(); }
  [[nodiscard]] ibv_cq* completions() const { return completions_.get(); }
  [[nodiscard]] std::string name() const { return ibv_get_device_name(context_->device); }
  [[nodiscard]] std::uint8_t port() const { return port_; }
  [[nodiscard]] std::uint8_t gid_index() const { return gid_index_; }
  [[nodiscard]] const ibv_gid& gid() const { return gid_; }
  [[nodiscard]] std::uint16_t lid() const { return attributes_.lid; }
  [[nodiscard]] bool is_ethernet() const { return attributes_.link_layer == IBV_LINK_LAYER_ETHERNET; }
  [[nodiscard]] ibv_mtu mtu() const { return attributes_.active_mtu; }
  /// Readable when completions come after `arm`, and when the device or its port fails.
  [[nodiscard]] int completions_fd() const { return channel_->fd; }
  [[nodiscard]] int events_fd() const { return context_->async_fd; }

  /// Makes room for so many more completions. Errors: too_large.
  Result<void> reserve(std::uint32_t completions);
  void give_back(std::uint32_t completions) { reserved_ -= completions; }
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
  VerbsDevice() = default;
  Result<void> set_up(const VerbsOptions& options);
  Result<void> choose_gid(int wanted);

  VerbsObject<ibv_context, ibv_close_device> context_;
  VerbsObject<ibv_pd, ibv_dealloc_pd> domain_;
  VerbsObject<ibv_comp_channel, ibv_destroy_comp_channel> channel_;
  VerbsObject<ibv_cq, ibv_destroy_cq> completions_;
  ibv_port_attr attributes_{};
  ibv_gid gid_{};
  std::uint8_t port_ = 0;
  std::uint8_t gid_index_ = 0;
  std::uint32_t reserved_ = 0;
  std::uint32_t capacity_ = 0;
  std::uint32_t most_completions_ = 0;
  std::unordered_map<std::uint32_t, CompletionHandler*> handlers_;  ///< By queue pair.
  std::optional<std::string> failure_;
};

}  // namespace espalier::engine
