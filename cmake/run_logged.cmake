# cmake -DLOG=FILE -P run_logged.cmake -- COMMAND ...: what the command says goes to the file, and to the terminal when
# it fails.

set(command "")
set(is_command OFF)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE ${last})
  if(is_command)
    list(APPEND command "${CMAKE_ARGV${i}}")
  elseif("${CMAKE_ARGV${i}}" STREQUAL "--")
    set(is_command ON)
  endif()
endforeach()

execute_process(COMMAND ${command} RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE said)
file(WRITE "${LOG}" "${said}")
if(NOT status EQUAL 0)
  message("${said}")
  message(FATAL_ERROR "exit ${status}: ${command}")
endif()
