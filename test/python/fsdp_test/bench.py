"""Measures the CPU pack and checks it against its targets.

Usage: scripts/bench [--repeats N] [--output FILE]

Compiles bench/pack.mlir, times its entries and a memcpy of the packed size in
turn (at least 20 repeats, in random order, one thread), prints medians and the
ratios, writes all of it as JSON, and exits with 1 if a target is missed:

  fused     at most 0.50 of cast + same_type, at least 85 % of copy bandwidth
  narrow    at least 80 % of copy bandwidth
  cast, same_type   at least 75 % of copy bandwidth, so that the ratio is fair

Bandwidth is bytes read and written per second. Absolute times belong to the
machine; the ratios of one run are what to quote.
"""

import argparse
import json
import pathlib
import platform
import subprocess
import sys
import tempfile

from fsdp_test.paths import BUILD, ROOT


def measure(artefact, repeats):
    """Medians by benchmark: milliseconds of processor time, bytes per second."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run(
            [BUILD / "bin/pack-bench", artefact,
             f"--benchmark_repetitions={repeats}",
             "--benchmark_enable_random_interleaving=true",
             "--benchmark_min_time=0.02",
             f"--benchmark_out={file.name}", "--benchmark_out_format=json"],
            check=True, stdout=subprocess.DEVNULL)
        data = json.load(file)
    return {row["run_name"]: {"milliseconds": row["cpu_time"],
                              "bytes_per_second": row["bytes_per_second"]}
            for row in data["benchmarks"]
            if row.get("aggregate_name") == "median"}


def main():
    parser = argparse.ArgumentParser(
        prog="bench", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=21)
    parser.add_argument("--output", type=pathlib.Path,
                        default=BUILD / "bench/pack.json")
    options = parser.parse_args()
    if options.repeats < 20:
        parser.error("at least 20 repeats")

    subprocess.run([ROOT / "scripts/build"], check=True)
    artefact = BUILD / "bench/pack.so"
    artefact.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([BUILD / "bin/fsdp-compile", "--target=cpu",
                    "--opt-level=0", ROOT / "bench/pack.mlir",
                    "-o", artefact], check=True)
    medians = measure(artefact, options.repeats)

    copy = medians["copy"]["bytes_per_second"]
    of_copy = {name: row["bytes_per_second"] / copy
               for name, row in medians.items()}
    times = {name: row["milliseconds"] for name, row in medians.items()}
    ratio = times["fused"] / (times["cast"] + times["same_type"])
    for name, row in medians.items():
        print(f"{name:10} {row['milliseconds']:8.2f} ms"
              f" {100 * of_copy[name]:6.1f} % of copy")
    print(f"fused / (cast + same_type) = {ratio:.3f}")

    targets = [("fused / (cast + same_type)", ratio, "<=", 0.50),
               ("fused of copy", of_copy["fused"], ">=", 0.85),
               ("narrow of copy", of_copy["narrow"], ">=", 0.80),
               ("cast of copy", of_copy["cast"], ">=", 0.75),
               ("same_type of copy", of_copy["same_type"], ">=", 0.75)]
    missed = [f"{name} is {value:.3f}, expected {sign} {limit}"
              for name, value, sign, limit in targets
              if not (value <= limit if sign == "<=" else value >= limit)]
    options.output.write_text(json.dumps(
        {"command": f"scripts/bench --repeats {options.repeats}",
         "machine": platform.processor() or platform.machine(),
         "medians": medians, "of_copy": of_copy,
         "fused_of_cast_then_pack": ratio, "missed": missed}, indent=1) + "\n")
    for line in missed:
        print(f"missed: {line}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
