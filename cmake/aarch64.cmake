# Cross-compiles for 64-bit Arm with Debian's compiler, and runs what was built by qemu. The libraries are those of a folder
# that scripts/check aarch64 fills: ESPALIER_SYSROOT in the environment.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_SYSROOT $ENV{ESPALIER_SYSROOT})
set(CMAKE_FIND_ROOT_PATH $ENV{ESPALIER_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static;-L;$ENV{ESPALIER_SYSROOT})
set(ENV{PKG_CONFIG_SYSROOT_DIR} $ENV{ESPALIER_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} $ENV{ESPALIER_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:$ENV{ESPALIER_SYSROOT}/usr/share/pkgconfig)
