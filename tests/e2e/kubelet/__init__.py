"""A kubelet in small, for the pods of this checkout's own image: their containers are processes.

    python -m tests.e2e.kubelet --kubeconfig … --directory … --proxy … --node worker-0 …

It plays some nodes that KWOK leaves alone. A container whose image is called `keda-gpu-scaler`
runs from this checkout's virtual environment, with exactly the command, arguments, environment and
files that its pod says. Every other image is only pretended to run: it is Ready at once.

What it does as Kubernetes does: files of ConfigMaps and Secrets that follow their objects, tokens
of ServiceAccounts, the environment variables of Services, startup, readiness and liveness probes,
restarts, the grace period, and logs for `kubectl logs`.

What differs, because there are neither containers nor a network of pods:

- A pod's address is made up. Its process listens on the loopback address that belongs to it
  (`addresses`), which replaces `0.0.0.0` and `[::]` wherever the pod says them.
- Its files are in a directory of its own, whose path replaces the `mountPath` wherever the pod, or
  a text in one of its ConfigMaps, contains it.
- Instead of files at fixed paths, KUBECONFIG names the API server and the ServiceAccount's token.
- Programs find Services through the proxy variables of the environment (`tests.e2e.network`).
- Users, limits, the read-only root and NetworkPolicies are not enforced.
"""
