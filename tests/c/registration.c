/*===- registration.c - Passes in an MlirContext of one's own -------------===*/

#include "capi_test.h"

#include "cpp/capi/Registration.h"

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/Diagnostics.h"
#include "mlir-c/Pass.h"
#include "mlir-c/Support.h"

#include <stdio.h>

static void print(MlirStringRef text, void *file) {
  fwrite(text.data, 1, text.length, file);
}

static MlirLogicalResult print_diagnostic(MlirDiagnostic diagnostic,
                                          void *file) {
  printf("diagnostic at ");
  mlirLocationPrint(mlirDiagnosticGetLocation(diagnostic), print, file);
  printf(": ");
  mlirDiagnosticPrint(diagnostic, print, file);
  printf("\n");
  return mlirLogicalResultSuccess();
}

/** Counts the operations of the entry function that have a sharding rule. */
static void count_rules(MlirModule module) {
  MlirOperation function =
      mlirBlockGetFirstOperation(mlirModuleGetBody(module));
  MlirBlock body = mlirRegionGetFirstBlock(mlirOperationGetRegion(function, 0));
  int with = 0, without = 0;
  for (MlirOperation op = mlirBlockGetFirstOperation(body);
       !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    if (alpaOperationHasShardingRule(op)) {
      ++with;
    } else {
      ++without;
    }
  }
  printf("operations with a rule: %d, without: %d\n", with, without);
}

static void print_attributes(MlirContext context) {
  MlirStringRef names[] = {mlirStringRefCreateFromCString("x"),
                           mlirStringRefCreateFromCString("y")};
  int64_t sizes[] = {2, 4}, wrong[] = {2, 0};
  int8_t dims[] = {1, -2}, outside[] = {5, -1};
  mlirAttributePrint(alpaMeshAttrGet(context, 2, names, sizes), print, stdout);
  printf("\n");
  MlirAttribute sharding = alpaShardingAttrGet(context, 2, 2, dims);
  mlirAttributePrint(sharding, print, stdout);
  printf(" %d %d %d\n", alpaAttributeIsASharding(sharding),
         alpaShardingAttrGetDim(sharding, 0),
         alpaShardingAttrGetDim(sharding, 1));
  if (mlirAttributeIsNull(alpaMeshAttrGet(context, 2, names, wrong)) &&
      mlirAttributeIsNull(alpaShardingAttrGet(context, 2, 2, outside))) {
    printf("wrong attributes are null\n");
  }
}

int plan_in_context(Source source) {
  MlirContext context = mlirContextCreate();
  MlirDialectRegistry registry = mlirDialectRegistryCreate();
  alpaRegisterDialects(registry);
  mlirContextAppendDialectRegistry(context, registry);
  mlirContextLoadAllAvailableDialects(context);
  alpaRegisterPasses();
  alpaRegisterPasses();
  mlirContextAttachDiagnosticHandler(context, print_diagnostic, stdout, NULL);
  print_attributes(context);

  int status = 1;
  MlirModule module = mlirModuleCreateParse(
      context, mlirStringRefCreate(source.data, source.length));
  if (!mlirModuleIsNull(module)) {
    count_rules(module);
    MlirPassManager manager = mlirPassManagerCreate(context);
    MlirLogicalResult parsed = mlirOpPassManagerAddPipeline(
        mlirPassManagerGetAsOpPassManager(manager),
        mlirStringRefCreateFromCString("alpa-prepare-pipeline"), print, stdout);
    if (mlirLogicalResultIsSuccess(parsed) &&
        mlirLogicalResultIsSuccess(
            mlirPassManagerRunOnOp(manager, mlirModuleGetOperation(module)))) {
      mlirOperationPrint(mlirModuleGetOperation(module), print, stdout);
      status = 0;
    }
    mlirPassManagerDestroy(manager);
    mlirModuleDestroy(module);
  }
  mlirDialectRegistryDestroy(registry);
  mlirContextDestroy(context);
  return status;
}
