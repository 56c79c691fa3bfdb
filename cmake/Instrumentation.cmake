# Builds that look at our code while it runs. MLIR's archives are not instrumented.

set(STABLEHLO_ALPA_INSTRUMENT "" CACHE STRING "sanitize, fuzz, coverage, or empty for none")
set_property(CACHE STABLEHLO_ALPA_INSTRUMENT PROPERTY STRINGS "" sanitize fuzz coverage)

set(ALPA_SANITIZERS address,undefined)
if(STABLEHLO_ALPA_INSTRUMENT STREQUAL "sanitize")
  # vptr needs RTTI, which MLIR is built without.
  set(flags -fsanitize=${ALPA_SANITIZERS} -fno-sanitize=vptr -fno-sanitize-recover=all -fno-omit-frame-pointer -g1 -O1)
elseif(STABLEHLO_ALPA_INSTRUMENT STREQUAL "fuzz")
  set(flags -fsanitize=fuzzer-no-link,${ALPA_SANITIZERS} -fno-sanitize=vptr -fno-sanitize-recover=all -g1 -O1)
elseif(STABLEHLO_ALPA_INSTRUMENT STREQUAL "coverage")
  set(flags -fprofile-instr-generate -fcoverage-mapping -O1
      -fprofile-list=${CMAKE_CURRENT_LIST_DIR}/uncovered.txt)
elseif(NOT STABLEHLO_ALPA_INSTRUMENT STREQUAL "")
  message(FATAL_ERROR
    "STABLEHLO_ALPA_INSTRUMENT is '${STABLEHLO_ALPA_INSTRUMENT}', must be sanitize, fuzz, coverage or empty")
endif()
add_compile_options(${flags})
add_link_options(${flags})
