#include "base/parallel.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace espalier {
namespace {

/// Signals are for the thread that was there before.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

unsigned usable_threads() { return std::max(1U, std::thread::hardware_concurrency()); }

void run_parallel(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  const auto take_all = [&] {
    try {
      for (std::size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      next = count;
      const std::scoped_lock lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  const std::size_t wanted = std::min<std::size_t>(threads, count);
  std::vector<std::thread> others;
  others.reserve(wanted);  // What is thrown later would end the process, as some of them run.
  {
    const SignalsBlocked blocked;
    for (std::size_t i = 1; i < wanted; ++i) {
      try {
        others.emplace_back(take_all);
      } catch (const std::exception&) {
        break;  // Without threads or memory to give, fewer do the same.
      }
    }
  }
  take_all();
  for (std::thread& other : others) other.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace espalier
