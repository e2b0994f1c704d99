"""What goes wrong in clusters beside what the target promises, each watched for by a reducer over records. Pure.

Each judges only what lasts beyond a grace, counted anew from every fault, so that what a fault brings about for a while
(a split view, a ghost, an election) is no symptom.
"""
