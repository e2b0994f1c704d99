"""The exo-like processes of a node: main (HTTP API over `rig.embedded.logic`), its runners and its resource tracker."""
