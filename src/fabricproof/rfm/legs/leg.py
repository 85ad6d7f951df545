"""Plan the legs of one check: which path, which program, how hard, and what is due from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fabricproof.benchmarks.catalogue import meaning
from fabricproof.benchmarks.program import ProgramKind
from fabricproof.core.errors import UnavailableError
from fabricproof.core.findings import Finding
from fabricproof.core.units import at_size, parse_size
from fabricproof.job.commands import Effort, find_tool, make_job, plan_ping_pong, plan_windowed
from fabricproof.job.leg import PEER_SUITES, Leg, Plan, row_leg
from fabricproof.job.outcomes import BACK, LARGEST_SIZES, backward
from fabricproof.physics import Fabric, bound, latency_floor_us
from fabricproof.site import FabricSpec, PartitionSpec, Site, protocol_of
from fabricproof.stacks.family import stated_transport
from fabricproof.stacks.launch import OWN_LAUNCHER, Launch, Layout
from fabricproof.stacks.stack import ResolvedStack, printed_name
from fabricproof.stacks.wheels import Located
from fabricproof.stacks.workload import has_window
from fabricproof.traffic.transports import transport_refusal
from fabricproof.verdict.value import Reference

#: Where a site gives no latency, a small message is guessed to cost this many times the physical
#: floor; the guess only sizes the effort.
LATENCY_GUESS_FACTOR = 20

#: the memory of one machine, in MB/s, only to size the effort where there is no fabric
MEMORY_MB_S = 3000.0


def find_program(stack: ResolvedStack, suite: str, program: str) -> Located:
    """Return how ``program`` is called: a tool of the machine, else as the stack has it."""
    return find_tool(suite, program) if suite in PEER_SUITES else stack.find(suite, program)


def choose_suite(stack: ResolvedStack, suite: str, program: str) -> tuple[str | None, str]:
    """Return the suite of ``stack`` that has ``program``, the C programs before the ports.

    Returns:
        The suite and an empty reason, or None and why there is none.

    Raises:
        UnavailableError: the stack should have the program and is not installed: that is a check
            that was due and is MISSING, none to skip.
    """
    left_out = stack.spec.left_out.get(printed_name(program))
    if left_out is not None:
        return None, f"left out by the site: {left_out}"
    reasons = []
    for candidate in (suite, f"{suite}-mpi4py") if suite == "osu" else (suite,):
        found = find_program(stack, candidate, program)
        if found.argv is not None:
            return candidate, ""
        if found.lost:
            raise UnavailableError(found.reason)
        reasons.append(found.reason)
    # Only the stacks of wheels have ports: elsewhere the C programs are what is not there.
    return None, reasons[-1 if stack.kind == "provisioned" else 0]


@dataclass(frozen=True, kw_only=True)
class LegPlanner:
    """Everything that decides how one program is run between two nodes of a partition.

    Attributes:
        stack_digest: the build that is measured, which a reference may ask for.
        hops: switches between the pair that is measured, which a reference may ask for.
        own_launcher: the MPI's own launcher starts the ranks, whatever the partition has.
        dry_run: nothing will run: a Slurm that does not answer is a reason, no error.
    """

    site: Site
    partition: PartitionSpec
    stack: ResolvedStack
    fabric: str
    suite: str
    program: str
    stack_digest: str = ""
    hops: int | None = None
    own_launcher: bool = False
    dry_run: bool = False

    @property
    def launcher(self) -> str:
        """What starts the ranks."""
        return OWN_LAUNCHER[self.stack.family] if self.own_launcher else self.stack.launcher

    @property
    def launch(self) -> Launch:
        """How the ranks are started.

        Raises:
            UnavailableError: Intel MPI under srun without libpmi2.
        """
        return self.stack.launch_by(self.launcher)

    @property
    def spec(self) -> FabricSpec:
        """The declared fabric."""
        return self.site.fabric_spec(self.fabric)

    @property
    def rails(self) -> tuple[str, ...]:
        """The interfaces or ports of the fabric's rails."""
        return tuple(rail.interface for rail in self.spec.rails)

    @property
    def protocol(self) -> str:
        """The protocol of the fabric, as in the fabric data."""
        return protocol_of(self.spec)

    @property
    def transport(self) -> str | None:
        """What the site says shall carry the messages; None for the family's default."""
        return stated_transport(self.stack.family, self.stack.spec.transport, self.spec.transport)

    @property
    def argv(self) -> tuple[str, ...]:
        """How the program is called; it was found before."""
        found = find_program(self.stack, self.suite, self.program).argv
        assert found is not None, "choose_suite found it before"
        return tuple(found)

    @property
    def of_time(self) -> bool:
        """Whether the program measures a time."""
        return meaning(self.suite, self.program).kind is not ProgramKind.BANDWIDTH

    def why_not_between_nodes(self) -> str:
        """Return why the partition has no two nodes with a fabric between; empty if it has."""
        if self.partition.same_node or self.partition.num_nodes < 2:
            return f"partition {self.partition.name} has one node for it: no fabric between"
        return ""

    def why_one_rail(self) -> str:
        """Return why the fabric has nothing for several rails; empty where it has them."""
        return f"fabric {self.fabric} has one rail" if len(self.rails) < 2 else ""

    def transport_refusal(self) -> str | None:
        """Return why this stack's transport does not go over the fabric; None if it does."""
        return transport_refusal(self.stack.family, self.protocol, self.transport)

    def refusal(self, rails: tuple[str, ...]) -> str | None:
        """Return why this stack cannot be told to use ``rails``, None where it can."""
        return self.stack.net_path(self.spec, rails, launcher=self.launcher).refusal or None

    def of(self, suite: str, program: str) -> tuple[LegPlanner | None, str]:
        """Return the planner of another program of this stack, or None and why it has none.

        Raises:
            UnavailableError: the stack should have it, and it is gone.
        """
        found, reason = choose_suite(self.stack, suite, program)
        return (replace(self, suite=found, program=program) if found else None), reason

    def plan(self, net_paths: str) -> Plan:
        """Return the legs for ``net_paths`` (``each`` or ``all``), or none and the reason."""
        paths: list[tuple[str, ...]] = [(rail,) for rail in self.rails]
        if net_paths == "all":
            paths = [*paths[:1], self.rails]
        refusal = self.refusal(paths[0]) or (net_paths == "all" and self.refusal(self.rails))
        return Plan(reason=refusal) if refusal else Plan(legs=tuple(map(self.leg, paths)))

    def backwards(self) -> tuple[Leg, ...]:
        """Return a short leg over each rail that sends the other way; none outside Slurm."""
        partition = self.partition
        if partition.same_node or not partition.uses_slurm or self.spec.link is None:
            return ()
        sizes = self.leg(self.rails[:1]).expected_sizes[-LARGEST_SIZES:]
        return tuple(backward(self.leg((rail,), variant=BACK, sizes=sizes)) for rail in self.rails)

    def physics(self, rails: tuple[str, ...]) -> Fabric | None:
        """Return the physics of a path, None where the site declares no link."""
        if self.spec.link is None:
            return None
        return self.site.fabric(self.fabric, rails, num_flows=self.stack.spec.connections)

    def stated(self, rails: tuple[str, ...]) -> Fabric | None:
        """Return the physics of a path as it is written to the plan: its protocol is named."""
        fabric = self.physics(rails)
        return fabric and replace(fabric, protocol=fabric.framing.name)

    def latency_guess_us(self, fabric: Fabric | None) -> float:
        """Return what a small message may take, to size the effort: as stated, else by physics."""
        if fabric is None:
            return 10.0
        guess = LATENCY_GUESS_FACTOR * latency_floor_us(fabric, 0).us
        return self.spec.typical_latency_us or guess

    def rate_mb_s(self, fabric: Fabric | None) -> float:
        """Return what a path carries, to size the effort: by physics, else a machine's memory."""
        return bound(fabric).low_mb_s if fabric is not None else MEMORY_MB_S

    def references(self, rails: tuple[str, ...], **layout: int) -> dict[str, Reference]:
        """Return the site's own expectations of the planner's program over ``rails``."""
        return self.site.references_for(**{**self._asked(rails), "hops": self.hops, **layout})

    def declined(self, rails: tuple[str, ...]) -> tuple[Finding, ...]:
        """Return what is said of the references that another build was measured with."""
        return self.site.references_of_other_builds(**self._asked(rails))

    def _asked(self, rails: tuple[str, ...]) -> dict[str, Any]:
        return {
            "fabric": self.fabric,
            "suite": self.suite,
            "program": printed_name(self.program),
            "stack": self.stack.name,
            "num_rails": len(rails),
            "stack_digest": self.stack_digest,
        }

    def leg(
        self,
        rails: tuple[str, ...],
        *,
        variant: str = "",
        layout: Layout | None = None,
        environment: Mapping[str, str] | None = None,
        starts_above: Sequence[int] = (),
        sizes: Sequence[int] = (),
    ) -> Leg:
        """Return one leg of the planner's program.

        Args:
            rails: the interfaces or ports of its path.
            variant: what tells it from another leg over the same path: ``links4``.
            layout: nodes and ranks; a pair on two nodes where None, on one where the partition has
                one only.
            environment: variables beside those that force the path.
            starts_above: message sizes above each of which the program is started anew, so that the
                counters tell small messages from large.
            sizes: message sizes of it that are wanted, in bytes, neighbours; all where empty.
        """
        pair = Layout(num_nodes=1, ranks_per_node=2) if self.partition.same_node else Layout()
        layout, references = layout or pair, self.references(rails)
        effort = self._effort(self.physics(rails), references, layout)
        if sizes:
            effort = replace(effort, sizes=tuple(each for each in effort.sizes if each in sizes))
        job = make_job(
            self.suite,
            self.program,
            self.argv,
            effort,
            num_ranks=layout.num_ranks,
            starts_above=starts_above,
        )
        shared = len(rails) > 1 or (not self.of_time and effort.window_size > 1)
        path = self.stack.net_path(self.spec, rails, launcher=self.launcher).environment
        return Leg(
            name="+".join(rails) + (f".{variant}" if variant else ""),
            rails=rails,
            suite=self.suite,
            program=printed_name(self.program),
            environment={**self.launch.environment, **path, **(environment or {})},
            commands=job.commands,
            num_nodes=layout.num_nodes,
            ranks_per_node=layout.ranks_per_node,
            nodes=layout.nodes,
            expected_sizes=job.sizes,
            traffic=replace(job.traffic, messages=None) if shared else job.traffic,
            spread=len(rails) > 1 and not self.of_time,
            required=self._required(job.sizes, references),
            references=references,
            tolerance=self.site.spec.tolerance,
            curve_tolerance=self.partition.curve_tolerance,
            fabric=self.stated(rails),
            same_node=self.partition.same_node,
            library=self.mpi_library(),
        )

    def idle_leg(self, name: str, suite: str, program: str, num_nodes: int) -> Leg:
        """Return a leg that does nothing on every node: each says that it is there.

        ``suite`` and ``program``: as what its row stands in records.
        """
        row = row_leg(name, suite, program, self.rails)
        environment = dict(self.launch.environment)
        return replace(row, environment=environment, commands=(("true",),), num_nodes=num_nodes)

    def mpi_library(self) -> str | None:
        """Return the MPI library that the program has to load; None if nobody proved one."""
        return None if self.suite in PEER_SUITES else self.stack.loaded_library(self.suite)

    def _effort(
        self, fabric: Fabric | None, references: dict[str, Reference], layout: Layout
    ) -> Effort:
        guess = self.latency_guess_us(fabric)
        if "latency" in references:
            guess = min(guess, references["latency"].value)
        windowed = has_window(self.suite, self.program) and not self.of_time
        return (plan_windowed if windowed else plan_ping_pong)(
            max_size=parse_size(self.partition.max_message_size),
            # Pairs share the rails: each moves its messages at its part of the rate.
            rate_mb_s=self.rate_mb_s(fabric) / max(1, layout.num_ranks // 2),
            latency_us=guess,
            seconds=self.partition.leg_seconds,
        )

    def _required(
        self, sizes: tuple[int, ...], references: dict[str, Reference]
    ) -> tuple[str, ...]:
        if self.of_time:
            return (at_size("latency", sizes[0]),)
        due, reading = [at_size("bandwidth", sizes[-1])], meaning(self.suite, self.program)
        times = self.suite == "imb" and not reading.pairs_share_rails  # Uniband prints none
        if times and "latency" in references:
            smallest = next(size for size in sizes if size or reading.empty_crosses)
            due.append(at_size("latency", smallest))
        return tuple(due)
