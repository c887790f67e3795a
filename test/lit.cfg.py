"""The regression tests: IR in, IR or a run's results out."""

import glob
import os
import shutil
import subprocess

import lit.formats
from lit.llvm import llvm_config

config.name = "fsdp-opt"
config.test_format = lit.formats.ShTest(not llvm_config.use_lit_shell)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "python"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.fsdp_obj_root, "test")

# The interpreter that has Debian's NumPy, and our modules for it; what interprets
# PTX for the fake GPU, also in a process that has other modules.
python, modules = "/usr/bin/python3", os.path.join(config.test_source_root, "python")
config.environment["PYTHONPATH"] = modules
config.substitutions.append(
    ("%interpreter", f"PYTHONPATH={modules} exec {python} -m fsdp_test.ptx.server")
)
config.substitutions.append(("%python", python))
config.substitutions.append(("%src", config.fsdp_src_root))
config.substitutions.append(("%build", config.fsdp_obj_root))

llvm_config.use_default_substitutions()
bin_dir = os.path.join(config.fsdp_obj_root, "bin")
llvm_config.with_environment("PATH", bin_dir, append_path=True)
# `--param tools=FOLDER`: the tools of another build, as far as it has them.
other = lit_config.params.get("tools")
llvm_config.add_tool_substitutions(
    ["fsdp-opt", "fsdp-compile", "fsdp-run", "not", "split-file"],
    ([other] if other else []) + [bin_dir, config.llvm_tools_dir],
)
# `--param sanitized=NAME`: they are built with sanitizers, which reserve terabytes of
# address space, and make tools slower and larger.
sanitized = "sanitized" in lit_config.params
if sanitized:
    config.available_features.add("sanitized")
    config.available_features.add("sanitized-" + lit_config.params["sanitized"])
# Limits the KiB of a process's address space, except where that means nothing.
config.substitutions.append(("%limit_memory", "true" if sanitized else "ulimit -v"))
# For the modules of fsdp_test.ptx, which start it.
config.environment["FSDP_OPT"] = os.path.join(bin_dir, "fsdp-opt")

# NVIDIA's assembler, of any toolkit on this machine.
toolkits = [os.environ.get(n) for n in ("CUDA_ROOT", "CUDA_HOME", "CUDA_PATH")]
places = [os.path.join(t, "bin") for t in toolkits if t] + ["/usr/local/cuda/bin"]
places = os.pathsep.join(places)
ptxas = shutil.which("ptxas") or shutil.which("ptxas", path=places)
if ptxas:
    config.available_features.add("ptxas")
    config.substitutions.append(("%ptxas", ptxas))

# Its disassembler, and assemblers of several toolkits: where scripts/cuda-tools
# has put them. A toolkit's own disassembler may be older than an assembler.
fetched = os.path.join(config.fsdp_obj_root, "cuda-tools")
assemblers = sorted(glob.glob(os.path.join(fetched, "ptxas-*")))
if assemblers:
    config.available_features.add("assemblers")
    config.substitutions.append(("%assemblers", " ".join(assemblers)))
nvdisasm = shutil.which("nvdisasm", path=fetched)
nvdisasm = nvdisasm or shutil.which("nvdisasm")
nvdisasm = nvdisasm or shutil.which("nvdisasm", path=places)
if nvdisasm:
    config.available_features.add("nvdisasm")
    config.substitutions.append(("%nvdisasm", nvdisasm))

# Ranks that are processes need an MPI, when fsdp-run was built and now.
adapter = os.path.join(config.fsdp_obj_root, "lib", "libfsdprt_mpi.so")
if os.path.exists(adapter) and shutil.which("mpirun"):
    config.available_features.add("mpi")
    two_hosts = os.path.join(
        config.test_source_root, "Tools", "fsdp-run", "Inputs", "two_hosts.py"
    )
    if subprocess.run(
        [python, two_hosts, "--check"], capture_output=True
    ).returncode == 0:
        config.available_features.add("two-hosts")
config.substitutions.append(("%mpirun", "mpirun --allow-run-as-root --oversubscribe"))
