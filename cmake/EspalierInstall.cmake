# cmake --install: the command, the libraries with their headers, the shipped configs, and find_package(espalier).
# Components: command, development, python; cmake --install ... --component command installs one of them.

include(CMakePackageConfigHelpers)
get_property(espalier_libraries GLOBAL PROPERTY ESPALIER_LIBRARIES)

add_library(espalier_all INTERFACE)
add_library(espalier::espalier ALIAS espalier_all)
target_link_libraries(espalier_all INTERFACE ${espalier_libraries})
set_target_properties(espalier_all PROPERTIES EXPORT_NAME espalier)

# Of the headers, those of espalier/ and what these include, which goes into a folder that programs need not know. The
# libraries' own sets of headers are a component that nobody installs; they say where headers are.
set(espalier_headers ${CMAKE_INSTALL_INCLUDEDIR}/espalier)
set(espalier_internal_headers ${espalier_headers}/internal)
install(TARGETS espalier_all ${espalier_libraries} EXPORT espalier_targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
  FILE_SET HEADERS DESTINATION ${espalier_internal_headers} COMPONENT all_headers EXCLUDE_FROM_ALL)
target_include_directories(espalier_api INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

install(CODE "set(espalier_source ${PROJECT_SOURCE_DIR})\nset(espalier_headers ${espalier_headers})" COMPONENT development)
install(SCRIPT cmake/install-headers.cmake COMPONENT development)
install(TARGETS espalier_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT command)
install(DIRECTORY configs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/espalier/configs COMPONENT command)
install(EXPORT espalier_targets NAMESPACE espalier:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/espalier COMPONENT development)

configure_package_config_file(cmake/espalier-config.cmake.in espalier-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/espalier)
write_basic_package_version_file(espalier-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/espalier-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/espalier-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/espalier COMPONENT development)

# espalier.pc: every library of the project, each after those that need it, and what they stand on.
set(espalier_pc_libraries ${espalier_libraries})
list(REVERSE espalier_pc_libraries)
list(TRANSFORM espalier_pc_libraries PREPEND -l)
list(JOIN espalier_pc_libraries " " espalier_pc_libraries)
file(RELATIVE_PATH espalier_pc_up "/x/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/x")
set(espalier_pc_extra ${BLISS_LIBRARIES})
list(TRANSFORM espalier_pc_extra PREPEND -l)
list(JOIN espalier_pc_extra " " espalier_pc_extra)
if(IBVERBS_FOUND)
  string(APPEND espalier_pc_extra " -libverbs")
endif()
configure_file(cmake/espalier.pc.in espalier.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/espalier.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

# Manual pages from the help, and completions, made by the command that is installed.
find_package(Python3 COMPONENTS Interpreter QUIET)
if(Python3_Interpreter_FOUND AND NOT CMAKE_CROSSCOMPILING)
  install(CODE "
    set(made \"${CMAKE_CURRENT_BINARY_DIR}/documents\")
    file(REMOVE_RECURSE \"\${made}\")
    execute_process(COMMAND \"${Python3_EXECUTABLE}\" \"${PROJECT_SOURCE_DIR}/scripts/man-pages\"
      \"$<TARGET_FILE:espalier_command>\" \"\${made}/man1\" COMMAND_ERROR_IS_FATAL ANY)
    file(GLOB pages \"\${made}/man1/*.1\")
    foreach(page \${pages})
      execute_process(COMMAND gzip -n9 \"\${page}\" COMMAND_ERROR_IS_FATAL ANY)
    endforeach()
    file(INSTALL \"\${made}/man1\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_MANDIR}\")
    foreach(completion bash:bash-completion/completions/espalier zsh:zsh/vendor-completions/_espalier
        fish:fish/vendor_completions.d/espalier.fish)
      string(REPLACE : \";\" parts \${completion})
      list(GET parts 0 shell)
      list(GET parts 1 file)
      cmake_path(GET file PARENT_PATH folder)
      cmake_path(GET file FILENAME name)
      execute_process(COMMAND \"$<TARGET_FILE:espalier_command>\" completion \${shell}
        OUTPUT_FILE \"\${made}/\${name}\" COMMAND_ERROR_IS_FATAL ANY)
      file(INSTALL \"\${made}/\${name}\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/\${folder}\")
    endforeach()" COMPONENT command)
endif()

if(TARGET espalier_python)
  # What is alike in a wheel and below a prefix: the module, the modules around it, what espalier.torch is compiled from.
  function(espalier_install_package folder component)
    install(TARGETS espalier_python LIBRARY DESTINATION ${folder} COMPONENT ${component} ${ARGN})
    install(DIRECTORY python/espalier/ DESTINATION ${folder} COMPONENT ${component} ${ARGN}
      FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi" PATTERN "py.typed")
    install(DIRECTORY python/torch DESTINATION ${folder}/torch_sources/python COMPONENT ${component} ${ARGN})
    install(FILES python/bind/engine_api.h DESTINATION ${folder}/torch_sources/python/bind COMPONENT ${component} ${ARGN})
  endfunction()

  set(ESPALIER_PYTHON_INSTALL lib/python3/dist-packages/espalier CACHE STRING "Where the Python package is installed")
  espalier_install_package(${ESPALIER_PYTHON_INSTALL} python)
  # Last, when the folder is there.
  file(RELATIVE_PATH espalier_python_configs "/x/${ESPALIER_PYTHON_INSTALL}" "/x/${CMAKE_INSTALL_DATADIR}/espalier/configs")
  install(CODE "
    file(CREATE_LINK \"${espalier_python_configs}\"
      \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${ESPALIER_PYTHON_INSTALL}/configs\" SYMBOLIC)" COMPONENT python)

  # A wheel has no share/ beside it, and the command within. Only when asked for: cmake --install BUILD --component wheel.
  set(SKBUILD_SCRIPTS_DIR bin CACHE PATH "Where scikit-build-core takes commands from")
  espalier_install_package(espalier wheel EXCLUDE_FROM_ALL)
  install(DIRECTORY configs DESTINATION espalier COMPONENT wheel EXCLUDE_FROM_ALL)
  install(TARGETS espalier_command RUNTIME DESTINATION espalier/bin COMPONENT wheel EXCLUDE_FROM_ALL)
  install(PROGRAMS python/command.py DESTINATION ${SKBUILD_SCRIPTS_DIR} RENAME espalier COMPONENT wheel EXCLUDE_FROM_ALL)
endif()
