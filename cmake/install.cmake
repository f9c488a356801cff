# SPDX-License-Identifier: MIT
# Installation: headers, libraries, weir.pc for pkg-config, weirConfig.cmake for find_package(weir).

include(CMakePackageConfigHelpers)

set(weir_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/weir)

install(DIRECTORY include/weir DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(TARGETS ${weir_libraries} EXPORT weirTargets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT weirTargets NAMESPACE weir:: DESTINATION ${weir_cmake_dir})

configure_package_config_file(cmake/weirConfig.cmake.in ${PROJECT_BINARY_DIR}/weirConfig.cmake
    INSTALL_DESTINATION ${weir_cmake_dir} NO_SET_AND_CHECK_MACRO)
# While the major version is 0, a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/weirConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/weirConfig.cmake ${PROJECT_BINARY_DIR}/weirConfigVersion.cmake
    DESTINATION ${weir_cmake_dir})

# weir.pc names its folders relative to itself, so an installed tree can be moved; that needs relative install folders.
file(RELATIVE_PATH weir_pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" weir_pc_prefix "${weir_pc_prefix}")
configure_file(cmake/weir.pc.in ${PROJECT_BINARY_DIR}/weir.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/weir.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
