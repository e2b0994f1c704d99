#!/bin/sh
# Freeze exo: SIGSTOP to its main process and all its descendants, for `hold` seconds, then SIGCONT.
# Keys: id run owner rig_dir hold home pidfile match [at also lock]. Events, lease and exit status: docs/node-scripts.md.
case $0 in */*) here=${0%/*} ;; *) here=. ;; esac
# shellcheck source=faults/lib.sh
. "$here/lib.sh"
# shellcheck source=faults/undo.sh
. "$here/undo.sh"
# shellcheck source=faults/stop.sh
. "$here/stop.sh"

parse_args 'id run owner lock rig_dir hold at also home pidfile match sudo' "$@"
require_fault
require_target
kind=freeze

samples=0 escaped='' escaped_ms=''
# shellcheck disable=SC2329 # called by hold_until
sample() {
	# shellcheck disable=SC2086 # a list of items
	look $pids
	samples=$((samples + 1))
	[ -n "$is_running$is_gone" ] || return 0
	[ -n "$escaped_ms" ] || { now && escaped_ms=$R; }
	for item in $is_running $is_gone; do
		case " $escaped " in *" $item "*) ;; *) escaped="$escaped${escaped:+ }$item" ;; esac
	done
}

prepare_tree
begin
phase=struck
if stop_tree; then
	note pids "$pids"
	note main "$main"
	struck "$struck_ms"
	hold_from "$struck_ms" sample
	if [ -n "$escaped" ]; then
		from_ms "$escaped_ms" && note escaped_t "$R"
		ineffective "no longer stopped during the hold: $escaped"
	fi
	held=0
	[ -n "$escaped" ] || held=1
	note held "$held"
	note samples "$samples"
	note escaped "$escaped"
else
	ineffective "$R"
fi
finish
