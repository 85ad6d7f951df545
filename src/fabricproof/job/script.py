"""Write the shell script that runs a job's legs: plain, readable, repeatable by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from fabricproof.job.leg import PEER_SUITES, Leg, shell_name
from fabricproof.stacks.container import INSIDE, image_file, in_folder
from fabricproof.stacks.environment import shell_line, shell_word
from fabricproof.stacks.launch import BACKWARDS_FILE

SCRIPT_FILE = "legs.sh"
RANK_FILE = "rank.sh"
#: asks every node before a leg; binds a rank; gives each node variables of its own
ASK_FILE, BIND_FILE, EACH_NODE_FILE = "ask.sh", "bind.sh", "each_node.sh"
#: what the first two read of a node's sockets
SOCKETS_FILE = "sockets.sh"
INVENTORY_FILE = "inventory.sh"

#: what the job script writes when it ends, beside the script of the legs
JOB_END_FILE = "job_end"

#: where the nodes leave what they are made of, beside the script: NODE.txt
INVENTORY_FOLDER = "inventory"

#: what a node gets for a look unless the site says otherwise, in seconds
LOOK_SECONDS = 5.0
#: a launcher that has not started the look on every node this long after the look's own time is
#: given up
_LAUNCH_SECONDS = 7

#: one short script on every node; a launcher that needs longer is given up
ASK_SECONDS = 30

#: what a start may take longer where the runtime fetches the image from a registry: our choice
FETCH_SECONDS = 300

#: what the second look had to say against itself
SECOND_LOOK_ERRORS = "second_look.err"

#: what a job keeps of its time for ending, in seconds, when it asks whether more legs fit in it
END_SECONDS = 30

#: rounds a job makes at most for one relation; a scaling of 1.92 that scatters by 2 % on a busy
#: machine needs 16 of them against a bound of 1.9
MOST_ROUNDS = 24

#: what is to run next is asked at most so often: a second look, then rounds by ones to threes
MOST_LOOKS = 1 + MOST_ROUNDS

#: the script of a job, but for what is between two @
_SCRIPT = Path(__file__).with_name("legs.in")


def render_script(
    legs: Sequence[Leg],
    *,
    launch: str,
    judge: str,
    leg_seconds_limit: int,
    look_seconds: float | None = LOOK_SECONDS,
    job_seconds: int | None = None,
) -> str:
    """Return the script that runs ``legs`` one after the other.

    Args:
        legs: what to run.
        launch: the launcher with its options for all ranks of the job, as ReFrame would write it
            (``srun -n 2``); legs of another layout bring their own.
        judge: command that is asked what is to run next (:mod:`fabricproof.job.second_look`).
        leg_seconds_limit: a leg that takes longer is ended, so that a hang costs no other leg.
        look_seconds: what each node gets for saying what it is made of; None: it is not asked.
        job_seconds: when the scheduler ends the job; rounds that would not fit are not begun. None:
            nobody knows.
    """
    functions = [
        f"leg_{shell_name(leg.name)}() {{ # {leg.program} over {'+'.join(leg.rails)}\n"
        f"{_turned(leg)}{_question(leg, launch)}{_starts(leg, launch, leg_seconds_limit)}\n}}\n"
        for leg in legs
    ]
    if look_seconds is not None:
        functions.append(_inventory(legs[0], launch, look_seconds))
    fits = f"$((({job_seconds} - {END_SECONDS} - SECONDS) / ${{longest:-1}}))"
    text = _SCRIPT.read_text(encoding="utf-8")
    for name, value in {
        "errors": SECOND_LOOK_ERRORS,
        "looks": str(MOST_LOOKS),
        "judge": judge,
        "fits": "" if job_seconds is None else fits,
        "look": "" if look_seconds is None else "inventory\n",
        "legs": " ".join(shell_name(leg.name) for leg in legs if not leg.in_turn),
        "functions": "\n".join(functions),
    }.items():
        text = text.replace(f"@{name}@", value)
    return text


def _starts(leg: Leg, launch: str, limit: int) -> str:
    """Return what starts each command of a leg, one after the other."""
    limit = max(limit, leg.limit_seconds)
    if leg.container is not None and image_file(leg.container.image) is None:
        limit += FETCH_SECONDS
    rails = shell_word(" ".join(dict.fromkeys(leg.node_rails or leg.rails)))
    return " &&\n".join(
        f"    env FABRICPROOF_PART={number} FABRICPROOF_RAILS={rails} \\\n"
        f"{_settings(leg)}{_image(leg)}"
        f"    timeout -k 5 {limit} \\\n"
        f"    {_launch(leg, launch)} {shell_line(argv)}"
        for number, argv in enumerate(leg.commands)
    )


def _launch(leg: Leg, launch: str) -> str:
    """Return what starts a rank of ``leg``, up to the program: launcher, evidence, container."""
    words = [" ".join(leg.launch) or launch]
    if leg.container is None:
        return " ".join([*words, f'"$here/{RANK_FILE}"'])
    words += [in_folder(each, "$here") for each in leg.container.outer]
    words.append(f'"$here/{RANK_FILE}"')
    words += [in_folder(each, "$here") for each in leg.container.inner]
    alike = not leg.same_node and not leg.node_rails
    told = [
        f"{name}={value}"
        for name, value in sorted(leg.environment.items())
        if not name.startswith("FABRICPROOF_")
    ]
    asked = ["@inside@", leg.library or "", *(leg.rails if alike else ()), "--", *told, "--"]
    return " ".join([*words, f'sh "$here/{INSIDE.name}"', shell_line(asked)])


def _image(leg: Leg) -> str:
    """Return the variables that tell ``rank.sh`` of the leg's container."""
    if leg.container is None:
        return ""
    # rank.sh that is itself inside does not see the node's root.
    outside = '    FABRICPROOF_OUTSIDE="$(stat -c %d:%i /)" \\\n' if leg.container.outer else ""
    return f"    FABRICPROOF_CONTAINER={shell_word(leg.container.image)} \\\n{outside}"


