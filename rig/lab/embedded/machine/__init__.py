"""One process a node that stands for the machine: SSH, the network with its packet filter, and what starts and stops
exo.
"""
