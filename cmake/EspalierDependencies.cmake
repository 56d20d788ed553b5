# What Espalier stands on, all from the system (scripts/setup installs it on Debian).

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(pugixml REQUIRED)
find_package(OpenSSL 3.0 REQUIRED COMPONENTS Crypto)
find_package(Boost 1.74 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Eigen3 3.3 REQUIRED NO_MODULE)

find_path(ESPALIER_CLI11_INCLUDE CLI/CLI.hpp REQUIRED)
add_library(espalier_cli11 INTERFACE)
target_include_directories(espalier_cli11 SYSTEM INTERFACE ${ESPALIER_CLI11_INCLUDE})

find_path(ESPALIER_EXPECTED_INCLUDE tl/expected.hpp REQUIRED)

find_package(PkgConfig REQUIRED)
pkg_check_modules(CLP REQUIRED IMPORTED_TARGET clp)
pkg_check_modules(BLISS libbliss-cxx)
if(NOT BLISS_FOUND)  # Its own Makefile installs no file for pkg-config.
  find_path(ESPALIER_BLISS_INCLUDE bliss/graph.hh REQUIRED)
  find_library(ESPALIER_BLISS_LIBRARY bliss REQUIRED)
  set(BLISS_LIBRARIES bliss)
  set(BLISS_LINK_LIBRARIES ${ESPALIER_BLISS_LIBRARY})
  include_directories(SYSTEM ${ESPALIER_BLISS_INCLUDE})
endif()
pkg_check_modules(ISAL REQUIRED IMPORTED_TARGET libisal)
pkg_check_modules(IBVERBS IMPORTED_TARGET libibverbs)  # without it there is no transport verbs
# The command's allocator; sanitizers bring their own. Without it glibc's serves, which takes a fifth longer on large plans.
find_path(ESPALIER_MIMALLOC_INCLUDE mimalloc.h)
find_library(ESPALIER_MIMALLOC_LIBRARY mimalloc)
if(ESPALIER_MIMALLOC_INCLUDE AND ESPALIER_MIMALLOC_LIBRARY AND NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  set(ESPALIER_HAS_MIMALLOC ON)
endif()
if(ESPALIER_TESTS OR ESPALIER_BENCH)
  pkg_check_modules(SIMGRID IMPORTED_TARGET simgrid)  # a peer: what needs it is left out where it is missing
endif()

if(ESPALIER_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
  find_package(rapidcheck QUIET)
  find_path(ESPALIER_RAPIDCHECK_INCLUDE rapidcheck.h REQUIRED)
  find_library(ESPALIER_RAPIDCHECK_LIBRARY rapidcheck REQUIRED)
  add_library(espalier_rapidcheck INTERFACE)
  target_include_directories(espalier_rapidcheck SYSTEM INTERFACE ${ESPALIER_RAPIDCHECK_INCLUDE})
  target_link_libraries(espalier_rapidcheck INTERFACE ${ESPALIER_RAPIDCHECK_LIBRARY})
endif()
if(ESPALIER_BENCH)
  find_package(benchmark REQUIRED)
  find_package(GTest REQUIRED)
endif()
