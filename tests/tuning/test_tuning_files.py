"""The text of tuning files, read back as the libraries read it."""

import json
import math
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from damaged import damages
from fabricproof.cli.site.tune import _shown
from fabricproof.core.errors import ConfigError, FabricproofError, ParseError
from fabricproof.tuning.knobs import Knobs, find_knobs
from fabricproof.tuning.proposal import propose, toml_line
from fabricproof.tuning.sweeps import Rule, rules_of, sweeps_of
from fabricproof.tuning.write import (
    MPICH_SELECTION,
    OPENMPI_HAN,
    OPENMPI_RULES,
    PAGE_BYTES,
    Mending,
    TuningWritten,
    selection_file,
    table_in,
    write,
)
from made_sweeps import alike, planted, sweep_record


def knobs_of(family: str, version: str, collective: str) -> Knobs:
    knobs, reason = find_knobs(family, version, collective)
    assert knobs is not None, reason
    return knobs


def mending(knobs: Knobs, ranks: int, *rules: tuple[int | None, int | None, str]) -> Mending:
    return Mending(
        knobs=knobs,
        num_ranks=ranks,
        rules=tuple(
            Rule(first_bytes=first, last_bytes=last, algorithm=knobs.find(name), gain=2.0)
            for first, last, name in rules
        ),
    )


def numbers(text: str) -> list[str]:
    """Return the tokens of a rules file, comments left out, as Open MPI's reader sees them."""
    return [token for line in text.splitlines() for token in line.partition("#")[0].split()]


def tuned_choice(text: str, rule_id: int, ranks: int, size: int) -> int:
    """Return the algorithm that coll_tuned_dynamic_rules.c would find: nearest at or below."""
    tokens = iter(map(int, numbers(text)))
    chosen = 0
    for _ in range(next(tokens)):
        collective = next(tokens)
        best: list[tuple[int, int]] = []
        for number in range(next(tokens)):
            com_size = next(tokens)
            rules = []
            for _ in range(next(tokens)):
                first, algorithm, fan, segment = (next(tokens) for _ in range(4))
                assert (fan, segment) == (0, 0)
                rules.append((first, algorithm))
            assert rules[0][0] == 0, "the library refuses a file without a rule for 0"
            if number == 0 or com_size <= ranks:
                best = rules
        if collective == rule_id:
            chosen = [algorithm for first, algorithm in best if first <= size][-1]
    assert next(tokens, None) is None
    return chosen


def han_choice(text: str, collective: str, ranks: int, size: int) -> str:
    """Return the component that coll_han_dynamic.c would find: the last at or below."""
    tokens = iter(numbers(text))
    chosen = "han"
    for _ in range(int(next(tokens))):
        name = next(tokens)
        assert (next(tokens), next(tokens)) == ("1", "global_communicator")
        confs = []
        for _ in range(int(next(tokens))):
            com_size = int(next(tokens))
            rules = [(int(next(tokens)), next(tokens)) for _ in range(int(next(tokens)))]
            assert rules[0][0] == 0
            confs.append((com_size, rules))
        assert confs[0][0] == 1, "the library refuses a file that does not begin with one rank"
        if name == collective:
            rules = [each for com_size, each in confs if com_size <= ranks][-1]
            chosen = [component for first, component in rules if first <= size][-1]
    assert next(tokens, None) is None
    return chosen


ranges = st.lists(st.integers(0, 22), min_size=2, max_size=8, unique=True).map(sorted)


