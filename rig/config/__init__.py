"""What users write: inventories (which nodes), workloads (which load), fault plans (which faults, how often)."""
