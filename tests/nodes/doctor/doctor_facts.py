"""Facts from recorded answers, for the doctor's tests."""

from dataclasses import replace
from pathlib import Path

from fabricproof.core.findings import Finding
from fabricproof.core.measure import Verdict
from fabricproof.nodes.doctor.examination import gather
from fabricproof.nodes.doctor.facts import Answer, Facts, NodeFacts, read_slurm
from fabricproof.nodes.doctor.probes import read_answers
from fabricproof.nodes.inventory.facts import Machine, Value
from fabricproof.site import FabricSpec, PartitionSpec, StackSpec
from fabricproof.stacks.family import path_environment
from fabricproof.stacks.launch import Launch, plan_launch
from fabricproof.stacks.stack import NetPath, ResolvedStack

DATA = Path(__file__).parents[2] / "data" / "doctor"
LOOKS = DATA.parent / "inventory"
PMI2 = "/usr/lib/x86_64-linux-gnu/libpmi2.so.0"

STACKS = {
    "openmpi5": ("openmpi", "5.0.11"),
    "openmpi4": ("openmpi", "4.1"),
    "mpich5": ("mpich", "5.0.2"),
    "intelmpi": ("intelmpi", "2021.18.1"),
}


def recorded(name: str, status: int = 0) -> Answer:
    return Answer(command=name, output=(DATA / name).read_text(), status=status)


def looked(name: str, status: int = 0) -> Answer:
    """Return what look.py printed on a node of tests/data/inventory, as an answer comes back."""
    text = (LOOKS / f"{name}.json").read_text(encoding="utf-8")
    return Answer(command="look", output=text.strip("\n"), status=status)


def declared(*rails: str, **keys) -> FabricSpec:
    """Return a fabric as fabric.toml declares it; the virtual cluster's where nothing is said."""
    virtual = {"link": "200MbE", "protocol": "tcp", "mtu": 1500, "shaper": {"burst_bytes": 3200}}
    interfaces = [{"interface": each} for each in rails or ("rail0", "rail1")]
    return FabricSpec.model_validate({"name": "eth0", "rails": interfaces, **(keys or virtual)})


def net_path(family: str, protocol: str = "tcp", rails=("rail0",), transport=None) -> NetPath:
    chosen = transport or ("native" if family == "openmpi" else "libfabric")
    return NetPath(
        fabric="eth0", protocol=protocol, rails=tuple(rails), transport=chosen,
        environment=path_environment(family, protocol, rails, transport=chosen),
    )  # fmt: skip


COMPUTE = PartitionSpec(name="compute", scheduler="squeue", fabrics=["eth0"], stacks=["mpich5"])


def subject(stack: str, partition=COMPUTE, **changes) -> ResolvedStack:
    family, version = STACKS[stack]
    launcher = changes.get("launcher", "srun")
    launch: Launch = plan_launch(family, launcher, pmi2_library=PMI2)
    if "options" in changes:
        launch = replace(launch, options=())
    options = list(changes.pop("options", ()))
    declares = changes.pop("family", family)
    spec = StackSpec(name=stack, family=declares, version=version, launcher_options=options)
    made = ResolvedStack(
        site="test", source="site.toml", spec=spec, version=version, kind="provisioned",
        partition=partition, launcher=launcher, launch=launch,
        net_paths=(net_path(family), net_path(family, rails=("rail1",))), fabrics=(declared(),),
        prefix="" if stack == "openmpi4" else f"/stacks/{stack}",
        settings={"OMPI_MCA_btl_tcp_links": "2"} if family == "openmpi" else {},
        mend=f"fabricproof stack install {stack}",
    )  # fmt: skip
    return replace(made, **changes)


def facts(stack: str, **changes) -> Facts:
    """Return the healthy facts of a provisioned stack on a node of the virtual cluster."""
    answers = read_answers((DATA / f"{stack}.node.txt").read_text(), {})
    answers["look"] = looked("virtual-cluster")
    base = Facts(
        subject=subject(stack, **changes),
        slurm=read_slurm(recorded("slurm-22.05.mpi-list.txt"), recorded("slurm-22.05.config.txt")),
    )
    return gather(base, answers, is_node=True)


PORT = {"state": "ACTIVE", "link": "HDR 4x", "rate_gbit_s": 200, "layer": "InfiniBand"}


def machine(**ports: dict[str, Value]) -> Machine:
    """Return a node with these devices, each of one port."""
    parts = {f"port {name}:1": facts for name, facts in ports.items()}
    rail = {"state": "up", "driver": "mlx5_core", "speed_mbit_s": 100000, "mtu": 1500}
    return Machine(node="n1", facts={"interface rail0": rail, **parts})


def infiniband_node(**changes) -> NodeFacts:
    node = NodeFacts(
        host="n1", is_node=True, uid=1000, memlock_kib=-1, machine=machine(mlx5_0=PORT),
        pmi_libraries=(),
    )  # fmt: skip
    return replace(node, **changes)


#: what ends with a status other than 0
WRONG = (Verdict.FAIL, Verdict.MISSING)


def at(findings, verdict, fact: str | None = None) -> list[Finding]:
    verdicts = verdict if isinstance(verdict, tuple) else (verdict,)
    return [each for each in findings if each.verdict in verdicts and fact in {None, each.fact}]