@given(steps=ranges, ranks=st.integers(2, 300), data=st.data())
@pytest.mark.parametrize("collective", ["bcast", "allgather"])
def test_open_mpi_finds_each_rule_in_its_range_and_its_own_choice_elsewhere(
    collective, steps, ranks, data
):
    knobs = knobs_of("openmpi", "5.0.11", collective)
    pairs = list(zip(steps[::2], steps[1::2], strict=False))
    rules = [
        (1 << first, 1 << last, data.draw(st.sampled_from(knobs.algorithms)).id)
        for first, last in pairs
    ]
    files = write([mending(knobs, ranks, *rules)], ["run 7 of 12 nodes"]).files
    unit = ranks if collective == "allgather" else 1
    for size in {
        0,
        *(value for rule in rules for first in rule[:2] for value in (first, first + 1)),
    }:
        wanted = next((name for first, last, name in rules if first <= size <= last), "0")
        found = tuned_choice(files[OPENMPI_RULES], knobs.rule_id or 0, ranks, size * unit)
        assert str(found) == wanted, size
        component = han_choice(files[OPENMPI_HAN], collective, ranks, size)
        assert component == ("tuned" if wanted != "0" else "han"), size
        for other in (ranks - 1, ranks + 1):
            assert tuned_choice(files[OPENMPI_RULES], knobs.rule_id or 0, other, size * unit) == 0
            assert han_choice(files[OPENMPI_HAN], collective, other, size) == "han"


def test_one_file_of_open_mpi_holds_several_collectives_and_numbers_of_ranks():
    bcast, barrier = (knobs_of("openmpi", "4.1", each) for each in ("bcast", "barrier"))
    written = write(
        [
            mending(bcast, 4, (1024, 4096, "3")),
            mending(bcast, 5, (1024, 2048, "6")),
            mending(barrier, 4, (None, None, "6")),
        ],
        [],
    )
    text = written.files[OPENMPI_RULES]
    assert tuned_choice(text, 7, 4, 4096) == 3
    assert tuned_choice(text, 7, 5, 2048) == 6
    assert tuned_choice(text, 7, 5, 4096) == 0
    assert tuned_choice(text, 7, 6, 2048) == 0
    assert tuned_choice(text, 6, 4, 0) == 6
    assert OPENMPI_HAN not in written.files
    assert written.environment["OMPI_MCA_coll_tuned_bcast_algorithm"] == "0"


def test_intel_mpi_gets_a_table_of_all_sizes_without_a_gap():
    knobs = knobs_of("intelmpi", "2021.18.1", "allreduce")
    written = write([mending(knobs, 8, (4, 1024, "3"), (65536, 65536, "14"))], [])
    assert written.environment == {"I_MPI_ADJUST_ALLREDUCE": "3:0-65535;14:65536-2147483647"}
    assert "every number of ranks" in written.notes[0]
    assert not written.files
    alone = write([mending(knobs, 8, (4, 1024, "3"))], []).environment
    assert alone == {"I_MPI_ADJUST_ALLREDUCE": "3"}


def test_intel_mpi_has_one_table_for_all_numbers_of_ranks():
    knobs = knobs_of("intelmpi", "2021.18.1", "allreduce")
    with pytest.raises(ConfigError, match="one table for all numbers of ranks"):
        write([mending(knobs, each, (4, 4, "3")) for each in (4, 8)], [])


INTEL = {"family": "intelmpi", "mpi_version": "2021.18.1", "stack": "intelmpi"}


def test_intel_mpi_names_a_preset_as_good_where_its_own_choice_was_fine():
    (sweep,) = sweeps_of([planted(**INTEL)], "here")
    assert [
        (rule.first_bytes, rule.algorithm and rule.algorithm.id) for rule in rules_of(sweep)
    ] == [
        (16384, "4"),
    ]
    assert rules_of(sweep)[0].last_bytes == 65536


def test_intel_mpi_is_refused_a_table_that_would_lose_elsewhere():
    record = planted(**INTEL)
    for each in record["series"]:
        if each["algorithm"] == "own":
            each["times_us"][2]["us"] = alike(5000.0, 3)
    (sweep,) = sweeps_of([record], "here")
    with pytest.raises(ConfigError, match="none of its algorithms is as good"):
        rules_of(sweep)


