# What `cmake --install` copies beside the tools, which say so themselves: the
# C++ libraries with their headers, TableGen files and generated headers, the
# runtime, and a package for `find_package(Fsdp CONFIG)`.

include(CMakePackageConfigHelpers)

set(FSDP_PACKAGE_DIR lib/cmake/fsdp)

get_property(fsdp_libraries GLOBAL PROPERTY FSDP_LIBRARIES)
install(TARGETS ${fsdp_libraries} fsdprt EXPORT FsdpTargets
  ARCHIVE DESTINATION lib
  LIBRARY DESTINATION lib)
install(EXPORT FsdpTargets DESTINATION ${FSDP_PACKAGE_DIR})

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/fsdp DESTINATION include
  FILES_MATCHING PATTERN "*.h" PATTERN "*.td" PATTERN "*.def")
install(DIRECTORY ${PROJECT_BINARY_DIR}/include/fsdp DESTINATION include
  FILES_MATCHING PATTERN "*.inc"
  PATTERN CMakeFiles EXCLUDE)

configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/FsdpConfig.cmake.in
  ${PROJECT_BINARY_DIR}/cmake/FsdpConfig.cmake
  INSTALL_DESTINATION ${FSDP_PACKAGE_DIR})
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/cmake/FsdpConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/cmake/FsdpConfig.cmake
  ${PROJECT_BINARY_DIR}/cmake/FsdpConfigVersion.cmake
  DESTINATION ${FSDP_PACKAGE_DIR})
