// The one function of GCC 12's C++ library (GLIBCXX_3.4.30) that a wheel would need of it, as that library has it: with
// this it runs with that of GCC 11, so on the systems of glibc 2.34.
#include <condition_variable>

#ifdef __GLIBCXX__
void std::condition_variable::wait(std::unique_lock<std::mutex>& lock) noexcept { _M_cond.wait(*lock.mutex()); }
#endif
