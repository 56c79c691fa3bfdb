# Helpers for the libraries of the project.

# Headers lie below this folder of an installation, as they do in the source tree.
set(ALPA_INSTALL_INCLUDES include/stablehlo_alpa)

# alpa_tablegen_target(name): gathers the mlir_tablegen() outputs of the calling folder. Libraries added later wait for
# them, so that no generated header is missing in a cold parallel build.
macro(alpa_tablegen_target name)
  add_public_tablegen_target(${name})
  set_property(GLOBAL APPEND PROPERTY ALPA_TABLEGEN_TARGETS ${name})
endmacro()

# alpa_add_library(name SRCS a.cpp... [LINK libraries of the project...])
#
# A static library of position independent code that does not itself name an MLIR library: the final target links MLIR,
# either from archives (alpa_link_mlir_static) or, for the mlir-opt plugin alone, from the shared libraries.
function(alpa_add_library name)
  cmake_parse_arguments(ARG "" "" "SRCS;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SRCS})
  target_compile_options(${name} PRIVATE ${ALPA_RTTI_FLAG})
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  target_include_directories(${name} INTERFACE $<INSTALL_INTERFACE:${ALPA_INSTALL_INCLUDES}>)
  set_property(GLOBAL APPEND PROPERTY ALPA_LIBRARIES ${name})
  get_property(generated GLOBAL PROPERTY ALPA_TABLEGEN_TARGETS)
  if(generated)
    add_dependencies(${name} ${generated})
  endif()
endfunction()
