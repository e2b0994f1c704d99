#!/bin/sh
# Carry out one command of the inventory and wait for its end: `start`, `stop` or `hold_cmd` only while the node is not under the lock of
# another (as a fault, docs/node-scripts.md), `release_cmd` in any case. Keys: rig_dir start|stop|hold_cmd|release_cmd [lock].
# Status: the command's own; 75: the node is locked, nothing was done.
case $0 in */*) here=${0%/*} ;; *) here=. ;; esac
# shellcheck source=faults/lib.sh
. "$here/lib.sh"

parse_args 'rig_dir lock start stop hold_cmd release_cmd' "$@"
boot_id_now
boot_id=$R
if [ -z "$release_cmd" ] && ! lock_allows; then
	printf '%s\n' "$R" >&2
	exit 75
fi
RIG_COMMAND=$start$stop$hold_cmd$release_cmd
export RIG_COMMAND
exec sh -c "$carry_out" </dev/null
