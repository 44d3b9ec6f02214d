"""What KEDA's webhook warns of, when a ScaledObject is applied that has no mistake.

It says that two times have no effect where nothing can go to zero: 2.20 as well, which polls for
values there nevertheless. kubectl prints such warnings.
"""

import re
from typing import Any

import httpx
import lightkube

from tests.e2e import generation, manifests
from tests.e2e.lab import Lab
from tests.e2e.test_examples import deploy_target, placed
from tests.repository.test_examples import EXAMPLES, read

IRRELEVANT = [
    "PollingInterval is configured but is not relevant for scaling",
    "CooldownPeriod is configured but is not relevant",
]
if generation.KEDA_IS_OLD:
    IRRELEVANT[0] = "PollingInterval is configured but is not relevant"
_TEXT = re.compile(r'299 - "((?:[^"\\]|\\.)*)"')


async def _warnings(lab: Lab, document: dict[str, Any]) -> list[str]:
    """Return the warnings about a ScaledObject that is only tried."""
    known = lightkube.KubeConfig.from_file(lab.kubeconfig).get()
    assert known is not None
    server, token = known.cluster.server, known.user and known.user.token
    path = f"/apis/keda.sh/v1alpha1/namespaces/{lab.name}/scaledobjects"
    async with httpx.AsyncClient(base_url=server, trust_env=False, verify=False) as client:  # noqa: S501 - of this machine
        answer = await client.post(
            path,
            params={"dryRun": "All"},
            headers={"Authorization": f"Bearer {token}"},
            json=document,
        )
    assert answer.is_success, answer.text
    return _TEXT.findall(", ".join(answer.headers.get_list("warning")))


async def test_what_has_no_effect_is_warned_of_and_no_example_has_it(lab: Lab) -> None:
    for path in EXAMPLES:
        document = placed(lab, read(path), path.stem)
        await deploy_target(lab, document)
        assert await _warnings(lab, document) == [], path.stem

    await lab.deploy("bert")
    said = {}
    for least in (0, 1):
        document = manifests.scaled_object(
            lab.name,
            "bert",
            [lab.gpu("bert")],
            min_replicas=least,
            max_replicas=4,
            polling_seconds=15,
            cooldown_seconds=300,
            stabilization_seconds=300,
        )
        said[least] = [text.partition(".")[0] for text in await _warnings(lab, document)]
    assert said == {0: [], 1: IRRELEVANT}
