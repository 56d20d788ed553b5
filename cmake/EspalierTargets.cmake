# How every target of the project is made: one library per folder, one test program per test folder.

set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
find_program(ESPALIER_CCACHE ccache)
if(ESPALIER_CCACHE)
  # A precompiled header is known by what it says; its macros and times may be taken on trust.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_ctime,include_file_mtime
    ${ESPALIER_CCACHE})
endif()

# Some seventy test programs are linked in a quarter of the time that the default linker takes.
if(ESPALIER_TESTS)
  find_program(ESPALIER_MOLD mold)
  if(ESPALIER_MOLD)
    add_link_options(-fuse-ld=mold)
  endif()
endif()

add_library(espalier_options INTERFACE)
target_compile_features(espalier_options INTERFACE cxx_std_20)
target_compile_options(espalier_options INTERFACE
  -Wall -Wextra -Wno-missing-field-initializers -Wpedantic -Wconversion -Wsign-conversion -Wnon-virtual-dtor
  -Woverloaded-virtual
  $<$<NOT:$<BOOL:${ESPALIER_UNITY}>>:-Wshadow>  # in a union of sources, locals may hide what another source defines
  $<$<BOOL:${ESPALIER_WERROR}>:-Werror>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-pedantic>   # g++ calls __int128 non-standard; exact 128-bit products need it
  # g++ 12 at -O3 sees an overlap in "x" + std::string() (GCC bug 105651) and uninitialised strings in temporaries.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict> $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
  # By default g++ collects garbage that fits in memory: 4 to 12 % of the time of a large source.
  $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=600000>)

# espalier_unite(NAME): with ESPALIER_UNITY, a target's sources are compiled sixteen at a time (or as many as it says), in their
# order: templates of the libraries are compiled once for all of them. Names in anonymous namespaces must differ in a target
# therefore.
set(espalier_unity_batch 16)
if(ESPALIER_UNITY MATCHES "^[0-9]+$" AND ESPALIER_UNITY GREATER 1)
  set(espalier_unity_batch ${ESPALIER_UNITY})
endif()
function(espalier_unite name)
  if(ESPALIER_UNITY)
    set_target_properties(${name} PROPERTIES
      UNITY_BUILD ON UNITY_BUILD_MODE BATCH UNITY_BUILD_BATCH_SIZE ${espalier_unity_batch})
  endif()
endfunction()

# espalier_library(NAME [QUICK] HEADERS ... SOURCES ... PUBLIC ... PRIVATE ...)
# A folder's library, espalier::NAME, with its public headers, the libraries its headers need (PUBLIC) and the libraries
# only its sources need (PRIVATE). QUICK: no loop of it is hot, and to compile it fast counts for more (EspalierPrecompiled).
function(espalier_library name)
  cmake_parse_arguments(ARG "QUICK" "" "HEADERS;SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(espalier_${name} STATIC ${ARG_SOURCES})
  add_library(espalier::${name} ALIAS espalier_${name})
  target_sources(espalier_${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${ARG_HEADERS})
  target_link_libraries(espalier_${name}
    PUBLIC ${ARG_PUBLIC} PRIVATE $<BUILD_INTERFACE:espalier_options> ${ARG_PRIVATE})
  target_compile_features(espalier_${name} PUBLIC cxx_std_20)
  set_target_properties(espalier_${name} PROPERTIES
    EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON VERIFY_INTERFACE_HEADER_SETS ON)
  espalier_unite(espalier_${name})
  if(ARG_QUICK)
    espalier_quick(espalier_${name})
  else()
    espalier_precompiled(espalier_${name})
  endif()
  set_property(GLOBAL APPEND PROPERTY ESPALIER_LIBRARIES espalier_${name})
endfunction()

# espalier_test(NAME SOURCES ... DEPS ... [LABELS ...] [TIMEOUT seconds] [SERIAL] [LONG filter])
# A GoogleTest program whose tests CTest knows one by one, labelled; SERIAL: never beside other tests; LONG: those that
# the filter takes also have the label "long".
function(espalier_test name)
  cmake_parse_arguments(ARG "SERIAL" "TIMEOUT;LONG" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${name} PRIVATE ESPALIER_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_compile_options(${name} PRIVATE ${espalier_test_options})
  target_link_libraries(${name} PRIVATE espalier_options ${ARG_DEPS} espalier_test_support GTest::gtest GTest::gtest_main)
  espalier_unite(${name})
  espalier_precompiled(${name} tests)
  set(properties LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT} RUN_SERIAL ${ARG_SERIAL})
  if(ARG_LONG)
    set(others TEST_FILTER "-${ARG_LONG}")
    gtest_discover_tests(${name} TEST_FILTER "${ARG_LONG}" TEST_LIST ${name}_long DISCOVERY_TIMEOUT 60
      PROPERTIES ${properties})
  endif()
  gtest_discover_tests(${name} ${others} DISCOVERY_TIMEOUT 60 PROPERTIES ${properties})
  if(ARG_LONG)  # gtest_discover_tests takes no list of labels.
    set(labels ${CMAKE_CURRENT_BINARY_DIR}/${name}_long_labels.cmake)
    file(WRITE ${labels} "set_tests_properties(\${${name}_long} PROPERTIES LABELS \"${ARG_LABELS};long\")\n")
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${labels})
  endif()
endfunction()
