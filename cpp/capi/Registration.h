/*===- Registration.h - Dialects and passes in MLIR's C interface -*- C -*-===*\
|*                                                                            *|
|* For compilers that hold an MlirContext of their own; StablehloAlpa.h needs *|
|* none.                                                                      *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef CPP_CAPI_REGISTRATION_H
#define CPP_CAPI_REGISTRATION_H

#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Adds the dialects that the passes rely on, and the sharding rules of
 *  StableHLO's operations. */
void alpaRegisterDialects(MlirDialectRegistry registry);

/** Registers passes and pipelines, to be named in textual pipelines. May be
 *  called more than once, and from several threads. */
void alpaRegisterPasses(void);

/** True if the operation carries a sharding rule: its own, or one that was
 *  attached to it from outside. */
bool alpaOperationHasShardingRule(MlirOperation operation);

/** The mesh and shardings of the `alpa` dialect, `#alpa.mesh<["x"=2]>` and
 *  `#alpa.sharding<S0R>`. Null, with a diagnostic, where names repeat, sizes
 *  are not positive, or a dimension is outside of the tensor. */
MlirAttribute alpaMeshAttrGet(MlirContext context, intptr_t numAxes,
                              const MlirStringRef *names, const int64_t *sizes);

/** `dims` has one entry per mesh axis: the dimension it splits, -1 for none,
 *  -2 where the value is a partial sum. */
MlirAttribute alpaShardingAttrGet(MlirContext context, intptr_t rank,
                                  intptr_t numAxes, const int8_t *dims);
bool alpaAttributeIsASharding(MlirAttribute attribute);
int8_t alpaShardingAttrGetDim(MlirAttribute sharding, intptr_t axis);

#ifdef __cplusplus
}
#endif

#endif /* CPP_CAPI_REGISTRATION_H */
