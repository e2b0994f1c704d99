"""Where things are on a node in namespaces."""

from __future__ import annotations

LINUX_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
DARWIN_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"  # what a command over SSH has there: no Homebrew
JOB = "net.exo.node"
PLIST = f"/Library/LaunchDaemons/{JOB}.plist"
