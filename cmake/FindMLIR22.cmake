# MLIR 22.1 and its CMake helpers; MLIR_DIR chooses another installation.

list(APPEND CMAKE_PREFIX_PATH /usr/lib/llvm-22)
find_package(MLIR 22.1 REQUIRED CONFIG)
message(STATUS "MLIR: ${MLIR_DIR}")

list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)

include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
include_directories(
  ${PROJECT_SOURCE_DIR}
  ${PROJECT_BINARY_DIR})
if(STABLEHLO_ALPA_STABLEHLO STREQUAL "bundled")
  include_directories(
    ${PROJECT_SOURCE_DIR}/dialects/stablehlo/include
    ${PROJECT_BINARY_DIR}/dialects/stablehlo/include)
endif()
separate_arguments(ALPA_LLVM_DEFINITIONS NATIVE_COMMAND "${LLVM_DEFINITIONS}")
add_definitions(${ALPA_LLVM_DEFINITIONS})
if(NOT LLVM_ENABLE_RTTI)
  set(ALPA_RTTI_FLAG -fno-rtti)
endif()
