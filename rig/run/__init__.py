"""One run: puts load, injection and observation together, keeps the deployments posted, unwedges, ends in order.

The activities do not know each other; they meet in the journal. What one needs of another (has the target recovered?
which node runs this model?) is handed in from here as a callable over the journal's records.
"""
