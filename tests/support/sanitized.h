#pragma once

// Whether this program runs under a sanitizer, which makes it several times slower.

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ESPALIER_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ESPALIER_SANITIZED 1
#endif
#endif
#ifndef ESPALIER_SANITIZED
#define ESPALIER_SANITIZED 0
#endif

namespace espalier::test {

/// So many random cases, and a quarter of them under a sanitizer: it looks for what touches memory wrongly, and what is
/// wrong in the results alone shows without it.
constexpr int random_cases(int count) { return ESPALIER_SANITIZED != 0 ? (count + 3) / 4 : count; }

}  // namespace espalier::test
