"""How long the core waits, and why: the fixed times of snapshot/, decision/ and evaluator/.

In seconds. What triggers and operators choose is in `spec/spec.py` and `settings/`. The largest age
of a server's number is beside its reader (`observation.SCRAPED_SECONDS`). Most depend on how
Prometheus, Kubernetes, KEDA and the HPA pace themselves: with other paces, others are right.
"""

# Exporters, and who scrapes them

UNKNOWN_SCRAPE_SECONDS = 30.0
"""The scrape interval of a target while it is not known yet: a usual one. Shorter: samples from
before a pod was Ready count. Longer: each new pod is measured later."""
LEAST_GRACE_SECONDS = 60
"""How long silence lasts before it counts, or two scrapes if that is longer: two of a usual 30 s.
Shorter: each missed scrape holds replicas. Longer: an exporter that died is noticed later, and the
pods' last loads count until then."""
LOOKBACK_SECONDS = 300
"""How long a Prometheus repeats the last sample of a series whose end it has not seen: its own
default. Shorter: a repeated sample is taken for a pod that has returned. Longer: one that has
returned counts later."""
NO_GPU_SECONDS = 900.0
"""A Ready pod that shows no GPU for this long has none that an exporter shows. Shorter: one with a
late exporter is ignored. Longer: a pod without a GPU holds the others for as long."""
UNREAD_SECONDS = 120.0
"""Long enough for the first samples of a pod that has just become Ready. Shorter: a cause is looked
for that is none. Longer: it is told later why no exporter shows a pod."""
UNTOLD_SECONDS = 60.0
"""How long an end can remain unknown: a list of pods is scraped, and a pod drains, for less.
Shorter: its work is counted twice while it drains. Longer: fewer instants count after each end."""
REMEMBERED_SECONDS = 3600.0
"""How long a pod that no exporter shows still counts while others of its workload are shown. What
is gone is remembered for as long, and a start reads as much of the past. Shorter: a longer outage
of exporters looks like an end. Longer: a pod that went with its node holds replicas for as long,
and a start reads more."""

# What the cluster says

TIME_STEP_SECONDS = 1.0
"""Kubernetes cuts fractions off its times (metav1.Time): it was up to a second later. Shorter:
samples from before an event count as after it. Longer: as many right ones do not count."""
YOUNG_SECONDS = 600.0
"""Where the Ready time is unknown: a pod younger than this may have become Ready just now. Shorter:
samples of a model that loads count. Longer: the loads of new pods are known later."""
ENDING_SECONDS = 120.0
"""Until then, one of two kube-state-metrics may still show the count from before a scale-in.
Shorter: a scale-in to zero looks like a rollout. Longer: a rollout may look like the end."""

# KEDA and the HPA

HPA_SECONDS = 60.0
"""Four syncs of the HPA at its default of 15 s, because a sync may be late: within it an HPA that
goes on asks again, and one whose last replica went stops. Shorter: a late sync looks like a scale
target at zero. Longer: one at zero counts as in use for as long."""
REPEATED_SECONDS = 30.0
"""A person or a probe asks once; the HPA goes on. But a process that has just started cannot know
whether it is the first call: for this long, one is enough. Shorter: after a restart a workload in
use looks as if at zero. Longer: after it a probe counts as the HPA for as long."""
FRESH_STEPS = 3
"""How old "no pods" may be when a source of longer steps is lost. Shorter: an outage wakes
idle workloads. Longer: one that has come back since is called inactive."""
FRESH_SECONDS = 45.0
"""The same of any source: the longer of the two counts. KEDA polls every 30 s by default, which is
two steps of 15 s; rounding down can add a third. Shorter: an outage wakes idle workloads.
Longer: one that has come back since is called inactive."""
SAME_POLL_SECONDS = 1.0
"""KEDA calls GetMetrics, then IsActive, within milliseconds: one poll gets one decision. Shorter:
the two may differ. Longer: an answer is older than it has to be."""
SLOW_SECONDS = 2.5
"""No call waits longer for a source, whose answer may still come later: KEDA sets no deadline on
its poll path. Shorter: no slow source is waited for. Longer: KEDA's loops and HPA workers stand
still."""
MARGIN_SECONDS = 0.1
"""The part of the caller's deadline that is reserved for the response. Shorter: it may come too
late. Longer: a source has less time for its answer."""
SETTLE_SECONDS = 300.0
"""From the last new replica with a known load until a scale-out is judged; also the longest gap.
For people: no answer rests on it. Shorter: new replicas may not have taken load. Longer: it is told
later that a scale-out did not help."""

# Fetches

SETTLED_LAG_SECONDS = 2.0
"""How far behind its clock a source is queried: samples arrive late, and every replica of the
scaler must see the same samples to give the same answer. Shorter: they differ. Longer: all answers
are as much later."""
EVIDENCE_SECONDS = 2.0
"""How long a snapshot waits for evidence: for less than callers wait for a snapshot. Shorter: slow
evidence is often missing. Longer: callers get an older snapshot meanwhile."""
USABLE_STEPS = 2
"""A snapshot older than this is not used while a newer one can be had. Shorter: polls wait for a
fetch that is under way. Longer: they are answered by older samples."""
FORGET_SECONDS = 600.0
"""What is known of a trigger is kept for so long after it was asked about: KEDA asks every few
minutes at least. Shorter: a pause of KEDA's forgets pods. Longer: deleted triggers take memory."""
SPREAD_SECONDS = 0.4
"""Streams look at a new instant spread over this time. Shorter: a thousand of them hold up calls.
Longer: what is new is pushed later."""
WIDEN_SECONDS = 1.0
"""A fetch only for new namespaces waits this long after the last fetch, to collect more. Shorter:
triggers that start together make many fetches. Longer: each starts later."""
LOOK_AGAIN_SECONDS = 120.0
"""How often a source is asked what it has of accelerators, while something is not read. Exporters
are set up by hand: a change is seen soon enough. Shorter: a source answers large queries more
often. Longer: a cure shows later that it worked."""
LOOK_SECONDS = 2.0
"""How long such a look may take: it is for people, and no answer rests on it. Shorter: large
sources return nothing. Longer: a slow query goes on for as long."""
WIDE_SECONDS = 900.0
"""Triggers that look back further share a separate snapshot, which is many times larger. Shorter:
more triggers share that one. Longer: the one of all others can be as large."""
RETRY_SECONDS = 300.0
"""A failed query for the past is repeated after this time: it is a large one. Shorter: it burdens a
source that is overloaded. Longer: pods that went before a start are known later."""
RECENT_SECONDS = 300.0
"""KEDA asks every few minutes at least; an older answer says nothing about the source now. Shorter:
sources that KEDA asks are looked at as well. Longer: one that nobody asks seems to work."""

# Demands

GAP_SECONDS = 60.0
"""After a longer time without an answer the source may have begun anew. Shorter: each missed answer
makes the demand a lower bound. Longer: one of a few servers may count as all."""
BEGUN_SECONDS = 90.0
"""A source that begins anew has scraped each of its targets by then. Shorter: servers that are not
scraped yet are given back. Longer: nothing is given back for as long after a gap."""
OVERDUE_SECONDS = 1.0
"""Triggers ask when it is due, or a second later, because one poll gets one decision. Shorter: a
stream misses a demand that is asked for. Longer: it looks for one that is not."""
