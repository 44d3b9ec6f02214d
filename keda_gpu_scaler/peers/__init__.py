"""The other replicas of the scaler: what one hears of alerts, all know.

    line    one request to one replica
    peers   everybody is told at once, and asked now and then

An alert reaches one replica, and KEDA asks any of them. So whoever hears of it tells all others at
once; what they hear so goes no further. Whoever starts asks them for what they know, and everybody
asks again every half minute, for what did not arrive. No replica has to know which of the addresses
is its own: what it tells itself it knows already.
"""

from keda_gpu_scaler.peers.peers import Peers

__all__ = ["Peers"]
