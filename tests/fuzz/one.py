"""`python -m tests.fuzz.one TARGET FOLDER OPTIONS…`: feed one target; libFuzzer never returns."""

import sys

import atheris

with atheris.instrument_imports(include=["keda_gpu_scaler", "prometheus_client"]):
    from tests.fuzz.targets import CORPUS, TARGETS


def main(name: str, *options: str) -> None:
    """Feed a target with its corpus and what comes of it, until an option ends it."""
    atheris.Setup([name, *options, str(CORPUS / name)], TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