TABLE = json.dumps(
    {
        "collective=bcast": {
            "comm_type=intra": {"avg_msg_size=any": {"algorithm=MPIR_Bcast_intra_binomial": {}}},
            "comm_type=inter": {"algorithm=MPIR_Bcast_inter_remote_send_local_bcast": {}},
        },
        "collective=ibcast": {"comm_type=intra": {"algorithm=own": {}}},
    }
)


def mpich_choice(text: str, collective: str, ranks: int, size: int) -> str:
    """Return the algorithm that csel.c finds: the first branch whose condition holds."""
    node = json.loads(text)[f"collective={collective}"]["comm_type=intra"]
    while True:
        for key, branch in node.items():
            name, mark, limit = key.partition("<")
            if key.startswith("algorithm="):
                return key.removeprefix("algorithm=")
            value = ranks if name == "comm_size" else size
            equal = limit.startswith("=")
            bound = int(limit.lstrip("=")) if mark else 0
            if key.endswith("=any") or (value <= bound if equal else value < bound):
                node = branch
                break
        else:
            raise AssertionError(f"no branch of {list(node)}")


def test_mpich_gets_its_own_table_with_the_rules_in_front():
    knobs = knobs_of("mpich", "5.0.2", "bcast")
    written = write([mending(knobs, 4, (1024, 4096, "scatter_ring_allgather"))], [], TABLE)
    text = written.files[MPICH_SELECTION]
    own, ring = "MPIR_Bcast_intra_binomial", "MPIR_Bcast_intra_scatter_ring_allgather"
    for ranks, size, wanted in (
        (4, 1023, own), (4, 1024, ring), (4, 4096, ring), (4, 4097, own), (3, 2048, own),
        (5, 2048, own),
    ):  # fmt: skip
        assert mpich_choice(text, "bcast", ranks, size) == wanted, (ranks, size)
    assert json.loads(text)["collective=ibcast"] == json.loads(TABLE)["collective=ibcast"]
    assert json.loads(text)["collective=bcast"]["comm_type=inter"]
    assert written.environment["MPIR_CVAR_BCAST_INTRA_ALGORITHM"] == "auto"


def test_a_selection_file_never_fills_its_last_page():
    knobs = knobs_of("mpich", "5.0.2", "bcast")
    one = mending(knobs, 4, (1024, 4096, "binomial"))
    for filler in range(3 * PAGE_BYTES):
        table = json.dumps({**json.loads(TABLE), "x": "y" * filler})
        text = selection_file(table, [one])
        assert len(text.encode()) % PAGE_BYTES != 0
        if len(text.encode()) % PAGE_BYTES == 1:
            return
    raise AssertionError("no size came near a page")


def test_the_table_is_found_in_a_library_among_others():
    other = b'{"collective=bcast":{"comm_type=intra":{}}}\0'
    broken = b'{"collective=ibcast": "collective=ibcast"'
    data = b"\x7fELF" + other + broken + b"\0" + TABLE.replace(" ", "").encode() + b"\0rest"
    assert table_in(data) == TABLE.replace(" ", "")
    assert table_in(b"\x7fELF" + other + broken) is None


def test_a_table_of_another_form_is_refused():
    knobs = knobs_of("mpich", "5.0.2", "bcast")
    one = mending(knobs, 4, (1024, 4096, "binomial"))
    with pytest.raises(ParseError, match="unknown form"):
        selection_file('{"collective=barrier": {}}', [one])


def test_mpich_without_its_table_gets_one_algorithm_or_a_refusal():
    knobs = knobs_of("mpich", "5.0.2", "bcast")
    one = mending(knobs, 4, (1024, 4096, "tree"))
    with pytest.raises(ConfigError, match="none wins somewhere without losing elsewhere"):
        write([one], [])
    fit = Mending(knobs=knobs, num_ranks=4, rules=one.rules, for_all="tree")
    written = write([fit], [], TABLE)
    assert written.environment["MPIR_CVAR_BCAST_INTRA_ALGORITHM"] == "tree"
    assert "others nobody knows" in written.notes[0]


