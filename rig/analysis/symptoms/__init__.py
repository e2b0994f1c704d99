"""What goes wrong in such clusters beside the keeper's promises, each watched for by a reducer over the records. Pure.

Each judges only what lasts beyond a grace, counted anew from every fault, so that what a fault brings about for a while
(a split view, a ghost, an election) is no symptom.
"""
