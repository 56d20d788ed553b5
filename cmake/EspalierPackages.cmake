# CPack: Debian packages of the three components (scripts/package builds and checks them).

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME espalier)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
# Whoever packages for others gives an address of their own; .invalid can be nobody's (RFC 2606).
set(CPACK_PACKAGE_CONTACT "The Espalier authors <authors@espalier.invalid>" CACHE STRING "Maintainer of the Debian packages")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "planner and predictor of collective communication")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL command development)
if(TARGET espalier_python)
  list(APPEND CPACK_COMPONENTS_ALL python)
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(espalier_about "Espalier plans all-reduce, all-gather and their like on the network a machine
really has, predicts and runs them, and prints beside every figure the exact
bound that no schedule can beat.")

set(CPACK_DEBIAN_COMMAND_PACKAGE_NAME espalier)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SECTION science)
set(CPACK_DEBIAN_COMMAND_PACKAGE_RECOMMENDS librsvg2-2)  # --png
set(CPACK_COMPONENT_COMMAND_DESCRIPTION "${espalier_about}")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libespalier-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
  "libfmt-dev, libyaml-cpp-dev, libpugixml-dev, nlohmann-json3-dev, libboost-dev, libeigen3-dev, coinor-libclp-dev, libisal-dev, libbliss-dev, libgmp-dev, libssl-dev, zlib1g-dev, libexpected-dev, libibverbs-dev, pkg-config")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
  "${espalier_about}\nThis package has its C++ libraries and headers.")

set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-espalier)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3 (>= 3.11), python3 (<< 3.12), python3-numpy, espalier")
set(CPACK_COMPONENT_PYTHON_DESCRIPTION
  "${espalier_about}\nThis package has its Python module.")

# What Debian asks of each package: its licence and a changelog.
string(TIMESTAMP espalier_date "%a, %d %b %Y %H:%M:%S +0000" UTC)
configure_file(packaging/debian/changelog.in changelog @ONLY)
foreach(pair command:espalier development:libespalier-dev python:python3-espalier)
  string(REPLACE : ";" parts ${pair})
  list(GET parts 0 component)
  list(GET parts 1 package)
  if(component STREQUAL python AND NOT TARGET espalier_python)
    continue()
  endif()
  install(FILES packaging/debian/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} COMPONENT ${component})
  install(CODE "
    execute_process(COMMAND gzip -n9c \"${CMAKE_CURRENT_BINARY_DIR}/changelog\"
      OUTPUT_FILE \"${CMAKE_CURRENT_BINARY_DIR}/changelog.gz\" COMMAND_ERROR_IS_FATAL ANY)
    file(INSTALL \"${CMAKE_CURRENT_BINARY_DIR}/changelog.gz\"
      DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/doc/${package}\")" COMPONENT ${component})
endforeach()
install(FILES THIRD-PARTY.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/espalier COMPONENT command)
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libespalier-dev COMPONENT development)

include(CPack)
