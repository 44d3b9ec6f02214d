"""A recording of the demo: the screens of the scenes that `keda-gpu-scaler demo` plays."""

import asyncio

from keda_gpu_scaler.workbench.demo import playing, scenes, screen
from tools.pictures import screencast

_COLUMNS = 80
_SCREENS = 10
"""Of each scene, and its end."""
_SCREEN_SECONDS, _LAST_SECONDS = 0.6, 4.0


def picture() -> str:
    """Return a recording of the demo; it stands still at the end of the climb."""
    world = playing.World()
    screens: list[screencast.Screen] = []
    ends: list[int] = []

    def record(sides: scenes.Sides) -> None:
        scene, tick = sides[0].scene, len(sides[0].sizes)
        seconds = _SCREEN_SECONDS
        if tick == scene.ticks:
            ends.append(len(screens))
            seconds = _LAST_SECONDS
        elif tick % (scene.ticks // _SCREENS):
            return
        screens.append(screencast.look(screen.screen(sides, _COLUMNS), _COLUMNS, seconds))

    async def play() -> str:
        played = [await playing.play(world, scene, record) for scene in scenes.SCENES]
        return scenes.summary(*played)

    with asyncio.Runner(loop_factory=lambda: world) as runner:
        story = runner.run(play())
    return screencast.svg(screens, ends[0], story, _COLUMNS)
