"""Nodes in namespaces of their own (Linux, root): a network, processes, mounts and a host name each."""
