"""Pretends to be ``bin/spack``: answers the calls that fabricproof makes, and fails on order.

``FAKE_SPACK`` is its folder: ``orders.json`` says what goes wrong, ``calls`` is what was called.
Only the standard library, so that a call costs a few milliseconds.
"""

# ruff: noqa: PLC0415, T201 - imports cost most of a call
from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

HOME = Path(os.environ["FAKE_SPACK"])
ORDERS = json.loads((HOME / "orders.json").read_text())
OSU, IMB = "osu-micro-benchmarks", "intel-mpi-benchmarks"


def prefix_of(key: str, spec: dict) -> Path:
    if spec.get("external"):
        return Path(spec["external"]["path"])
    return HOME / "install" / f"{spec['name']}-{spec['version']}-{key}"


def specs_of(environment: Path) -> dict:
    lock = environment / "spack.lock"
    return json.loads(lock.read_text())["concrete_specs"] if lock.is_file() else {}


def is_there(key: str, spec: dict) -> bool:
    return bool(spec.get("external")) or (prefix_of(key, spec) / ".done").exists()


def concretize(environment: Path, rest: list[str]) -> None:
    text = (HOME / "recorded.lock").read_text()
    text = text.replace("/opt/openmpi5", str(HOME / "openmpi5")).replace(
        "/usr/bin/", f"{HOME}/bin/"
    )
    (environment / "spack.lock").write_text(text)
    print("==> Concretized 3 specs:")


def install(environment: Path, rest: list[str]) -> None:
    for key, spec in specs_of(environment).items():
        prefix, name = prefix_of(key, spec), spec["name"]
        if not is_there(key, spec):
            print(f"==> Installing {name}-{spec['version']}-{key} [1/8]", flush=True)
            time.sleep(ORDERS.get("slow", 0))
            make(name, prefix)
            (prefix / ".done").touch()
        print(f"[+] {prefix}", flush=True)
        if ORDERS.get("install stops after") == name:
            sys.exit("==> Error: stopped on order")
        if ORDERS.get("install is killed after") == name:
            os.kill(os.getpid(), 9)


def make(name: str, prefix: Path) -> None:
    programs = {
        OSU: "libexec/osu-micro-benchmarks/mpi/pt2pt/osu_latency",
        IMB: "bin/IMB-MPI1",
    }
    prefix.mkdir(parents=True, exist_ok=True)
    if name in programs and name not in ORDERS.get("empty", ()):
        path = prefix / programs[name]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)


def find(environment: Path, rest: list[str]) -> None:
    for key, spec in specs_of(environment).items():
        if is_there(key, spec) and spec["name"] not in ORDERS.get("not found", ()):
            facts = (spec["name"], spec["version"], key, str(prefix_of(key, spec)), "+x  y=z")
            print(key if rest[-1] == "{hash}" else "\x1f".join(facts))


def load(environment: Path, rest: list[str]) -> None:
    folders = [HOME / "openmpi5" / "bin", HOME / "install" / "osu"]
    print(f"export CMAKE_PREFIX_PATH={HOME}/openmpi5;")
    print("export MANPATH=/man:;")
    print("export MPICC='a b';")
    print(f"export PATH={':'.join(map(str, folders))}:{os.environ['PATH']};")
    print("export SPACK_LOADED_HASHES=x;")


def uninstall(environment: Path, rest: list[str]) -> None:
    import shutil

    for key, spec in specs_of(environment).items():
        if f"/{key}" in rest:
            shutil.rmtree(prefix_of(key, spec))


def answer(name: str, environment: Path, rest: list[str]) -> None:
    order = ORDERS.get(name, {})
    if "child" in order:
        import subprocess

        # One that does not care for SIGINT, in a session with us: a compiler under make.
        ignore = "import signal, sys, time; signal.signal(signal.SIGINT, signal.SIG_IGN); "
        # It speaks when its number is written down: what it says ends us in some tests.
        speak = "sys.stdin.read(); print('child is here', flush=True); time.sleep(60)"
        command = [sys.executable, "-IS", "-c", ignore + speak]
        child = subprocess.Popen(command, stdin=subprocess.PIPE)
        (HOME / "pids").write_text(f"{os.getpid()} {child.pid}")
        assert child.stdin
        child.stdin.close()
        child.wait()
    if "output" in order:
        print(order["output"], end="", flush=True)
    if "status" in order:
        sys.exit(order["status"])
    globals()[name](environment, rest)


def main() -> None:
    arguments = [each for each in sys.argv[1:] if each != "--color=never"]
    with (HOME / "calls").open("a") as file:
        file.write(json.dumps(arguments) + "\n")
    (HOME / "environment.json").write_text(json.dumps(dict(os.environ)))
    if arguments == ["--version"]:
        print(ORDERS.get("version", "1.1.1 (0123456789ab)"))
        sys.exit(ORDERS.get("version status", 0))
    environment = Path()
    if arguments[0] == "-e":
        environment, arguments = Path(arguments[1]), arguments[2:]
    answer(arguments[0], environment, arguments[1:])


main()
