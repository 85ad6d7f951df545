"""Read which subnet managers a fabric has: ``saquery -s``, and ``sminfo`` of each.  Pure.

Grammar from rdma-core, infiniband-diags/saquery.c (``print_issm_records``,
``dump_one_portinfo_record``) and sminfo.c; recorded from version 44.0 over opensm 3.3.23 and
ibsim 0.10.  A port on which a manager runs says so (IsSM of its CapabilityMask: IBA specification
vol. 1, 14.2.5.6); SMInfoRecords (``saquery SMIR``) are not asked, because opensm's master leaves
out managers that came after it.
"""

from __future__ import annotations

import re

from fabricproof.core.errors import ParseError
from fabricproof.nodes.inventory.notes import read_sminfo
from fabricproof.subnet._lines import Output
from fabricproof.subnet.model import Manager

_FIELD = re.compile(r"\t\t(?P<name>\w+)\.+(?P<value>0x[0-9A-Fa-f]{1,8}|\d{1,10})")
_FIELDS = ("EndPortLid", "PortNum", "base_lid", "master_sm_base_lid", "capability_mask")
_FIRST, _RECORD, _LAST = "IsSM ports", "PortInfoRecord dump:", "IsSMdisabled ports"

#: infiniband-diags/sminfo.c: the words of states 0 to 3
_STATES = {
    "SMINFO_NOTACT": 0,
    "SMINFO_DISCOVER": 1,
    "SMINFO_STANDBY": 2,
    "SMINFO_MASTER": 3,
}
_STATE = re.compile(r" state \d (SMINFO_\w+)$")


def read_issm(text: str, source: str = "saquery -s") -> tuple[int, ...]:
    """Return the LIDs on which subnet managers run.

    Raises:
        ParseError: an unknown line, a record without one of its fields, or a cut text.
    """
    output = Output(text=text, source=source, tool="saquery -s")
    records: list[tuple[int, dict[str, int]]] = []
    heads: list[str] = []
    active = 0
    for number, line in output.lines():
        match = _FIELD.fullmatch(line)
        if line in {_FIRST, _LAST}:
            heads.append(line)
            active = len(records) if line == _LAST else 0
        elif line == _RECORD and heads:
            records.append((number, {}))
        elif match is not None and records and match["name"] in _FIELDS:
            if match["name"] in records[-1][1]:
                raise output.unknown(number, line, "each field of a record once")
            records[-1][1][match["name"]] = int(match["value"], 0)
        elif line.strip():
            raise output.unknown(number, line, f"'{_FIRST}', then '{_RECORD}' and its fields")
    if heads != [_FIRST, _LAST]:
        raise output.error(1, "the output is cut", expected=f"'{_FIRST}' and '{_LAST}'")
    for number, fields in records:
        if tuple(fields) != _FIELDS:
            raise output.error(
                number, "a record is cut", expected=", ".join(_FIELDS), got=", ".join(fields)
            )
    return tuple(sorted({fields["base_lid"] for _, fields in records[:active]}))


def read_managers(text: str, source: str = "sminfo") -> tuple[Manager, ...]:
    """Read ``sminfo``, once or once for each LID, as managers; the first is the ports' own.

    Raises:
        ParseError: nobody answered, a line is of another form, or the text is cut.
    """
    output = Output(text=text, source=source, tool="sminfo")
    found: dict[str, Manager] = {}
    for number, line in output.lines():
        state = _STATE.search(line)
        if state is None or state[1] not in _STATES:
            raise output.unknown(number, line, "'sminfo: sm lid ... state 3 SMINFO_MASTER'")
        try:
            said = read_sminfo(line, source)
        except ParseError as error:
            raise output.unknown(number, line, error.expected or "sminfo: sm lid ...") from None
        guid = said.guid.zfill(16)
        now = Manager(lid=said.lid, guid=guid, priority=said.priority, state=_STATES[state[1]])
        first = found.setdefault(guid, now)
        if (first.priority, first.state) != (now.priority, now.state):
            raise output.error(
                number,
                "one subnet manager answered twice, and not the same",
                expected=f"priority {first.priority} state {first.state} as before",
                line=line,
                next_step="look again: the managers change who is master",
            )
    return tuple(found.values())
