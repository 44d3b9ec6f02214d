"""Mistakes in the arguments of a command: all of them in one error, each with its option's name."""

import contextlib
from collections.abc import Iterator

import typer


class Mistakes:
    """Collects what is wrong."""

    def __init__(self) -> None:
        """Begin with none."""
        self._mistakes: list[tuple[str, str]] = []

    @contextlib.contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Note an OSError or a ValueError of the block as a mistake in this option or argument."""
        try:
            yield
        except (OSError, ValueError) as error:
            self._mistakes.append((name, str(error)))

    def note(self, name: str, what: str) -> None:
        """Note a mistake in this option or argument."""
        self._mistakes.append((name, what))

    def raise_any(self) -> None:
        """Raise what was noted, which ends the command with 2."""
        if len(self._mistakes) == 1:
            ((name, what),) = self._mistakes
            raise typer.BadParameter(what, param_hint=f"'{name}'")
        if self._mistakes:
            lines = [f"- {name}: {what}" for name, what in self._mistakes]
            raise _SeveralError("\n".join([f"{len(lines)} mistakes in the arguments:", *lines]))


class _SeveralError(typer.BadParameter):
    def format_message(self) -> str:
        return self.message
