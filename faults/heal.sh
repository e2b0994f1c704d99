#!/bin/sh
# Undo what leases on this node name: one (`what=ID`), those past their deadline or of an earlier boot (`what=expired`), or `all`.
# A script that is alive is asked to heal by itself first. What no lease names is never touched.
# Keys: rig_dir what. Status 0 when nothing of what was asked for is left, 12 otherwise.
case $0 in */*) here=${0%/*} ;; *) here=. ;; esac
# shellcheck source=faults/lib.sh
. "$here/lib.sh"
# shellcheck source=faults/undo.sh
. "$here/undo.sh"

parse_args 'rig_dir what sudo id run owner home pidfile match' "$@"
wanted=${what:-expired}
case $wanted in [!A-Za-z0-9]* | *[!A-Za-z0-9._-]*) usage 'what: an id, all or expired' ;; esac

# is_due: by the variables of a lease that was read.
is_due() {
	case $wanted in all | "$id") return 0 ;; expired) ;; *) return 1 ;; esac
	same_boot || return 0
	now && now_ms=$R
	to_ms "$deadline"
	[ "$now_ms" -gt "$R" ] || return 1
	# A script at work is on its way by itself: a step in hand (a process that takes long to die) may last a little beyond its time.
	[ "$now_ms" -le $((R + ${patience:-15} * 1000)) ] && script_alive && [ "$P_state" != T ] && return 1
	return 0
}

# ask_script FILE: TERM to the live script of this lease (and CONT, should it be stopped), then wait until it has dropped its lease:
# 3 s to begin healing, 45 s to end it. One that does neither is killed, so that two never undo the same. Fails when it lives on.
ask_script() {
	signal TERM "$script_pid:$script_start"
	signal CONT "$script_pid:$script_start"
	now
	begin_by_ms=$((R + 3000)) end_by_ms=$((R + 45000))
	while script_alive; do
		[ -f "$1" ] || return 0
		now
		[ "$R" -lt "$end_by_ms" ] || break
		[ "$R" -lt "$begin_by_ms" ] || grep -q -x 'phase=healing' "$1" 2>/dev/null || break
		pause 50
	done
	[ -f "$1" ] || return 0
	signal KILL "$script_pid:$script_start"
	pause 100
	! script_alive
}

# heal_one FILE, in a shell of its own, for the variables of a lease are its own.
heal_one() {
	trap 'asked=1' TERM INT HUP
	if ! lease_read "$1"; then
		[ -f "$1" ] || return 0
		[ "$wanted" = all ] || [ "$wanted" = "${1##*/}" ] || [ "$wanted" = expired ] || return 0
		say unhealed "${1##*/}" 'the lease cannot be understood; nothing was touched'
		return 12
	fi
	is_due || return 0
	log_file=$rig_dir/log/$id.log
	by=heal
	if restart_may_come; then
		[ "$wanted" != expired ] || return 0
		say unhealed "$id" 'the restart that it asked for may still come'
		return 12
	fi
	claim_wait "$1" || return 12
	[ -f "$1" ] || { healed_by another && return 0; }
	lease_read "$1" || { lease_unclaim && return 12; }
	if same_boot && script_alive; then
		ask_script "$1" || { say unhealed "$id" "its script $script_pid does not end" && lease_unclaim && return 12; }
		[ -f "$1" ] || { healed_by script && return 0; }
		lease_read "$1" || { lease_unclaim && return 12; }
	fi
	by=heal
	undo_lease
}

# healed_by WHO: the lease is gone meanwhile.
healed_by() {
	scraps_drop
	claims_drop
	log_file='' by=$1
	say healed "$id" ''
	return 0
}

# claim_wait FILE: until this lease is ours to undo. While another is at it (the guard, a second `rig heal`, the next fault) that one is
# waited for, for as long as an undo may take; the guard looks again instead.
claim_wait() {
	now
	claim_by_ms=$((R + 60000))
	until lease_claim "$1"; do
		claim_holder=$R
		[ "$wanted" != expired ] || return 1
		now
		[ "$R" -lt "$claim_by_ms" ] || { say unhealed "$id" "process $claim_holder is undoing it" && return 1; }
		pause 50
	done
}

undo_lease() {
	resume
	note id "$id"
	note by heal
	note why "$wanted"
	emit healing
	note id "$id"
	note by heal
	if undo; then
		emit healed "$undone_ms"
		lease_end && say dropped "$id" '' && return 0
		note id "$id"
		note by heal
		note reason "$R"
	fi
	emit unhealed
	lease_unclaim
	return 12
}

# say EVENT ID REASON
say() {
	note id "$2"
	note by "${by:-heal}"
	[ -z "$3" ] || note reason "$3"
	emit "$1"
}

[ -e "$rig_dir" ] || exit 0
rig_dir_safe || { say unhealed "$wanted" "$R" && exit 12; }
lease_files
worst=0 IFS=$nl # no here-document: the sh of macOS writes one to a file, and a full disk may be what is to be healed
for file in $R; do
	IFS=" $tab$nl"
	(heal_one "$file") || worst=12
done
IFS=" $tab$nl"
scraps_sweep
exit "$worst"
