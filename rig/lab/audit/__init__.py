"""The audit: the journal of a soak on the embedded cluster, compared with what the cluster itself recorded."""
