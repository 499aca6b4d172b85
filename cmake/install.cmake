# Installs the program, its man page and completions, and the rooms as a CMake package: static
# libraries braid::base … braid::report with their headers.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/braid)
get_property(rooms GLOBAL PROPERTY BRAID_ROOMS)

# What `cmake --install` copies: the program does not link every room.
add_custom_target(installed DEPENDS braid ${rooms})

install(TARGETS braid RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS ${rooms} EXPORT braidTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY src/braid DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN cli EXCLUDE)
install(EXPORT braidTargets NAMESPACE braid:: DESTINATION ${package_dir})

configure_package_config_file(cmake/braidConfig.cmake.in ${PROJECT_BINARY_DIR}/braidConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/braidConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/braidConfig.cmake ${PROJECT_BINARY_DIR}/braidConfigVersion.cmake
        DESTINATION ${package_dir})

install(FILES docs/braid.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES scripts/completion/braid.bash RENAME braid
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
