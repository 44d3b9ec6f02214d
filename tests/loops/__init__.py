"""A closed loop in seconds of simulated time: exporters, cluster, scaler, HPA and KEDA.

Everything between the scrapes and the answer is the product's own code. Offered work is shared by
the Ready replicas, each of which can do 100 %; a pod that loads its model shows what a test says.

    pods        one pod: when it exists, works and is shown
    monitoring  what Prometheus stores of the pods, as the scaler's source
    api         what the Kubernetes API says of them
    loop        time, work, and the replicas that come of the answers
"""
