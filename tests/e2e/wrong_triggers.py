"""Triggers with one mistake each, and the message that names it."""

SOUND = {"workload": "bert", "threshold": "70"}
"""One without a mistake."""
WRONG: dict[str, tuple[dict[str, str], str]] = {
    "unknown key": (
        {**SOUND, "activationTreshold": "5"},
        '"activationTreshold": unknown key; known are workload, namespace,',
    ),
    "unknown key from the environment": (
        {**SOUND, "tresholdFromEnv": "X"},
        '"tresholdFromEnv": unknown key',
    ),
    "no workload": (
        {"threshold": "70"},
        "workload: not given; expected [kind/]name such as deployment/bert",
    ),
    "no threshold": (
        {"workload": "bert"},
        "threshold: not given; expected the target per replica, such as 70",
    ),
    "a word for a number": (
        {**SOUND, "threshold": "seventy"},
        'threshold: "seventy"; expected a number above 0 without a unit, such as 70',
    ),
    "a number that is infinite": (
        {**SOUND, "threshold": "1e999"},
        'threshold: "1e999"; expected a number above 0',
    ),
    "digits without an end": (
        {**SOUND, "threshold": "9" * 400},
        '9"; expected a number above 0',
    ),
    "lines for a number": (
        {**SOUND, "threshold": "70\n%"},
        'threshold: "70 %"; expected a number above 0',
    ),
    "a unit": ({**SOUND, "threshold": "70%"}, 'threshold: "70%"; expected a number'),
    "not above zero": ({**SOUND, "threshold": "0"}, 'threshold: "0"; expected a number above 0'),
    "a level below zero": (
        {**SOUND, "activationThreshold": "-1"},
        'activationThreshold: "-1"; expected a number from 0',
    ),
    "a duration without a unit": (
        {**SOUND, "window": "120"},
        'window: "120"; expected a duration such as 30s, 2m or 1h30m',
    ),
    "an empty duration": ({**SOUND, "warmup": " "}, 'warmup: " "; expected a duration'),
    "an unknown signal": (
        {**SOUND, "signal": "utilisation"},
        'signal: "utilisation"; expected one of utilization, memory,',
    ),
    "an unknown answer": (
        {**SOUND, "onUnknown": "0"},
        'onUnknown: "0"; expected one of hold, error, zero',
    ),
    "a percentage that nothing exceeds": (
        {**SOUND, "threshold": "95"},
        'threshold: "95"; expected at most 90 for a percentage',
    ),
    "no level for memory": (
        {**SOUND, "signal": "memory"},
        "activationThreshold: not given; required for this signal",
    ),
    "no level for a query": (
        {"query": "x", "threshold": "7"},
        "activationThreshold: not given; required for this signal",
    ),
    "a demand without a query": (
        {**SOUND, "demandThreshold": "5"},
        "demandQuery: not given; expected it, or demandPreset, beside the other keys of a demand",
    ),
    "a preset beside a query": (
        {**SOUND, "demandPreset": "vllm-requests", "demandQuery": "sum(x)"},
        "demandPreset: expected one of the two: demandQuery is given as well",
    ),
    "a router without a preset": (
        {**SOUND, "demandRouter": "deployment/llama-epp"},
        "demandPreset: not given; expected it beside demandRouter and demandModel",
    ),
    "a model without a preset": (
        {**SOUND, "demandQuery": "sum(x)", "demandModel": "llama"},
        "demandPreset: not given; expected it beside demandRouter and demandModel",
    ),
}
"""Metadata, and the message that refuses them."""
