"""Whether a scaler answers, asked from where its callers stand.

    channel  plaintext, TLS, or TLS with a certificate of ours
    asking   health, then what KEDA asks first: GetMetricSpec
    words    what a failed call means, for people

It speaks gRPC as a client and knows nothing of the server's code. Nothing in `serve` imports it.
"""
