"""Pretends to be ``bin/spack``: answers the calls that fabricproof makes, and fails on order.

``FAKE_SPACK`` is its folder: ``orders.json`` says what goes wrong, ``calls`` is what was called.
Only the standard library, so that a call costs a few milliseconds.
"""

# ruff: noqa: PLC0415, T201 - imports cost most of a call
from __future__ import annotations

import json
import os
import re
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
        OSU: ("libexec/osu-micro-benchmarks/mpi/pt2pt/osu_latency", "osu.txt"),
        IMB: ("bin/IMB-MPI1", "imb.txt"),
    }
    prefix.mkdir(parents=True, exist_ok=True)
    if name not in programs or name in ORDERS.get("empty", ()):
        return
    inside, said = programs[name]
    path = prefix / inside
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\ncat {HOME / said}\nexit {ORDERS.get('program status', 0)}\n")
    path.chmod(0o755)


def find(environment: Path, rest: list[str]) -> None:
    for key, spec in specs_of(environment).items():
        if is_there(key, spec) and spec["name"] not in ORDERS.get("not found", ()):
            facts = (spec["name"], spec["version"], key, str(prefix_of(key, spec)), "+x  y=z")
            print(key if rest[-1] == "{hash}" else "\x1f".join(facts))


def module(environment: Path, rest: list[str]) -> None:
    text = (environment / "own" / "modules.yaml").read_text()
    tree = Path(re.search(r"roots:\s+lmod: (\S+)", text)[1])
    assert "core_compilers:\n      - gcc@12.2.0" in text
    below = tree / "openmpi" / "5.0.11-xp2tpao" / "Core"
    places = {"openmpi": tree / "Core", OSU: below, IMB: below}
    for spec in specs_of(environment).values():
        if spec["name"] in places and spec["name"] not in ORDERS.get("no module of", ()):
            path = places[spec["name"]] / spec["name"] / f"{spec['version']}.lua"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("-- a module\n")


def load(environment: Path, rest: list[str]) -> None:
    print("export FAKE_LOADED=yes;")


def compiler(environment: Path, rest: list[str]) -> None:
    if rest[0] == "list":
        print("\n".join(ORDERS.get("knows", ["==> No compilers available"])))
        return
    file = environment / "spack.yaml"
    found = ORDERS.get("finds", {"c": f"{HOME}/bin/gcc", "cxx": f"{HOME}/bin/g++"})
    external = {
        "spec": "gcc@12.2.0 languages:='c,c++'",
        "prefix": str(HOME),
        "extra_attributes": {"compilers": found},
    }
    sections = {"specs": [], "packages": {"gcc": {"externals": [external]}}} if found else {}
    file.write_text(json.dumps({"spack": sections}))


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
