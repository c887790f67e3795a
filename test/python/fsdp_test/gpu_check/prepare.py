# Builds the folder for the device, on a machine without one.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Everything is what fsdp-compile makes: the image is taken out of the artefact,
# and the launch is what the artefact's entry asks of the driver, for which the
# fake of the unit tests stands in. The folder is small: images and plans only.

import ctypes
import datetime
import gzip
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import fsdp_test
from fsdp_test.ir.local_op import module_of
from fsdp_test.paths import BUILD, ROOT
from fsdp_test.ptx.local_ops import read_local_ops
from fsdp_test.ptx.traffic import least_bytes

from . import modules as texts
from . import workloads
from .folder import FATBIN_MAGIC, Module, Operation, image_of, write_index
from .runtime import LIBRARY, Context

PORTABLE = BUILD / "portable"
PACKAGE = Path(fsdp_test.__file__).parent
# What a device needs of the package.
CARRIED = [
    "__init__.py", "edges.py", "gpu_check", "oracle", "ptx/__init__.py",
    "ptx/local_ops.py", "ptx/reference.py",
]
DOOR = """\
#!/usr/bin/python3
# Checks and measures the kernels on this machine's device.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import sys

from fsdp_test.gpu_check.door import main

sys.exit(main())
"""


def run(*command, text=None):
    done = subprocess.run(
        [str(part) for part in command], input=text, capture_output=True, text=True
    )
    if done.returncode:
        shown = " ".join(str(part) for part in command)
        raise SystemExit(f"gpu-check: '{shown}' fails:\n{done.stderr[:4000]}")
    return done.stdout


def compile_for(target, text, artefact, level=0):
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write(text)
        file.flush()
        run(
            BUILD / "bin/fsdp-compile", f"--target={target}", f"--opt-level={level}",
            file.name, "-o", artefact,
        )


# --- out of an artefact -------------------------------------------------------


def ptx_of(text):
    """What the driver's compiler gets where there is no machine code."""
    printed = run(
        BUILD / "bin/fsdp-opt", "--fsdp-resolve-precision",
        "--fsdp-to-cuda=format=isa", text=text,
    )
    literal = re.search(r'fsdp_kernel_image\("((?:[^"\\]|\\.)*)"\)', printed)[1]
    escaped = re.compile(rb"\\([0-9A-Fa-f]{2}|\\)")
    return escaped.sub(
        lambda m: b"\\" if m[1] == b"\\" else bytes([int(m[1], 16)]), literal.encode()
    )


# A buffer of no bytes; the fake shows what the driver is asked for.
OF_NO_ELEMENTS = ("alloc 1", "free")
LAUNCH = re.compile(r"launch (\S+) (\d+)x(\d+) blocks of (\d+),")


class Recorder:
    """Runs entries on the fake driver, which notes what they ask for."""

    def __init__(self, folder):
        self.record = Path(folder, f"record.{os.getpid()}")
        os.environ["FSDPRT_LIBCUDA"] = str(BUILD / "lib/libfsdp_fake_gpu.so")
        os.environ.pop("FSDP_FAKE_INTERPRETER", None)
        os.environ["FSDP_FAKE_RECORD"] = str(Path(folder, "record."))
        self.context = Context(BUILD / "lib" / LIBRARY)

    def launches(self, library, function, arguments, results):
        """[(kernel, blocks, threads)] of one run; no operand is ever touched."""
        self.record.unlink(missing_ok=True)
        self.context.run(
            library, function, [4096 * (i + 1) for i in range(arguments)],
            [4096 * (i + 1) for i in range(results)],
        )
        lines = self.record.read_text().splitlines() if self.record.exists() else []
        found = []
        for line in lines:
            match = LAUNCH.match(line)
            if line in OF_NO_ELEMENTS:
                continue
            if not match:
                raise SystemExit(f"gpu-check: {function} also asks for '{line}'")
            kernel, x, y, threads = match.groups()
            found.append((kernel, (int(x), int(y)), int(threads)))
        return found


def operation(recorder, library, op, function):
    count = len(op.member_dtypes)
    arguments = count if op.packs else 1 + (count if op.adds else 0)
    launches = recorder.launches(
        library, function, arguments, 1 if op.packs else count
    )
    if len(launches) != 1:
        raise SystemExit(f"gpu-check: {function} has {len(launches)} launches")
    kernel, blocks, threads = launches[0]
    read, written = least_bytes(op)
    members = [op.member_elements(i) * t.size for i, t in enumerate(op.member_dtypes)]
    return Operation(
        function, kernel, blocks, threads, op.packs, op.adds, members,
        op.rows * op.layout.row_bytes, read, written,
    )


# --- the folder ---------------------------------------------------------------


