# Run from the repository root:
# lit tests/lit [--param build=FOLDER] [--param llvm=FOLDER] [--param tool=mlir-opt]

import os
import sys

import lit.formats

# lit hands these two over as globals.
config = globals()["config"]
lit_config = globals()["lit_config"]

root = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
build = os.path.join(root, lit_config.params.get("build", "build"))
llvm = lit_config.params.get("llvm", "/usr/lib/llvm-22/bin")

config.name = "stablehlo_alpa"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(build, "tests", "lit")
config.environment["PATH"] = os.pathsep.join(
    [os.path.join(build, "bin"), llvm, config.environment.get("PATH", "")]
)
config.substitutions.append(("%build", build))
config.substitutions.append(("%plugin", os.path.join(build, "lib", "AlpaPlugin.so")))

# --param tool=mlir-opt: the tests of passes once more, under stock mlir-opt with the plugin.
if lit_config.params.get("tool") == "mlir-opt":
    config.name = "stablehlo_alpa under mlir-opt"
    script = os.path.join(os.path.dirname(__file__), "stock_mlir_opt.py")
    stock = f"%{{python}} {script} {os.path.join(llvm, 'mlir-opt')} %plugin"
    config.substitutions.insert(0, ("stablehlo-alpa-opt", stock))
    config.substitutions.append((r"%{python}", sys.executable))
    config.test_exec_root = os.path.join(build, "tests", "lit-mlir-opt")