def test_no_rules_and_unlike_families_are_refused():
    with pytest.raises(ConfigError, match="rules for one MPI"):
        write([], [])
    unlike = [
        mending(knobs_of(*each, "bcast"), 4, (4, 4, name))
        for each, name in ((("openmpi", "4.1"), "1"), (("intelmpi", "2021.18"), "1"))
    ]
    with pytest.raises(ConfigError, match="one family"):
        write(unlike, [])


def test_a_planted_sweep_gets_rules_for_the_sizes_that_lose_and_no_others():
    (sweep,) = sweeps_of([planted()], "here")
    (rule,) = rules_of(sweep)
    assert (rule.first_bytes, rule.last_bytes) == (16384, 32768)
    assert rule.algorithm is not None
    assert rule.algorithm.id == "4"
    assert rule.gain == pytest.approx(3.0, rel=0.03)


def test_a_site_that_forces_keeps_by_a_rule_what_was_as_good():
    forced = {
        "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
        "OMPI_MCA_coll_tuned_allgather_algorithm": "1",
    }
    (sweep,) = sweeps_of([planted(own_environment=forced)], "here")
    rules = rules_of(sweep)
    assert [(rule.first_bytes, rule.algorithm and rule.algorithm.id) for rule in rules] == [
        (16384, "4"),
        (65536, "1"),
    ]
    proposal = propose([sweep])
    assert proposal is not None
    assert set(proposal.replaced) == set(forced)
    after = proposal.adopted({**forced, "OMPI_MCA_btl_tcp_links": "2"}, "/shared/tuning")
    assert after["OMPI_MCA_btl_tcp_links"] == "2"
    assert after["OMPI_MCA_coll_tuned_allgather_algorithm"] == "0"
    assert tomllib.loads(toml_line(after))["environment"] == after


def test_where_the_librarys_own_choice_is_best_the_variables_are_taken_away():
    record = planted(own_environment={"OMPI_MCA_coll_tuned_allgather_algorithm": "1"})
    sizes = (16384, 32768, 65536)
    record["series"] = [each for each in record["series"] if each["algorithm"] in {"own", "2"}]
    auto = {16384: 1000.0, 32768: 2000.0, 65536: 4000.0}
    record["series"].append(
        {
            "algorithm": "auto",
            "label": "the library's own choice",
            "times_us": [{"size": size, "us": alike(auto[size], 2)} for size in sizes],
        }
    )
    (sweep,) = sweeps_of([record], "here")
    proposal = propose([sweep])
    assert proposal is not None
    assert proposal.written == TuningWritten()
    assert proposal.adopted({"OMPI_MCA_coll_tuned_allgather_algorithm": "1"}, "/x") == {}
    trial = proposal.trial_record("/x")
    assert trial["environment"]["OMPI_MCA_coll_tuned_use_dynamic_rules"] == "0"


def test_without_a_loser_there_is_nothing_to_propose():
    equal = {name: {16384: alike(100.0, 3)} for name in ("own", "2", "4")}
    assert propose(sweeps_of([sweep_record(equal)], "here")) is None


@pytest.mark.parametrize(
    "spoil",
    [{"series": None}, {"bar": {"luck": 7}}, {"family": "mvapich"}, {"num_nodes": "many"}],
)
def test_a_damaged_record_is_refused(spoil):
    with pytest.raises(ParseError):
        sweeps_of([{**planted(), **spoil}], "records.jsonl")


@given(record=damages(planted()))
def test_whatever_is_strange_in_a_record_is_refused_or_can_be_written(record):
    """Infinite ranks, a size that is a text, a rail that is a list: `tune` fell over each."""
    try:
        sweeps = sweeps_of([record], "records.jsonl")
        proposal = propose(sweeps)
    except FabricproofError:
        return
    for sweep in sweeps:
        assert list(_shown(sweep))
        assert all(math.isfinite(us) for each in sweep.tables for us in each.own_us)
    if proposal is not None:
        json.dumps(proposal.trial_record("/x"), allow_nan=False)
