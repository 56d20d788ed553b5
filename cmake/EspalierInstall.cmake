# cmake --install: the command, the libraries with their headers, the shipped configs, and find_package(espalier).

include(CMakePackageConfigHelpers)
get_property(espalier_libraries GLOBAL PROPERTY ESPALIER_LIBRARIES)

add_library(espalier_all INTERFACE)
add_library(espalier::espalier ALIAS espalier_all)
target_link_libraries(espalier_all INTERFACE ${espalier_libraries})
set_target_properties(espalier_all PROPERTIES EXPORT_NAME espalier)

install(TARGETS espalier_all ${espalier_libraries} EXPORT espalier_targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/espalier)
install(TARGETS espalier_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY configs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/espalier/configs)
install(EXPORT espalier_targets NAMESPACE espalier:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/espalier)

configure_package_config_file(cmake/espalier-config.cmake.in espalier-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/espalier)
write_basic_package_version_file(espalier-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/espalier-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/espalier-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/espalier)
