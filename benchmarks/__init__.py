"""What the scaler costs, next to what it replaces: `make bench`, or `python -m benchmarks`.

The time to wake a workload is a run with KEDA: `make bench-wake`, or `python -m benchmarks.wake`.

    world       the made-up workloads, their GPUs in a Prometheus, and the right answers
    processes   servers as processes of their own, started and stopped by their handles
    echo        a server that answers KEDA's messages and does nothing else
    demand      made-up demand, which appears at a known moment
    ghz         the outside client that measures, and what it says
    asking      a client that asks as KEDA does and checks each number
    throughput  GetMetrics of the scaler against the echo server, in turns
    schedule    when KEDA's loops and the HPA's ask about which trigger
    queries     what a minute of polling costs Prometheus
    evidence    what kube-state-metrics is asked, next to the snapshot
    streams     open streams, next to none and to a bare server's
    waking      when demand appears, and how long each trigger took
    wake        KEDA's own prometheus trigger and ours, on the real KEDA
    comparison  figures → ratios
    report      what is printed, and the file
    tables      the tables

A benchmark that gets one wrong answer fails: it has then measured something else. Results are
ratios, because the figures of one machine say nothing about another.
"""
