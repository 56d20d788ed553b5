# What many sources read, parsed once: cpp_int behind base/rational.h alone takes over two seconds a source. Sources include what they use all the same; ESPALIER_PRECOMPILED=OFF shows when one does not.
option(ESPALIER_PRECOMPILED "Parse the headers of libraries once" ON)
if(CMAKE_CROSSCOMPILING OR CMAKE_CXX_CLANG_TIDY)
  set(ESPALIER_PRECOMPILED OFF)
endif()

# Under sanitizers with clang, optimising takes two thirds of the compiler's time, and is worth it where loops are hot.
set(espalier_sanitized_options $<$<AND:$<CXX_COMPILER_ID:Clang>,$<CONFIG:Debug>>:-O0>)

# Tests spend their time in the libraries: their own code is optimised less, which compiles it in three quarters of the
# time. Strings of known lengths, as tests make them, bring out more of a bug of g++ 12 that it warns of.
set(espalier_test_options ${espalier_sanitized_options} $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:RelWithDebInfo>>:-Og>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-stringop-overflow>)
# A test says itself where it fails, but for what sanitizers find.
if(NOT CMAKE_CXX_FLAGS MATCHES "sanitize")
  list(APPEND espalier_test_options $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:RelWithDebInfo>>:-g0>)
endif()

# What reads, writes and lays out (the command, formats, reports) waits for nothing of its own, and is two thirds of what
# the command's build compiles: at -O1 a third faster than at -O3.
set(espalier_quick_options ${espalier_sanitized_options}
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-O1> $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:RelWithDebInfo>>:-Og>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-stringop-overflow>)

set(espalier_precompiled_libraries Boost::headers fmt::fmt nlohmann_json::nlohmann_json)
set(espalier_library_headers
  <algorithm> <array> <charconv> <chrono> <cmath> <cstddef> <cstdint> <cstring> <filesystem> <functional> <fstream>
  <limits> <map> <memory> <mutex> <numeric> <optional> <set> <span> <sstream> <string> <string_view> <thread> <tuple>
  <unordered_map> <utility> <variant> <vector> <boost/multiprecision/cpp_int.hpp> <fmt/format.h>
  <nlohmann/json.hpp> <tl/expected.hpp>)

# A library's code is position-independent in another way than a program's, so there is one of each.
if(ESPALIER_PRECOMPILED)
  add_library(espalier_precompiled STATIC ${PROJECT_SOURCE_DIR}/cmake/precompiled/library.cpp)
  target_link_libraries(espalier_precompiled PRIVATE espalier_options ${espalier_precompiled_libraries})
  target_precompile_headers(espalier_precompiled PRIVATE ${espalier_library_headers})
  add_library(espalier_precompiled_quick STATIC ${PROJECT_SOURCE_DIR}/cmake/precompiled/library.cpp)
  target_link_libraries(espalier_precompiled_quick PRIVATE espalier_options ${espalier_precompiled_libraries})
  target_precompile_headers(espalier_precompiled_quick PRIVATE ${espalier_library_headers})
  target_compile_options(espalier_precompiled_quick PRIVATE ${espalier_quick_options})
  if(ESPALIER_TESTS)
    add_executable(espalier_precompiled_tests ${PROJECT_SOURCE_DIR}/cmake/precompiled/program.cpp)
    target_link_libraries(espalier_precompiled_tests PRIVATE espalier_options ${espalier_precompiled_libraries}
      GTest::gtest)
    target_precompile_headers(espalier_precompiled_tests PRIVATE ${espalier_library_headers} <gtest/gtest.h>)
    target_compile_options(espalier_precompiled_tests PRIVATE ${espalier_test_options})
  endif()
  # Without it, ccache does not know what a source that begins with a precompiled header says.
  target_compile_options(espalier_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
endif()

# espalier_precompiled(NAME [tests|quick]): the target's sources begin with those headers.
function(espalier_precompiled name)
  if(NOT ESPALIER_PRECOMPILED)
    return()
  endif()
  # What they define, all define.
  foreach(library IN LISTS espalier_precompiled_libraries)
    target_link_libraries(${name} PRIVATE $<BUILD_INTERFACE:${library}>)
  endforeach()
  list(JOIN ARGN "" kind)
  if(kind)
    set(kind "_${kind}")
  endif()
  target_precompile_headers(${name} REUSE_FROM espalier_precompiled${kind})
endfunction()

# espalier_quick(NAME): a library none of whose loops is hot.
function(espalier_quick name)
  target_compile_options(${name} PRIVATE ${espalier_quick_options})
  espalier_precompiled(${name} quick)
endfunction()
