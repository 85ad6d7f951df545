"""The benchmarks: what their programs measure, and the parsers of what they print."""

#: What other rooms may import beside this package itself.
FRONT: dict[str, str] = {
    "catalogue": "what each program is, one row each",
    "parsers": "the tables in what programs printed",
    "program": "what a row of the catalogue is made of: kind, meaning, collective",
}
