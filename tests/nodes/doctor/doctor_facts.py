"""Facts from recorded answers, for the doctor's tests."""

from dataclasses import replace
from pathlib import Path

from fabricproof.nodes.doctor.examination import gather
from fabricproof.nodes.doctor.facts import Answer, Facts, HcaPort, Interface, NodeFacts
from fabricproof.nodes.doctor.findings import Diagnosis, Level
from fabricproof.nodes.doctor.probes import read_answers
from fabricproof.nodes.doctor.read import read_slurm
from fabricproof.nodes.doctor.subject import NetPath, Subject
from fabricproof.stacks.family import path_environment
from fabricproof.stacks.launch import Launch, plan_launch

DATA = Path(__file__).parents[2] / "data" / "doctor"
PMI2 = "/usr/lib/x86_64-linux-gnu/libpmi2.so.0"

STACKS = {
    "openmpi5": ("openmpi", "5.0.11"),
    "openmpi4": ("openmpi", "4.1"),
    "mpich5": ("mpich", "5.0.2"),
    "intelmpi": ("intelmpi", "2021.18.1"),
}


def recorded(name: str, status: int = 0) -> Answer:
    return Answer(command=name, output=(DATA / name).read_text(), status=status)


def net_path(
    family: str, protocol: str = "tcp", rails=("rail0",), transport=None, **facts
) -> NetPath:
    chosen = transport or ("native" if family == "openmpi" else "libfabric")
    return NetPath(
        fabric="eth0",
        protocol=protocol,
        link=facts.get("link"),
        rails=tuple(rails),
        transport=chosen,
        environment=path_environment(family, protocol, rails, transport=chosen),
    )


def subject(stack: str, **changes) -> Subject:
    family, version = STACKS[stack]
    launcher = changes.get("launcher", "srun")
    launch: Launch = plan_launch(family, launcher, pmi2_library=PMI2)
    made = Subject(
        site="test",
        source="site.toml",
        stack=stack,
        family=family,
        version=version,
        kind="provisioned",
        partition="compute",
        scheduler="slurm",
        launcher=launcher,
        launch=launch,
        options=launch.options,
        net_paths=(net_path(family), net_path(family, rails=("rail1",))),
        prefix="" if stack == "openmpi4" else f"/stacks/{stack}",
        settings={"OMPI_MCA_btl_tcp_links": "2"} if family == "openmpi" else {},
        mend=f"fabricproof stack install {stack}",
    )
    return replace(made, **changes)


def facts(stack: str, **changes) -> Facts:
    """Return the healthy facts of a provisioned stack on a node of the virtual cluster."""
    answers = read_answers((DATA / f"{stack}.node.txt").read_text(), {})
    base = Facts(
        subject=subject(stack, **changes),
        slurm=read_slurm(recorded("slurm-22.05.mpi-list.txt"), recorded("slurm-22.05.config.txt")),
    )
    return gather(base, answers, is_node=True)


def infiniband_node(**changes) -> NodeFacts:
    node = NodeFacts(
        host="n1",
        is_node=True,
        uid=1000,
        memlock_kib=-1,
        interfaces=(Interface(name="ib0", state="up"),),
        hcas=(
            HcaPort(
                device="mlx5_0",
                port=1,
                state="ACTIVE",
                rate="200 Gb/sec (4X HDR)",
            ),
        ),
        pmi_libraries=(),
    )
    return replace(node, **changes)


def at(findings, level: Level, topic: str | None = None) -> list[Diagnosis]:
    return [
        each for each in findings if each.level is level and (topic is None or each.topic == topic)
    ]
