# The kernels, where a CUDA toolkit is found: compiled to one fat binary, which a library holds as data. Nothing links
# with CUDA: the driver is loaded when the program runs, and loads the kernels.

set(ESPALIER_CUDA AUTO CACHE STRING "Compile the CUDA kernels: ON, OFF, or AUTO where nvcc is found")
set(ESPALIER_CUDA_ARCHITECTURES 90 CACHE STRING "GPUs to compile for, such as 80;90;100; all others get them from PTX")
set(ESPALIER_CUDA_PTX 80 CACHE STRING "The architecture of the PTX, the least that runs")

# sm_100 came with 12.8; older toolkits were not tried. What the kernels were built with: docs/gpu.md.
set(espalier_oldest_nvcc 12.8)
set(espalier_next_nvcc 14.0)

# espalier_find_nvcc(): ESPALIER_NVCC, and ESPALIER_HAS_KERNELS where it is of use; else ESPALIER_NO_KERNELS says why.
function(espalier_find_nvcc)
  set(ESPALIER_HAS_KERNELS OFF PARENT_SCOPE)
  if(NOT ESPALIER_CUDA)
    set(ESPALIER_NO_KERNELS "ESPALIER_CUDA is OFF" PARENT_SCOPE)
    return()
  endif()
  find_program(ESPALIER_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
  set(reason "")
  if(CMAKE_CROSSCOMPILING)
    set(reason "not compiled for another machine")
  elseif(NOT ESPALIER_NVCC)
    set(reason "no nvcc on the PATH, in CUDA_HOME or in /usr/local/cuda")
  else()
    execute_process(COMMAND ${ESPALIER_NVCC} --version OUTPUT_VARIABLE said ERROR_QUIET)
    string(REGEX MATCH "release ([0-9]+\\.[0-9]+)" matched "${said}")
    set(version "${CMAKE_MATCH_1}")
    if(NOT version)
      set(reason "${ESPALIER_NVCC} does not say its version")
    elseif(version VERSION_LESS espalier_oldest_nvcc OR NOT version VERSION_LESS espalier_next_nvcc)
      set(reason "nvcc ${version}: the kernels need ${espalier_oldest_nvcc} or newer, below ${espalier_next_nvcc}")
    endif()
  endif()
  if(reason STREQUAL "")
    message(STATUS "CUDA kernels: nvcc ${version} for sm ${ESPALIER_CUDA_ARCHITECTURES} and PTX of ${ESPALIER_CUDA_PTX}")
    set(ESPALIER_HAS_KERNELS ON PARENT_SCOPE)
    return()
  endif()
  if(NOT ESPALIER_CUDA STREQUAL AUTO)
    message(FATAL_ERROR "CUDA kernels: ${reason} (-DESPALIER_CUDA=OFF builds without them)")
  endif()
  message(STATUS "CUDA kernels: none; ${reason}")
  set(ESPALIER_NO_KERNELS "${reason}" PARENT_SCOPE)
endfunction()

espalier_find_nvcc()

# Ranges that NVIDIA's tools show (engine/executor/nvtx_range.h): headers of the toolkit alone, nothing is linked.
find_path(ESPALIER_NVTX_INCLUDE nvtx3/nvToolsExt.h HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda
  PATH_SUFFIXES include)
if(ESPALIER_NVTX_INCLUDE)
  add_library(espalier_nvtx INTERFACE)
  target_include_directories(espalier_nvtx SYSTEM INTERFACE ${ESPALIER_NVTX_INCLUDE})
  target_compile_definitions(espalier_nvtx INTERFACE ESPALIER_NVTX)
  target_link_libraries(espalier_nvtx INTERFACE ${CMAKE_DL_LIBS})
endif()

# espalier_compile_kernels(SOURCE FATBIN): a rule for the fat binary, and beside it what ptxas says (FATBIN.txt).
function(espalier_compile_kernels source fatbin)
  set(targets "")
  foreach(architecture IN LISTS ESPALIER_CUDA_ARCHITECTURES)
    list(APPEND targets -gencode arch=compute_${architecture},code=sm_${architecture})
  endforeach()
  list(APPEND targets -gencode arch=compute_${ESPALIER_CUDA_PTX},code=compute_${ESPALIER_CUDA_PTX})
  add_custom_command(OUTPUT ${fatbin}
    COMMAND ${CMAKE_COMMAND} "-DLOG=${fatbin}.txt" -P ${PROJECT_SOURCE_DIR}/cmake/run_logged.cmake --
      ${ESPALIER_NVCC} -std=c++20 -I${PROJECT_SOURCE_DIR} -ccbin ${CMAKE_CXX_COMPILER} -Werror all-warnings
      -Xptxas -v,-warn-spills,-warn-lmem-usage -MD -MF ${fatbin}.d ${targets} -fatbin ${source} -o ${fatbin}
    DEPENDS ${source} ${PROJECT_SOURCE_DIR}/cmake/run_logged.cmake
    DEPFILE ${fatbin}.d
    COMMENT "Compiling CUDA kernels" VERBATIM)
endfunction()
