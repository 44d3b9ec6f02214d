"""What a program printed, next to what a page shows of it.

A page shows real output, and no two runs print the same: names of pods, times and ages differ, and
so do numbers. They are compared as what they are, with one exception: 0 is 0, and no other number.
In a page, `…` stands for any text, and a line of nothing else for any lines.
"""

import re

ANY = "…"
_VOLATILE = (
    (re.compile(r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} +\d+ [\d:]{8} \d{4}\b"), "TIME"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?"), "TIME"),
    (re.compile(r"\b(?:GPU-)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "UUID"),
    (re.compile(r"(?<=-)[bcdf0-9]{1,10}[a-z0-9]*-[bcdfghjklmnpqrstvwxz2456789]{5}\b"), "POD"),
    (re.compile(r"\b\d+\.\d+\.\d+\.\d+(?::\d+)?\b"), "ADDRESS"),
    (re.compile(r"(?<![\w.])0(?:\.0+)?(?![\w.])"), "ZERO"),
    (
        re.compile(r"(?<![\w])(?:\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?:ms|[dhmsk]|[KMG]i?B?)?)+\b"),
        "NUMBER",
    ),
    (re.compile(r"[ \t]+"), " "),
)


def is_shown_by(printed: str, shown: str) -> bool:
    return _pattern(shown).fullmatch(_plain(printed)) is not None


def _plain(text: str) -> str:
    """Return a text in which what differs from run to run is only named, line by line."""
    for found, name in _VOLATILE:
        text = found.sub(name, text)
    return "".join(f"{line.strip()}\n" for line in text.strip().splitlines())


def _pattern(shown: str) -> re.Pattern[str]:
    lines = _plain(shown).splitlines()
    return re.compile("".join(r"(?:.*\n)*?" if line == ANY else _of_line(line) for line in lines))


def _of_line(line: str) -> str:
    return ".*".join(map(re.escape, line.split(ANY))) + r"\n"
