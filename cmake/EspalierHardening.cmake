# What turns a memory error into the end of the program instead of an intruder's tool, as distributions build: checked
# buffer functions, stack canaries, position-independent programs, relocations that are read-only once they are done.

include(CheckCXXSourceCompiles)
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

target_compile_options(espalier_options INTERFACE -fstack-protector-strong)
target_link_options(espalier_options INTERFACE LINKER:-z,relro LINKER:-z,now)

# Checked buffer functions need optimisation, and sanitizers check better themselves.
set(CMAKE_TRY_COMPILE_CONFIGURATION ${CMAKE_BUILD_TYPE})
foreach(level 3 2)
  set(CMAKE_REQUIRED_FLAGS "-Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${level}")
  check_cxx_source_compiles("
    #include <cstring>
    #if !defined(__OPTIMIZE__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    #error not here
    #endif
    #if defined(__has_feature)
    #if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    #error not here
    #endif
    #endif
    int main() { return 0; }" ESPALIER_FORTIFY_${level})
  unset(CMAKE_REQUIRED_FLAGS)
  if(ESPALIER_FORTIFY_${level})
    target_compile_options(espalier_options INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${level})
    set(ESPALIER_IS_FORTIFIED ON)
    break()
  endif()
endforeach()
unset(CMAKE_TRY_COMPILE_CONFIGURATION)
