"""The exo-like processes of a node: main (HTTP API over `rig.lab.exo`), its runners and its resource tracker."""
