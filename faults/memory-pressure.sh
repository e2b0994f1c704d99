#!/bin/sh
# Take memory until only `leave` bytes are available (at most `most` bytes are taken), and keep it for `hold` seconds.
# Keys: id run owner rig_dir hold leave [most at also lock]. The memory is held by one process that ends by itself a little after the hold.
case $0 in */*) here=${0%/*} ;; *) here=. ;; esac
# shellcheck source=faults/lib.sh
. "$here/lib.sh"
# shellcheck source=faults/undo.sh
. "$here/undo.sh"

parse_args 'id run owner lock rig_dir hold at also home pidfile match sudo leave most' "$@"
require_fault
kind=memory-pressure
bytes_or_usage leave "$leave"
[ -z "$most" ] || bytes_or_usage most "$most"
[ -n "$have_perl" ] || skip 'perl is needed'

resident() {
	R=$(ps -o rss= -p "${hogs%%:*}" 2>/dev/null)
	R=$((${R:-0} * 1024))
}

# taken: its resident size has reached nine tenths of what it was to take. It grows for as long as it needs, at most `strike_limit_ms`.
taken() {
	while :; do
		resident
		[ "$R" -lt $((take - take / 10)) ] || return 0
		now
		[ "$R" -lt "$taken_by_ms" ] && [ -z "$asked" ] || return 1
		look "$hogs"
		[ -z "$is_gone" ] || return 1
		pause 50
	done
}

gone_early=
# shellcheck disable=SC2329 # called by hold_until
sample() {
	look "$hogs"
	[ -z "$is_gone$is_stopped" ] || gone_early="$is_gone$is_stopped"
}

memory_read
[ -n "$mem_available" ] || skip 'this system does not say how much memory is available'
take=$((mem_available - leave)) before=$mem_available
[ -z "$most" ] || [ "$take" -le "$most" ] || take=$most
[ "$take" -ge 16777216 ] || skip "only $mem_available bytes are available, $leave are to be left"
strike_limit_ms=60000
begin
hog_life_s=$(((hold_ms + strike_limit_ms) / 1000 + 5))
phase=struck
# A block that does not compress, again and again with another beginning, so that neither compression nor merging gives it back.
# shellcheck disable=SC2016 # perl
if hog_start '
	open my $r, "<", "/dev/urandom"; read $r, my $block, 4194304;
	for (my $n = 0; $n < $ARGV[0] / 4194304; $n++) { push @::held, $block ^ (pack("N", $n) x 1048576) }' "$take" && lease_write && hogs_release; then
	now
	struck_ms=$R taken_by_ms=$((R + strike_limit_ms))
	if taken; then
		now
		struck_ms=$R
		resident
		note taken "$R"
		memory_read
		note available_before "$before"
		note available "$mem_available"
		note pids "$hogs"
		struck "$struck_ms"
		hold_from "$struck_ms" sample
		[ -z "$gone_early" ] || ineffective "the memory was given back during the hold:$gone_early"
	else
		resident
		ineffective "only $R of $take bytes were taken"
	fi
else
	ineffective "${R:-the process could not be started}"
fi
finish