class Preparation:
    def __init__(self, path, options):
        self.path, self.options = Path(path), options
        if self.path.exists():
            if any(self.path.iterdir()) and not (self.path / "index.json").exists():
                raise SystemExit(f"gpu-check: {path} is no folder of this program")
            shutil.rmtree(self.path)
        for folder in ("modules", "runs", "bin", "lib"):
            (self.path / folder).mkdir(parents=True)
        self.modules, self.runs = [], []

    def add_module(self, name, kind, ops, recorder):
        """Compiles one module of ops and notes its launches."""
        print(f"gpu-check: {name}", flush=True)
        tensors = module_of(ops, on_tensors=True)
        files = self.path / "modules"
        artefact = files / f"{name}.so"
        compile_for("cuda", tensors, artefact)
        library = ctypes.CDLL(str(artefact.resolve()))
        printed = run(BUILD / "bin/fsdp-opt", text=module_of(ops))
        functions = re.findall(r"func\.func @(\w+)", printed)
        operations = [
            operation(recorder, library, op, function)
            for op, function in zip(read_local_ops(printed), functions)
            if not op.is_empty
        ]
        (files / f"{name}.ptx.gz").write_bytes(gzip.compress(ptx_of(tensors), mtime=0))
        (files / f"{name}.mlir").write_text(printed)
        self.modules.append(Module(name, kind, operations))

    def add_modules(self):
        with tempfile.TemporaryDirectory() as scratch:
            recorder = Recorder(scratch)
            for workload in workloads.WORKLOADS:
                if self.options.divisor > 1:
                    workload = workload.scaled(self.options.divisor)
                ops = texts.measured(workload)
                self.add_module(workload.name, "workload", ops, recorder)
            groups = {"random": texts.random_ops(self.options.random, seed=0)}
            if self.options.exhaustive:
                groups["exhaustive"] = texts.exhaustive_ops()
            for kind, group in groups.items():
                for ranks, ops in sorted(group.items()):
                    self.add_module(f"{kind}{ranks}", kind, ops, recorder)
            recorder.context.destroy()

    def add_runs(self):
        """A step of four ranks and of one, with what the host makes of it."""
        for ranks in (4, 1):
            text = texts.step(ranks)
            with tempfile.TemporaryDirectory() as scratch:
                host = Path(scratch, "host.so")
                compile_for("cpu", text, host, level=2)
                device = self.path / "runs" / f"step{ranks}.so"
                compile_for("cuda", text, device, level=2)
                for entry in ("forward", "backward"):
                    name = f"step{ranks}.{entry}.txt"
                    printed = run(
                        BUILD / "bin/fsdp-run", host, f"--ranks={ranks}",
                        f"--entry={entry}", "--fill=1",
                    )
                    (self.path / "runs" / name).write_text(printed)
                    self.runs.append({
                        "artefact": device.name, "entry": entry, "ranks": ranks,
                        "expected": name,
                    })

    def add_programs(self):
        run("ninja", "-C", BUILD, "fsdp-run-portable", "fsdprt_portable")
        for folder, name in (("bin", "fsdp-run"), ("lib", LIBRARY)):
            run("strip", "-o", self.path / folder / name, PORTABLE / folder / name)
            (self.path / folder / name).chmod(0o755)
        ignore = shutil.ignore_patterns("__pycache__", "test_*")
        for name in CARRIED:
            source, target = PACKAGE / name, self.path / PACKAGE.name / name
            target.parent.mkdir(exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, ignore=ignore)
            else:
                shutil.copy(source, target)
        door = self.path / "gpu-check"
        door.write_text(DOOR)
        door.chmod(0o755)

    def about(self):
        def git(*arguments):
            done = subprocess.run(
                ["git", "-C", ROOT, *arguments], capture_output=True, text=True
            )
            return done.stdout.strip() if done.returncode == 0 else ""

        commit = git("rev-parse", "--short=12", "HEAD") or "unknown"
        changed = bool(git("status", "--porcelain", "--untracked-files=no"))
        first = image_of(self.path / "modules" / "P1.so")
        return {
            "commit": commit + (" with changes" if changed else ""),
            "prepared": datetime.date.today().isoformat(),
            "compiler": run(BUILD / "bin/fsdp-compile", "--version").strip(),
            "image": "machine code for sm_90" if first.startswith(FATBIN_MAGIC) else "PTX",
        }

    def finish(self):
        write_index(self.path, self.about(), self.modules, self.runs)
        files = [f for f in self.path.rglob("*") if f.is_file()]
        size = sum(f.stat().st_size for f in files)
        launches = sum(len(m.operations) for m in self.modules)
        print(
            f"gpu-check: {launches} launches of {len(self.modules)} modules in "
            f"{self.path}, {size / 2**20:.1f} MiB"
        )


def prepare(path, options):
    preparation = Preparation(path, options)
    preparation.add_modules()
    preparation.add_runs()
    preparation.add_programs()
    preparation.finish()
    return 0
