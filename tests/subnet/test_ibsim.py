"""Real opensm and infiniband-diags over fabrics that ibsim simulates, with real faults in them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fabricproof.core.measure import Verdict
from fabricproof.subnet import Expected, SubnetLook, join, judge_look
from fabricproof.subnet.live import SubnetAccess, ask
from simulated_fabric import PATIENCE, SimulatedFabric, needs_ibsim

pytestmark = [pytest.mark.ibsim, needs_ibsim, pytest.mark.timeout(180)]

NETS = Path(__file__).resolve().parents[1] / "data" / "ibsim"

Starter = Callable[..., SimulatedFabric]


@pytest.fixture(autouse=True)
def opted_in(request: pytest.FixtureRequest) -> None:
    """Leave the simulated fabrics to those who ask for them."""
    if "ibsim" not in request.config.getoption("markexpr"):
        pytest.skip("opt in: pytest -m ibsim")


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Starter]:
    """Start a fabric from a topology file, changed or not, with opensm on ``master``."""
    made: list[SimulatedFabric] = []

    def start(name: str, master: str, *changes: tuple[str, str]) -> SimulatedFabric:
        text = (NETS / name).read_text()
        for old, new in changes:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        monkeypatch.chdir(tmp_path)  # libumad2sim writes its picture of /sys there
        net = tmp_path / "net"
        net.write_text(text)
        fabric = SimulatedFabric(folder=tmp_path)
        made.append(fabric)
        fabric.looks_from = "host7" if name == "tree.net" else "node11"
        for key in ("IBSIM_SOCKNAME", "SIM_HOST"):
            monkeypatch.setenv(key, fabric.environment(fabric.looks_from)[key])
        fabric.start(net)
        if master:
            fabric.manage(master, 2)
            fabric.until(lambda: is_up(fabric), "all links Active")
        return fabric

    yield start
    for fabric in made:
        fabric.end()


def is_up(fabric: SimulatedFabric) -> bool:
    said = fabric.run("iblinkinfo").stdout
    return "LinkUp" in said and "Initialize" not in said and "Armed" not in said


def look() -> SubnetLook:
    return join(ask(SubnetAccess(via=("ibsim-run",), timeout_seconds=PATIENCE)))


def sentences(look: SubnetLook, *, link: str = "EDR 4x", **expected: object) -> list[str]:
    from fabricproof.physics import find_link  # noqa: PLC0415 - only here

    result = judge_look(
        look,
        Expected(link=find_link(link) if link else None, **expected),  # type: ignore[arg-type]
    )
    return [each.text for each in result.findings if each.verdict is not Verdict.PASS]


def test_a_tree(start: Starter) -> None:
    start("tree.net", "host1")
    seen = look()
    assert sentences(seen, hosts=tuple(f"host{number}" for number in range(1, 9))) == []
    assert len(seen.network.cables) == 24


def test_a_torus(start: Starter) -> None:
    start("torus.net", "node00")
    seen = look()
    assert sentences(seen, link="") == []


def test_a_narrow_and_a_slow_link(start: Starter) -> None:
    """Ibsim takes the enabled width (w) and speed (e) of a port when somebody sets one of them."""
    fabric = start(
        "tree.net",
        "host1",
        ('[10]\t"spine1"[2]\n', '[10]\t"spine1"[2]\tw=1\n'),
        ('[3]\t"host3"[1]\n', '[3]\t"host3"[1]\te=1\n'),
    )
    leaf = lid_of("leaf1")
    fabric.run("ibportstate", str(leaf), "10", "width", "1")
    fabric.run("ibportstate", str(leaf), "3", "espeed", "1")
    slow, narrow = sentences(look())
    assert slow.startswith("host3 HCA-1 port 1 - leaf1 port 3 is at FDR 4x")
    assert narrow.startswith("leaf1 port 10 - spine1 port 2 is at EDR 1x (25 Gb/s)")


def lid_of(name: str) -> int:
    network = look().network
    (lid,) = [node.lid for node in network.nodes.values() if node.description == name]
    assert lid is not None
    return lid


def test_a_cable_out_and_errors_that_rose(start: Starter) -> None:
    fabric = start("tree.net", "host1")
    fabric.tell('Unlink "leaf1"[9]')
    fabric.tell('PerformanceSet "leaf2"[1] PortCounters.SymbolErrorCounter=65535')
    fabric.tell('PerformanceSet "leaf2"[2] PortCounters.PortRcvErrors=12')
    after = look()
    found = sentences(after)
    assert any(each.startswith("leaf1 - spine1: 1 cable where 3") for each in found)
    assert any("symbol_error of leaf2 port 1 stands at its end" in each for each in found)


def test_a_host_that_goes(start: Starter) -> None:
    fabric = start("tree.net", "host1")
    fabric.tell('Unlink "host8"')
    assert any("host8 is expected" in each for each in sentences(look(), hosts=("host8",)))


def test_a_host_whose_rails_are_crossed(start: Starter) -> None:
    fabric = start("tree.net", "host1")
    for leaf in ("leaf1", "leaf2"):
        fabric.tell(f'Unlink "{leaf}"[3]')
    fabric.tell('Link "leaf1"[3] "host3"[2]')
    fabric.tell('Link "leaf2"[3] "host3"[1]')
    fabric.until(lambda: is_up(fabric), "all links Active")
    (found,) = sentences(look())
    assert found.startswith(
        "host3: HCA-1 port 1 hangs on leaf2, where other hosts have HCA-1 port 2; "
        "HCA-1 port 2 hangs on leaf1, where other hosts have HCA-1 port 1: crossed"
    )


def test_a_second_manager(start: Starter) -> None:
    fabric = start("tree.net", "host1")
    fabric.manage("host5", 0)
    seen = look()
    assert seen.managers is not None
    assert [each.state for each in seen.managers] == [3, 2]
    assert sentences(seen) == []


def test_a_manager_that_died(start: Starter, fabricproof: Callable[..., object]) -> None:
    """Links stay Active without it, and nothing new would join: it must not look well."""
    fabric = start("tree.net", "host1")
    manager = fabric.processes[-1]
    manager.kill()
    manager.wait(timeout=PATIENCE)
    ended = fabricproof("subnet", "check", "--via", "ibsim-run", "--timeout", "30")
    assert ended.status == 69  # type: ignore[attr-defined]
    assert "no subnet manager answers" in ended.err  # type: ignore[attr-defined]


def test_no_manager(start: Starter) -> None:
    start("tree.net", "")
    line = [sys.executable, "-m", "fabricproof.cli", "subnet", "check", "--via", "ibsim-run"]
    ended = subprocess.run(
        [*line, "--timeout", "20"], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert ended.returncode == 69
    assert "no subnet manager answers on this fabric" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_a_fabric_that_is_not_there_ends_in_time(
    monkeypatch: pytest.MonkeyPatch, fabricproof: Callable[..., object], tmp_path: Path
) -> None:
    """Nobody serves the socket: the tools wait for ever, and we do not."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IBSIM_SOCKNAME", "fabricproof-nobody")
    ended = fabricproof("subnet", "check", "--via", "ibsim-run", "--timeout", "1")
    assert ended.status == 69  # type: ignore[attr-defined]
    assert "did not end in 1 s" in ended.err  # type: ignore[attr-defined]
