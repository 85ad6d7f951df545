"""Plan the legs of one check: which path, which program, how hard, and what is due from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fabricproof.benchmarks.catalogue import meaning
from fabricproof.benchmarks.program import ProgramKind
from fabricproof.core.findings import Finding
from fabricproof.core.units import at_size, parse_size
from fabricproof.job.commands import (
    Effort,
    make_job,
    plan_ping_pong,
    plan_windowed,
)
from fabricproof.job.leg import PEER_SUITES, Leg, Plan, row_leg
from fabricproof.job.outcomes import BACK, LARGEST_SIZES, backward
from fabricproof.physics import Fabric, bound, latency_floor_us
from fabricproof.rfm.legs.programs import (
    choose_suite,
    find_program,
)
from fabricproof.site import FabricSpec, PartitionSpec, Site, protocol_of
from fabricproof.stacks.family import stated_transport
from fabricproof.stacks.launch import OWN_LAUNCHER, Launch, Layout
from fabricproof.stacks.stack import ResolvedStack, printed_name
from fabricproof.stacks.workload import has_window
from fabricproof.traffic.transports import transport_refusal
from fabricproof.verdict.value import Judgement, Reference

#: Where a site gives no latency, a small message is guessed to cost this many times the physical
#: floor; the guess only sizes the effort.
LATENCY_GUESS_FACTOR = 20

#: the memory of one machine, in MB/s, only to size the effort where there is no fabric
MEMORY_MB_S = 3000.0


def quantity_key(leg: Leg, judgement: Judgement) -> str:
    """Return the name of a quantity in ReFrame's perflog: path, then quantity, without colons."""
    return f"{leg.name}.{judgement.name}".replace(":", "_")


def with_error_limits(legs: Iterable[Leg], spec: FabricSpec) -> tuple[Leg, ...]:
    """Return legs over a fabric with what the site says may be lost on it."""
    if spec.errors is None:
        return tuple(legs)
    limits, origin = spec.error_limits, spec.errors.origin
    return tuple(replace(leg, error_limits=limits, error_limits_origin=origin) for leg in legs)


