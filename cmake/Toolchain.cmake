# Compiler, linker and flags that hold for the whole project.

if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR
    "the C++ compiler is ${CMAKE_CXX_COMPILER_ID} (${CMAKE_CXX_COMPILER}), but clang is needed:\n"
    "  the installed MLIR was built by clang, and MLIR identifies operation traits by the compiler's\n"
    "  spelling of their type names, which g++ spells differently; traits of our operations would be\n"
    "  invisible to MLIR. Configure with -DCMAKE_C_COMPILER=clang-22 -DCMAKE_CXX_COMPILER=clang++-22")
endif()

set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug or RelWithDebInfo" FORCE)
endif()

find_program(ALPA_LLD NAMES ld.lld-22 ld.lld)
if(NOT ALPA_LLD)
  message(FATAL_ERROR "the linker lld is needed (ld.lld-22 or ld.lld): it resolves MLIR's archives in any order")
endif()
add_link_options(-fuse-ld=${ALPA_LLD})

find_program(ALPA_CCACHE ccache)
if(ALPA_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER "${ALPA_CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${ALPA_CCACHE}")
endif()

add_compile_options(-Wall -Wextra -Wno-unused-parameter -ffunction-sections -fdata-sections)
