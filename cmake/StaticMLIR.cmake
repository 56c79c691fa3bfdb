# Linking MLIR from its archives.
#
# The packaged MLIR is configured with LLVM_LINK_LLVM_DYLIB, so each of its targets also names the shared `LLVM`
# library. Linking the targets would load libLLVM.so beside the archives; so the graph of targets is walked, `LLVM` is
# dropped, and the archive files are linked.

# Archives that every statically linked target of the project gets. Extend it before the first use:
#   list(APPEND ALPA_MLIR_ROOTS MLIRArithDialect)
set(ALPA_MLIR_ROOTS
  MLIRIR MLIRParser MLIRPass MLIRTransforms MLIRTransformUtils MLIRFuncDialect MLIRFuncInlinerExtension
  MLIRQuantDialect MLIRShapeDialect
  MLIRInferTypeOpInterface MLIRSideEffectInterfaces MLIRBytecodeWriter MLIRAnalysis MLIRRewrite
  LLVMSupport LLVMCore LLVMTargetParser LLVMBinaryFormat LLVMRemarks LLVMBitstreamReader LLVMDemangle)

# Archives that a tool around MlirOptMain needs on top.
set(ALPA_MLIR_OPT_ROOTS MLIROptLib LLVMFrontendOpenMP LLVMAsmParser)

# Sets `out` to the archive files of the given targets and of all they depend on.
function(alpa_static_closure out)
  set(todo ${ARGN})
  set(seen "")
  while(todo)
    list(POP_FRONT todo target)
    if(target IN_LIST seen OR target STREQUAL "LLVM" OR NOT TARGET ${target})
      continue()
    endif()
    list(APPEND seen ${target})
    get_target_property(dependencies ${target} INTERFACE_LINK_LIBRARIES)
    if(dependencies)
      foreach(dependency IN LISTS dependencies)
        string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" dependency "${dependency}")
        list(APPEND todo "${dependency}")
      endforeach()
    endif()
  endwhile()
  set(files "")
  foreach(target IN LISTS seen)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      list(APPEND files $<TARGET_FILE:${target}>)
    endif()
  endforeach()
  set(${out} ${files} PARENT_SCOPE)
endfunction()

# alpa_link_mlir_static(target [extra MLIR targets...]): links MLIR's archives into an executable or a module.
function(alpa_link_mlir_static target)
  alpa_static_closure(files ${ALPA_MLIR_ROOTS} ${ARGN})
  target_link_libraries(${target} PRIVATE ${files} ${CMAKE_DL_LIBS} pthread)
  target_link_options(${target} PRIVATE -Wl,--gc-sections -Wl,--as-needed)
  if(NOT STABLEHLO_ALPA_INSTRUMENT)
    # The runtime of a sanitizer has to be seen by the C++ library: it replaces operator new.
    target_link_options(${target} PRIVATE -Wl,--exclude-libs,ALL)
  endif()
endfunction()