def _question(leg: Leg, launch: str) -> str:
    """Return what asks the nodes whether the leg means anything there; nothing for most legs."""
    if not leg.ask:
        return ""
    return (
        f"    env \\\n{_settings(leg)}    timeout -k 5 {ASK_SECONDS} \\\n"
        f'    {" ".join(leg.launch) or launch} "$here/{ASK_FILE}" {shell_line(leg.ask)} || return\n'
        "    if means_nothing; then return 0; fi\n"
    )


def _turned(leg: Leg) -> str:
    """Return what writes the nodes backwards, where the leg's launcher puts its ranks so.

    Without MPI the two programs change roles (``peer.sh``).  Where somebody chose the nodes while
    the job ran, they stand in a file, in the order of the ranks.
    """
    if not leg.backward or leg.suite in PEER_SUITES:
        return ""
    if leg.in_turn:
        return f"    cp {chosen_file(leg.name)} {BACKWARDS_FILE} || return\n"
    return f'    scontrol show hostnames "$SLURM_JOB_NODELIST" | tac >{BACKWARDS_FILE} || return\n'


def chosen_file(leg: str) -> str:
    """Return the name of the file that holds the nodes of a leg that were chosen in the job."""
    return f"nodes.{shell_name(leg)}"


def _settings(leg: Leg) -> str:
    return "".join(
        f"    {name}={shell_word(value)} \\\n" for name, value in sorted(leg.environment.items())
    )


def _inventory(leg: Leg, launch: str, look_seconds: float) -> str:
    """Return the function that looks at the nodes, started as ``leg`` is: so the launcher works."""
    folder, seconds = INVENTORY_FOLDER, math.ceil(look_seconds) + _LAUNCH_SECONDS
    return (
        f"inventory() {{ # what each node is made of, to {folder}/NODE.txt; no measurement depends "
        f"on it\n    rm -rf {folder} && mkdir {folder} || return\n"
        f"    env \\\n{_settings(leg)}    timeout -k 1 {seconds} \\\n"
        f'    {launch} "$here/{INVENTORY_FILE}" "$here/{folder}" {look_seconds:g} '
        f">{folder}/stdout 2>{folder}/stderr </dev/null\n}}\n"
    )