@dataclass(frozen=True, kw_only=True)
class LegPlanner:
    """Everything that decides how one program is run between two nodes of a partition."""

    site: Site
    partition: PartitionSpec
    stack: ResolvedStack
    fabric: str
    suite: str
    program: str
    stack_digest: str = ""
    """The build that is measured, which a reference may ask for."""
    hops: int | None = None
    """Switches between the pair that is measured, which a reference may ask for."""
    own_launcher: bool = False
    """Start the ranks with the MPI's own launcher, whatever the partition has."""

    @property
    def launcher(self) -> str:
        """What starts the ranks."""
        if self.own_launcher:
            return OWN_LAUNCHER[self.stack.family]
        return self.stack.launcher

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

    def plan(self, net_paths: str) -> Plan:
        """Return the legs for ``net_paths`` (``each`` or ``all``), or none and the reason."""
        refusal = self.refusal(self.rails[:1])
        if refusal is not None:
            return Plan(reason=refusal)
        if net_paths == "each":
            return Plan(legs=tuple(self.leg((name,)) for name in self.rails))
        refusal = self.refusal(self.rails)
        if refusal is not None:
            return Plan(reason=refusal)
        return Plan(legs=(self.leg(self.rails[:1]), self.leg(self.rails)))

    def backwards(self) -> tuple[Leg, ...]:
        """Return a short leg over each rail that sends the other way; none outside Slurm.

        How each launcher puts ranks so: :func:`fabricproof.stacks.launch.turned_command`.
        """
        partition = self.partition
        if partition.same_node or not partition.uses_slurm or self.spec.link is None:
            return ()
        sizes = self.leg(self.rails[:1]).expected_sizes[-LARGEST_SIZES:]
        return tuple(backward(self.leg((rail,), variant=BACK, sizes=sizes)) for rail in self.rails)

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
        if found is None:
            return None, reason
        return replace(self, suite=found, program=program), ""

    @property
    def protocol(self) -> str:
        """The protocol of the fabric, as in the fabric data."""
        return protocol_of(self.spec)

    @property
    def transport(self) -> str | None:
        """What the site says shall carry the messages; None for the family's default."""
        return stated_transport(self.stack.family, self.stack.spec.transport, self.spec.transport)

    def physics(self, rails: tuple[str, ...]) -> Fabric | None:
        """Return the physics of a path, None where the site declares no link."""
        if self.spec.link is None:
            return None
        return self.site.fabric(self.fabric, rails, num_flows=self.stack.spec.connections)

    def references(self, rails: tuple[str, ...]) -> dict[str, Reference]:
        """Return the site's own expectations of the planner's program over ``rails``."""
        return self.site.references_for(**self._asked(rails), hops=self.hops)

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

    def _environment(self, rails: tuple[str, ...]) -> dict[str, str]:
        """Return the variables that start the ranks and force their path over ``rails``."""
        return {
            **self.launch.environment,
            **self.stack.net_path(self.spec, rails, launcher=self.launcher).environment,
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
            lasts_seconds: as many rounds as take so long where the rate is its own; 0: as many as
                a leg has time for.
        """
        layout = layout or self._pair()
        references = self.references(rails)
        effort = self._effort(self.physics(rails), references, layout)
        if sizes:
            effort = replace(effort, sizes=tuple(each for each in effort.sizes if each in sizes))
        found = find_program(self.stack, self.suite, self.program)
        assert found.argv is not None, "choose_suite found it before"
        job = make_job(
            self.suite,
            self.program,
            found.argv,
            effort,
            num_ranks=layout.num_ranks,
            starts_above=starts_above,
        )
        reading = meaning(self.suite, self.program)
        windowed = reading.kind is ProgramKind.BANDWIDTH and effort.window_size > 1
        return Leg(
            name="+".join(rails) + (f".{variant}" if variant else ""),
            rails=rails,
            suite=self.suite,
            program=printed_name(self.program),
            environment={**self._environment(rails), **(environment or {})},
            commands=job.commands,
            num_nodes=layout.num_nodes,
            ranks_per_node=layout.ranks_per_node,
            nodes=layout.nodes,
            expected_sizes=job.sizes,
            traffic=replace(job.traffic, messages=None)
            if len(rails) > 1 or windowed
            else job.traffic,
            spread=len(rails) > 1 and reading.kind is ProgramKind.BANDWIDTH,
            required=self._required(job.sizes, references),
            references=references,
            tolerance=self.site.spec.tolerance,
            curve_tolerance=self.partition.curve_tolerance,
            fabric=self.stated(rails),
            same_node=self.partition.same_node,
            library=self.mpi_library(),
        )

    def _pair(self) -> Layout:
        return Layout(num_nodes=1, ranks_per_node=2) if self.partition.same_node else Layout()

    def mpi_library(self) -> str | None:
        """Return the MPI library that the program has to load; None if nobody proved one."""
        return None if self.suite in PEER_SUITES else self.stack.loaded_library(self.suite)

    def latency_guess_us(self, fabric: Fabric) -> float:
        """Return what a small message may take, to size the effort: as stated, else by physics."""
        stated = self.site.fabric_spec(self.fabric).typical_latency_us
        return stated or LATENCY_GUESS_FACTOR * latency_floor_us(fabric, 0).us

    def _effort(
        self, fabric: Fabric | None, references: dict[str, Reference], layout: Layout
    ) -> Effort:
        rate = _rate_mb_s(fabric)
        # Pairs share the rails: each moves its messages at its part of the rate.
        rate /= max(1, layout.num_ranks // 2)
        guess = 10.0 if fabric is None else self.latency_guess_us(fabric)
        if "latency" in references:
            guess = min(guess, references["latency"].value)
        reading = meaning(self.suite, self.program)
        windowed = has_window(self.suite, self.program) and reading.kind is ProgramKind.BANDWIDTH
        plan = plan_windowed if windowed else plan_ping_pong
        return plan(
            max_size=parse_size(self.partition.max_message_size),
            rate_mb_s=rate,
            latency_us=guess,
            seconds=self.partition.leg_seconds,
        )

    def _required(
        self, sizes: tuple[int, ...], references: dict[str, Reference]
    ) -> tuple[str, ...]:
        reading = meaning(self.suite, self.program)
        if reading.kind is ProgramKind.BANDWIDTH:
            due = [at_size("bandwidth", sizes[-1])]
            times = self.suite == "imb" and not reading.pairs_share_rails  # Uniband prints none
            if times and "latency" in references:
                smallest = next(size for size in sizes if size or reading.empty_crosses)
                due.append(at_size("latency", smallest))
            return tuple(due)
        return (at_size("latency", sizes[0]),)

    def stated(self, rails: tuple[str, ...]) -> Fabric | None:
        """Return the physics of a path as it is written to the plan: its protocol is named."""
        fabric = self.physics(rails)
        return fabric and replace(fabric, protocol=fabric.framing.name)


def _rate_mb_s(fabric: Fabric | None) -> float:
    return MEMORY_MB_S if fabric is None else bound(fabric).low_mb_s


def idle_leg(planner: LegPlanner, name: str, suite: str, program: str) -> Leg:
    """Return a leg that does nothing on every node: each says that it is there.

    ``suite`` and ``program``: as what its row stands in records.
    """
    row = row_leg(name, suite, program, planner.rails)
    return replace(row, environment=dict(planner.launch.environment), commands=(("true",),))
