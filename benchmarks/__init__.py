"""What the scaler costs, next to what it replaces: `make bench`, or `python -m benchmarks`.

The time to wake a workload is a run with KEDA: `make bench-wake`, or `python -m benchmarks.wake`.

    comparison  figures → rows: ratios, intervals, goals
    results     rows as JSON: of a run, and what is committed
    tables      rows as cells of tables
    page        what follows from the committed figures: `python -m benchmarks.page`

    world       the made-up workloads, their GPUs in a Prometheus, and the right answers
    processes   servers as processes of their own, started and stopped by their handles
    within      the whole scaler in a benchmark's own process, to look inside
    echo        a server that answers KEDA's messages and does nothing else
    asking      a client that asks as KEDA does and checks each number
    schedule    when KEDA's loops and the HPA's ask about which trigger
    queries     what KEDA's own trigger asks a Prometheus, and what a Prometheus has used

    polling     the scaler at KEDA's own rate, next to the echo server and KEDA's own trigger
    snapshots   what a snapshot of many pods costs: calls and memory
    beside      calls while many pods are fetched, next to calls at other times
    plan        what one replica with many ScaledObjects and pods needs
    streams     open streams of external-push, beside what is measured
    waking      when demand appears, and how long each trigger took
    wake        KEDA's own prometheus trigger and ours, on the real KEDA
    scale_ins   which pods go, with `deletion-cost` and without: `make bench-deletion-cost`
    decided     the rows of a score of decisions, as a table and as a picture
    decisions   replicas on public traces, by the scaler and by recipes: `make bench-decisions`

A benchmark that gets one wrong answer fails: it has then measured something else. Results are
ratios, because the figures of one machine say nothing about another.
"""
