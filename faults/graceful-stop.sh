#!/bin/sh
# Stop exo as its operator would, by the command `stop` or else by SIGTERM to its main process; start it again after `hold` seconds.
# Keys: id run owner rig_dir hold home pidfile match start [stop hold_cmd release_cmd at also lock].
# What does not end within 30 s is left alone and running: the fault is then ineffective, and says what is still there.
case $0 in */*) here=${0%/*} ;; *) here=. ;; esac
# shellcheck source=faults/lib.sh
. "$here/lib.sh"
# shellcheck source=faults/undo.sh
. "$here/undo.sh"
# shellcheck source=faults/stop.sh
. "$here/stop.sh"

parse_args 'id run owner lock rig_dir hold at also home pidfile match sudo start stop hold_cmd release_cmd' "$@"
require_fault
require_target
kind=crash # its undo is that of a crash: exo runs again

early=''
# shellcheck disable=SC2329 # called by hold_until
sample() {
	[ -z "$early" ] && main_find && [ "$main_pid:$main_start" != "$main" ] || return 0
	early=$main_pid:$main_start
}

# await_end: every process of the tree has ended by itself. After a signal to us it is given 5 s more: what has been told to stop must
# not be taken for what runs.
await_end() {
	now
	end_by_ms=$((R + 30000)) cut_by_ms=
	while :; do
		# shellcheck disable=SC2086 # a list of items
		look $pids
		[ -n "$is_running$is_stopped" ] || return 0
		now
		[ -z "$asked" ] || [ -n "$cut_by_ms" ] || cut_by_ms=$((R + 5000))
		[ "$R" -lt "${cut_by_ms:-$end_by_ms}" ] || return 1
		pause 20
	done
}

[ -n "$start" ] || skip 'no start command: exo could not be started again'
prepare_tree
strike_limit_ms=30000
begin
[ -z "$hold_cmd" ] || { run_command "$hold_cmd" && command_done && command_forget; }
phase=struck
lease_renew || { ineffective 'the lease cannot be written' && finish; }
now
struck_ms=$R
if [ -n "$stop" ]; then run_command "$stop"; else signal TERM "$main"; fi
if await_end; then
	note pids "$pids"
	note main "$main"
	now && from_ms $((R - struck_ms)) && note ended_after "$R"
	struck "$struck_ms"
	hold_from "$struck_ms" sample
	[ -z "$early" ] || note restarted_early "$early"
else
	ineffective "did not end within 30 s:$is_running$is_stopped"
fi
finish
