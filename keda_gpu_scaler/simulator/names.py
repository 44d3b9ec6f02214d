"""Pod names as Kubernetes builds them. Pure: the same pod always gets the same name.

Sources: apiserver `storage/names/generate.go`, `util/rand`, `pkg/controller/controller_utils.go`.
"""

import hashlib

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_RANDOM_LENGTH = 5
_BASE_LENGTH = 58
"""A generated name has at most 63 characters, and 5 of them are random."""


def template_hash(template: str) -> str:
    """Return the pod-template-hash: FNV-32a in decimal, each digit moved into the safe alphabet."""
    return "".join(_ALPHABET[ord(digit) % len(_ALPHABET)] for digit in str(_fnv_32a(template)))


def _fnv_32a(text: str) -> int:
    number = 2166136261
    for byte in text.encode():
        number = (number ^ byte) * 16777619 % 2**32
    return number


def deployment_pod(namespace: str, name: str, template: str, serial: int) -> str:
    """Name a Deployment's pod; a long name loses its dash and its hash, as in Kubernetes."""
    base = f"{name}-{template_hash(f'{namespace}/{name}/{template}')}-"
    return base[:_BASE_LENGTH] + _suffix(f"{namespace}/{base}{serial}")


def _suffix(seed: str) -> str:
    """Return the five characters that Kubernetes draws at random, drawn from a seed here."""
    digest = hashlib.sha256(seed.encode()).digest()
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:_RANDOM_LENGTH])


def stateful_set_pod(name: str, ordinal: int) -> str:
    """Name a StatefulSet's pod by its ordinal."""
    return f"{name}-{ordinal}"


def uuid(seed: str) -> str:
    """Return a stable GPU UUID in NVIDIA's form."""
    text = hashlib.sha256(seed.encode()).hexdigest()
    return f"GPU-{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:32]}"
