#!/bin/sh
# Crash exo: SIGKILL to its main process and all its descendants, nothing for `hold` seconds, then start it again.
# The tree is stopped first, so that nothing is born or reaped between the snapshot and the kill.
# Keys: id run owner rig_dir hold home pidfile match start [hold_cmd release_cmd at also lock].
# `hold_cmd` tells a supervisor to wait, right after the kill; `release_cmd` undoes that. docs/node-scripts.md has the rest.
case $0 in */*) here=${0%/*} ;; *) here=. ;; esac
# shellcheck source=faults/lib.sh
. "$here/lib.sh"
# shellcheck source=faults/undo.sh
. "$here/undo.sh"
# shellcheck source=faults/stop.sh
. "$here/stop.sh"

parse_args 'id run owner lock rig_dir hold at also home pidfile match sudo start hold_cmd release_cmd' "$@"
require_fault
require_target
kind=crash

# Gone: no such pid with that start time, or defunct. A process with much memory takes a while to end, but one that is still
# stopped after 2 s was never killed.
await_gone() {
	now
	gone_deadline_ms=$((R + 10000)) dying_by_ms=$((R + 2000))
	while :; do
		# shellcheck disable=SC2086 # a list of items
		look $pids
		[ -n "$is_running$is_stopped" ] || return 0
		now
		[ "$R" -lt "$gone_deadline_ms" ] || return 1
		[ -z "$is_stopped" ] || [ "$R" -lt "$dying_by_ms" ] || return 1
		pause 20
	done
}

# Somebody who starts exo again during the hold (a supervisor) is named with the first moment it was seen.
early='' early_ms=''
# shellcheck disable=SC2329 # called by hold_until
sample() {
	[ -z "$early" ] && main_find && [ "$main_pid:$main_start" != "$main" ] || return 0
	early=$main_pid:$main_start
	now
	early_ms=$R
}

[ -n "$start" ] || skip 'no start command: exo could not be started again'
prepare_tree
begin
stop_tree || { ineffective "$R" && finish; }
phase=struck
lease_renew || { ineffective 'the lease cannot be written' && finish; }
# shellcheck disable=SC2086 # a list of items
signal KILL $pids
now
struck_ms=$R
[ -z "$hold_cmd" ] || run_command "$hold_cmd"
if await_gone; then
	note pids "$pids"
	note main "$main"
	struck "$struck_ms"
	hold_from "$struck_ms" sample
	if [ -n "$early" ]; then
		note restarted_early "$early"
		from_ms "$early_ms" && note restarted_early_t "$R"
	fi
	if [ -n "$hold_cmd" ]; then
		command_done || :
		[ "$R" = 0 ] || note hold_status "$R"
		command_forget
	fi
else
	ineffective "SIGKILL was sent and these are there still:$is_running$is_stopped"
fi
finish
