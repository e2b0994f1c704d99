#!/bin/sh
# Keep the processors busy for `hold` seconds with `load` endless loops (default: one per processor) at normal priority.
# Keys: id run owner rig_dir hold [load at also lock]. The loops end by themselves a little after the hold, whatever happens to this script.
case $0 in */*) here=${0%/*} ;; *) here=. ;; esac
# shellcheck source=faults/lib.sh
. "$here/lib.sh"
# shellcheck source=faults/undo.sh
. "$here/undo.sh"

parse_args 'id run owner lock rig_dir hold at also home pidfile match sudo load' "$@"
require_fault
kind=cpu-hog
numbers_or_usage load "$load"
[ -n "$have_perl" ] || skip 'perl is needed'
[ -n "$load" ] || load=$(getconf _NPROCESSORS_ONLN 2>/dev/null) || load=1
[ "$load" -le 512 ] || usage 'load: at most 512'

gone_early=
# shellcheck disable=SC2329 # called by hold_until
sample() {
	# shellcheck disable=SC2086 # a list of items
	look $hogs
	[ -z "$is_gone$is_stopped" ] || gone_early="$is_gone$is_stopped"
}

# busy: within 5 s they have used as much time as 0.2 s of one processor.
busy() {
	now
	busy_by_ms=$((R + 5000))
	while :; do
		# shellcheck disable=SC2086
		cpu_ms $hogs
		[ "$R" -lt 200 ] || return 0
		now
		[ "$R" -lt "$busy_by_ms" ] && [ -z "$asked" ] || return 1
		pause 50
	done
}

strike_limit_ms=5000
begin
hog_life_s=$(((hold_ms + strike_limit_ms) / 1000 + 5)) started_ok=1
count=0
while [ "$count" -lt "$load" ]; do
	count=$((count + 1))
	# shellcheck disable=SC2016 # perl
	hog_start '1 while 1' || { started_ok='' && break; }
done
phase=struck
if [ -n "$started_ok" ] && lease_write && hogs_release; then
	now
	struck_ms=$R
	if busy; then
		note pids "$hogs"
		note cpu_ms "$R"
		struck "$struck_ms"
		hold_from "$struck_ms" sample
		# shellcheck disable=SC2086
		cpu_ms $hogs
		note cpu_ms "$R"
		[ -z "$gone_early" ] || ineffective "no longer running during the hold:$gone_early"
	else
		ineffective 'the loops used no processor time'
	fi
else
	ineffective "${R:-the loops could not be started}"
fi
finish
