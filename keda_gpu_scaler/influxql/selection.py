"""A user's own InfluxQL, looked at before it is ever sent.

Pure. InfluxDB carries out whatever it is sent, a DROP by GET as well: it only warns of it. So what
is not plainly one SELECT is refused. Nothing is parsed for that, because whoever reads a text in
another way than the server can be deceived: a statement ends at a semicolon and writes by the word
INTO, and neither may stand anywhere, be it in quotes.
"""

import re

LONGEST_CHARACTERS = 4096
_SELECT = re.compile(r"[ \t\n]*select\b", re.ASCII | re.IGNORECASE)
# A number ends where a letter begins: in `1.0into` InfluxDB reads two words.
_INTO = re.compile(r"(?<![a-z_])into\b", re.ASCII | re.IGNORECASE)
_NOW = re.compile(r"\bnow[ \t\n]*\(", re.ASCII | re.IGNORECASE)


def selection(text: str) -> str:
    """Return the text of a question that only reads, and that is about now.

    Raises:
        ValueError: it is none, with what was expected.
    """
    if len(text) > LONGEST_CHARACTERS:
        raise ValueError(f"InfluxQL of at most {LONGEST_CHARACTERS} characters")
    if not all(char.isprintable() or char in "\t\n" for char in text):
        raise ValueError("InfluxQL without control characters")
    if _SELECT.match(text) is None:
        raise ValueError("InfluxQL that begins with SELECT")
    if ";" in text:
        raise ValueError("a single statement of InfluxQL, without a semicolon, also in quotes")
    if _INTO.search(text):
        raise ValueError("InfluxQL that writes nothing: without the word INTO, also in quotes")
    if _NOW.search(text) is None:
        raise ValueError(
            "InfluxQL with a time range such as WHERE time > now() - 1m: without one, a number of "
            "last week looks like one of now"
        )
    return text
