#!/bin/sh
# The node guard: undoes what leases on this node name and is past its time, or was left by an earlier boot. Nothing else, ever.
# It heals what no fault script can heal any more: one that was killed by SIGKILL, or that went with the power.
# Keys: rig_dir [every once]. `once=1`: look once (a launchd job or a systemd timer calls it again every 4 s and at boot);
# otherwise every `every` seconds (default 4: a heal is then done within 7 s of the end of a hold) until a signal comes. Runs as the user of the rig's SSH, with no further rights.
case $0 in */*) here=${0%/*} ;; *) here=. ;; esac
# shellcheck source=faults/lib.sh
. "$here/lib.sh"

parse_args 'rig_dir every once' "$@"
seconds_or_usage every "${every:-4}"
every_ms=$R
[ "$every_ms" -ge 100 ] || usage 'every: at least 0.1 s'
case $once in '' | 0 | 1) ;; *) usage 'once: 0 or 1' ;; esac

# guard_look: a shell of its own, for it must outlive whatever a lease may make of one. Bounded, so that one lease cannot keep it for ever.
guard_look() {
	[ -n "$(ls -A "$rig_dir/leases" 2>/dev/null)" ] || return 0
	bounded 120 sh "$here/heal.sh" "rig_dir=$rig_dir" what=expired </dev/null >/dev/null 2>&1
}

# guard_seen: that it looked, for `rig doctor`. Not where nobody may write.
guard_seen() {
	rig_dir_safe || return 0
	now && from_ms "$R"
	guard_clock=$R
	boot_id_now
	{ printf 'clock=%s\nboot_id=%s\npid=%s\nscripts=%s\n' "$guard_clock" "$R" "$$" "$here" >"$rig_dir/.guard.$$" &&
		mv -f "$rig_dir/.guard.$$" "$rig_dir/guard"; } 2>/dev/null || rm -f "$rig_dir/.guard.$$" 2>/dev/null
}

while :; do
	now
	next_ms=$((R + every_ms))
	guard_look
	guard_seen
	[ "$once" != 1 ] || exit 0
	[ -z "$asked" ] || exit 0
	now
	[ "$next_ms" -le "$R" ] || pause $((next_ms - R))
	[ -z "$asked" ] || exit 0
done
