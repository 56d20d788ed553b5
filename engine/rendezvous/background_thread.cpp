#include "engine/rendezvous/background_thread.h"

#include <pthread.h>

#include <csignal>
#include <system_error>

namespace espalier::engine::rendezvous {

Result<std::thread> start_background_thread(std::function<void()> body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  Result<std::thread> started;
  try {
    started = std::thread(std::move(body));
    pthread_setname_np(started->native_handle(), "espalier-plane");
  } catch (const std::system_error& error) {
    started = fail(ErrorCode::unavailable, std::string("cannot start a thread: ") + error.what(),
                   "raise the limit of processes (ulimit -u)");
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace espalier::engine::rendezvous
