"""What servers and the libraries that speak to them say, fit for a log and for an answer."""

WORDS_SHOWN = 256
"""A server's own words are shown up to this length: enough to act on, too short to flood a log."""


def of(error: BaseException) -> str:
    """Say what went wrong; httpx often leaves that to the exception that caused its own."""
    cause = error.__cause__ or error.__context__
    if str(error) or cause is None:
        return printable(str(error) or type(error).__name__)
    return of(cause)


def printable(text: str) -> str:
    """Return a server's words on one line, without control characters, cut to a bound."""
    line = " ".join(text[: 4 * WORDS_SHOWN].split())
    safe = "".join(char if char.isprintable() else "?" for char in line)
    return safe if len(safe) <= WORDS_SHOWN else f"{safe[:WORDS_SHOWN]}…"
