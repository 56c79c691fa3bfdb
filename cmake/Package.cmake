# What `find_package(StablehloAlpa)` finds: `cmake --install build --component development`.
#
# The libraries name no library of MLIR, as the project's own targets do not: an embedding compiler links MLIR as it
# does everywhere else, from archives or from the shared library.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(ALPA_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/StablehloAlpa)
get_property(libraries GLOBAL PROPERTY ALPA_LIBRARIES)

install(TARGETS ${libraries} EXPORT StablehloAlpaTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(TARGETS stablehlo-alpa-opt RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT development)
install(EXPORT StablehloAlpaTargets NAMESPACE StablehloAlpa:: DESTINATION ${ALPA_PACKAGE_DIR} COMPONENT development)

foreach(root ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  foreach(folder
      dialects/alpa dialects/stablehlo/DataFlow dialects/stablehlo/ShardingRules dialects/scf cpp/analysis cpp/transforms
      cpp/solver cpp/capi passes)
    install(DIRECTORY ${root}/${folder}/ DESTINATION ${ALPA_INSTALL_INCLUDES}/${folder} COMPONENT development
            FILES_MATCHING PATTERN "*.h" PATTERN "*.td" PATTERN "*.h.inc" PATTERN "CMakeFiles" EXCLUDE)
  endforeach()
  install(DIRECTORY ${root}/dialects/stablehlo/include/ DESTINATION ${ALPA_INSTALL_INCLUDES} COMPONENT development
          FILES_MATCHING PATTERN "*.h" PATTERN "*.td" PATTERN "*.h.inc" PATTERN "CMakeFiles" EXCLUDE)
endforeach()

configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/StablehloAlpaConfig.cmake.in ${PROJECT_BINARY_DIR}/StablehloAlpaConfig.cmake
  INSTALL_DESTINATION ${ALPA_PACKAGE_DIR})
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/StablehloAlpaConfigVersion.cmake VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/StablehloAlpaConfig.cmake ${PROJECT_BINARY_DIR}/StablehloAlpaConfigVersion.cmake
        DESTINATION ${ALPA_PACKAGE_DIR} COMPONENT development)
