"""Faults, and what each did to each model: when it served again, and which failures were the fault's."""
