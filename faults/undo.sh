# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154 # the variables of a lease belong to lib.sh
# From the lease to the undone fault, and the frame that every fault script shares: begin, then finish.
# The undo works from the variables of a lease alone, whether the script that wrote it runs it or heal.sh does later.

# shellcheck source=faults/filter.sh
. "$here/filter.sh"
# shellcheck source=faults/machine.sh
. "$here/machine.sh"

# begin: write the lease, refuse when another fault is in force here, undo what a dead script left. Ends the script when not all is well.
begin() {
	mkdir -p "$rig_dir" 2>/dev/null && chmod go-w "$rig_dir" 2>/dev/null
	rig_dir_safe || skip "$R"
	mkdir -p "$rig_dir/leases" "$rig_dir/log" 2>/dev/null || skip "rig_dir: $rig_dir cannot be written"
	[ ! -e "$rig_dir/leases/$id" ] || skip "lease $id exists already"
	log_file=$rig_dir/log/$id.log
	boot_id_now
	boot_id=$R script=${0##*/} script_pid=$$
	proc_fetch $$
	proc_read $$ || skip "own process cannot be read"
	script_start=$P_start
	lock_allows || skip "$R"
	now
	begin_ms=${at_ms:-$R}
	[ "$begin_ms" -ge "$R" ] || begin_ms=$R
	[ $((begin_ms - R)) -le 60000 ] || skip "at: more than 60 s ahead"
	from_ms "$R" && started=$R
	from_ms $((begin_ms + hold_ms + 2000)) && deadline=$R
	patience=$((strike_limit_ms / 1000 + 15)) # seconds beyond the deadline that a script at work is left to itself
	phase=leased
	lease_begin || skip "the lease cannot be written to the disk in $rig_dir/leases"
	scraps_sweep
	others_settle
	note kind "$kind"
	note deadline "$deadline"
	[ -z "$pids" ] || note pids "$pids"
	[ -z "$stale_healed" ] || note stale_healed "$stale_healed"
	emit leased
	now
	if [ "$begin_ms" -gt "$R" ]; then
		hold_until $((begin_ms - arm_ms))
		phase=struck # as the lease must say at the strike, when there is no time to write it
		[ -n "$asked" ] || lease_write || skip "the lease cannot be written in $rig_dir/leases"
		exactly "$begin_ms"
	fi
	[ -z "$asked" ] || skip "a signal came before the strike"
	lock_allows || skip "$R" # once more: whoever sent us may have slept since
}

# Our own lease stands already, so two scripts that start at once see each other (and both give way).
others_settle() {
	stale_healed=
	lease_files
	IFS=$nl
	for file in $R; do
		IFS=" $tab$nl"
		[ "${file##*/}" != "$id" ] || continue
		settle_verdict=$(settle "$file")
		case $settle_verdict in
		healed) stale_healed="$stale_healed${stale_healed:+ }${file##*/}" ;;
		live*) [ "$also" = 1 ] || skip "lease ${file##*/} of ${settle_verdict#live } is in force" ;;
		busy) skip "lease ${file##*/} was left by a dead script and is being undone" ;;
		*) skip "lease ${file##*/} was left by a dead script and could not be undone" ;;
		esac
	done
	IFS=" $tab$nl"
}

# settle FILE, in a shell of its own: undo the lease of a dead script.
settle() {
	lease_read "$1" || return 0
	if { same_boot && script_alive; } || restart_may_come; then
		printf 'live %s' "$owner"
	elif ! lease_claim "$1"; then
		printf busy
	elif [ ! -f "$1" ]; then
		scraps_drop && claims_drop
		printf healed
	elif resume && undo && lease_end; then
		printf healed
	else
		lease_unclaim
	fi
}

# resume: whether somebody began to undo this lease before, and died: what he started may be on its way.
resume() {
	resumed=0
	[ "$phase" != healing ] && [ "${claim_number:-1}" -le 1 ] || resumed=1
}

# restart_may_come: the machine was asked to restart and may yet do so. Its lease must be there then: exo is started by it. A script that
# is alive waits for it, and knows when none comes, unless it is stopped; one that is dead was killed by somebody, or by the machine in
# its last seconds.
restart_may_come() {
	[ "$kind" = reboot ] && [ "$phase" = struck ] && same_boot || return 1
	! script_alive || [ "$P_state" = T ] || return 0
	to_ms "$deadline"
	restart_by_ms=$((R + 45000))
	now
	[ "$R" -le "$restart_by_ms" ]
}

# ineffective REASON: said with the notes collected so far; healing follows.
ineffective() {
	note reason "$1"
	emit ineffective
	verdict=11
}

# struck MS: the strike is proved.
struck() {
	now
	from_ms "$R" && note proof_t "$R"
	emit struck "$1"
}

# hold_from MS [SAMPLER]: hold for hold_ms from that moment. Where the strike names a `last_look`, that is called last_look_ms before the end,
# unless the proof of the strike was not over by then. SAMPLER is called at the end as well.
hold_from() {
	from_ms $(($1 + hold_ms + 2000)) && deadline=$R
	[ "$strike_limit_ms" = 0 ] || lease_write || : # the one that stands names a later deadline
	from_ms $(($1 + hold_ms)) && note until "$R"
	emit holding
	now
	if [ -n "$last_look" ] && [ "$R" -le $(($1 + hold_ms - arm_ms - last_look_ms)) ]; then
		hold_until $(($1 + hold_ms - arm_ms - last_look_ms)) ${2:+"$2"}
		[ -n "$asked" ] || "$last_look"
	fi
	hold_until $(($1 + hold_ms - arm_ms)) ${2:+"$2"}
	phase=healing
	lease_write
	exactly $(($1 + hold_ms))
	[ $# -lt 2 ] || "$2"
}
last_look='' last_look_ms=0
arm_ms=250 # so long before a strike or a heal everything is written that need not wait for it

# finish: heal, prove, drop the lease, end the script.
finish() {
	healing_why='hold over'
	[ -z "$asked" ] || healing_why=signal
	[ "$verdict" = 0 ] || healing_why=ineffective
	phase=healing
	lease_renew
	held_notes=$notes notes=
	note why "$healing_why"
	emit healing
	notes=$held_notes
	if undo; then
		emit healed "$undone_ms"
		lease_end || { note reason "$R" && emit unhealed && exit 12; }
		emit dropped
		logs_prune
		exit "$verdict"
	fi
	emit unhealed
	exit 12
}
verdict=0 strike_limit_ms=0 # how long a strike may take by itself, before its hold

logs_prune() {
	# shellcheck disable=SC2012 # our own names: letters, digits and . _ -
	ls -t "$rig_dir/log" 2>/dev/null | tail -n +301 | while read -r old; do rm -f "$rig_dir/log/$old"; done
}

# undo: by the variables of a lease. 0 when the rig's effect is proved gone (undone_ms: when), 1 otherwise, with a reason noted. What
# cannot be understood is not undone.
undo() {
	undo_kind || return 1
	[ -z "$lease_bad" ] || { note reason "undone but for what cannot be understood in the lease:$lease_bad" && return 1; }
}

undo_kind() {
	[ -z "$table" ] || { # of whatever kind
		undo_rules
		return
	}
	case $kind in
	freeze) undo_stopped ;;
	crash) undo_stopped && undo_killed ;;
	runner-kill) now && undone_ms=$R ;;
	cpu-hog | memory-pressure) undo_hogs ;;
	disk-fill) undo_fill ;;
	link-down) undo_link ;;
	reboot) undo_reboot ;;
	*) note reason "the lease is of an unknown kind" && return 1 ;;
	esac
}

# Children first: a parent that wakes finds its children at work. Of another boot there is nobody left to wake.
undo_stopped() {
	if same_boot; then
		backwards=
		for item in $pids; do backwards="$item $backwards"; done
		# shellcheck disable=SC2086 # a list of items
		look $backwards
		now
		give_up_ms=$((R + 5000))
		while [ -n "$is_stopped" ]; do
			# shellcheck disable=SC2086
			signal CONT $is_stopped
			# shellcheck disable=SC2086
			look $backwards
			[ -n "$is_stopped" ] || break
			now
			[ "$R" -lt "$give_up_ms" ] || { note reason "still stopped:$is_stopped" && return 1; }
			pause 20
		done
	fi
	now
	undone_ms=$R
}

# A main process runs again: the one that a supervisor started, the one we start, or the old one if it was never killed.
undo_killed() {
	if [ -n "$release_cmd" ]; then
		run_command "$release_cmd"
		now
		give_up_ms=$((R + 8000))
		until command_done; do
			now
			[ "$R" -lt "$give_up_ms" ] || break
			pause 20
		done
		command_done || :
		[ "$R" = 0 ] || note release_status "$R"
		command_forget
	fi
	settle_old_main
	start_awaited || return 1
	if main_find; then
		note started 0
	else
		note started 1
		rm -f "$rig_dir/leases/.$id.start" 2>/dev/null
		run_command "$start" start_record
		now
		give_up_ms=$((R + start_limit_ms))
		until main_find && [ "$main_pid:$main_start" != "$main" ]; do
			now
			if [ "$R" -ge "$give_up_ms" ]; then
				command_done || :
				note reason "no main process within $((start_limit_ms / 1000)) s of the start command (its status: $R)"
				command_forget
				return 1
			fi
			pause 50
		done
		command_forget
	fi
	if [ "$main_pid:$main_start" = "$main" ]; then note old_main "$main"; else note new_main "$main_pid:$main_start"; fi
	now
	undone_ms=$R
}

start_limit_ms=30000

# start_record [STATUS]: in the shell that gives the start command, that it does (`pid:start boot clock`); and then how it ended.
start_record() {
	if [ $# -gt 0 ]; then
		[ ! -f "$rig_dir/leases/.$id.start" ] || printf '%s\n' "$1" 2>/dev/null >>"$rig_dir/leases/.$id.start"
		return 0
	fi
	own_item || return 0
	start_record=$R
	boot_id_now && start_record="$start_record $R"
	now
	printf '%s %s\n' "$start_record" "$R" 2>/dev/null >"$rig_dir/leases/.$id.start"
}

# start_awaited: who was killed in his heal may have given the start command, and a second exo must not be started beside the first. exo
# is given the time that he would have given it, from his record; where that is not there yet (`resumed`: he began) it may come within
# 5 s. Fails where it has not come and the command is still at work.
start_awaited() {
	now
	recorded_by_ms=$((R + 5000))
	until main_find; do
		if start_under_way; then
			start_by_ms=$((begun_ms + start_limit_ms))
			[ -n "$start_status" ] || [ -z "$is_gone" ] || start_by_ms=$recorded_by_ms
			now
			if [ "$R" -ge "$start_by_ms" ]; then
				[ -z "$is_running$is_stopped" ] && return 0
				note reason "the start command of process $start_by has not ended, and no main process runs"
				return 1
			fi
		else
			now
			[ "${resumed:-}" = 1 ] && [ "$R" -lt "$recorded_by_ms" ] || return 0
		fi
		pause 50
	done
}

# start_under_way: by a record of this boot, of a command that has not failed. start_by, begun_ms, start_status: what it says.
start_under_way() {
	start_by='' start_boot='' begun_ms='' start_status=''
	{ { read -r start_by start_boot begun_ms && read -r start_status; } <"$rig_dir/leases/.$id.start"; } 2>/dev/null
	case $begun_ms in '' | 0* | *[!0-9]* | ????????????????*) return 1 ;; esac
	boot_id_now
	[ "$start_boot" = "$R" ] || return 1
	look "$start_by"
	[ "${start_status:-0}" = 0 ]
}

# A main that was sent SIGKILL may take a moment to go; it must not be taken for one that runs. A strike that was found to have no
# effect needs no such wait.
settle_old_main() {
	[ "$phase" != leased ] && [ "$verdict" = 0 ] && same_boot || return 0
	now
	give_up_ms=$((R + 5000))
	while [ "$R" -lt "$give_up_ms" ]; do
		look "$main"
		[ -z "$is_gone" ] || return 0
		pause 50
		now
	done
}

# Of another boot, the rules are gone by themselves.
undo_rules() {
	reached='' removed_ms=''
	[ -z "$pf_loading$qdisc" ] || { note reason 'an earlier version of the rig left it: undo it by that version' && return 1; }
	if same_boot; then
		filter_counts && [ "$kind" = partition ] && note packets $((packets4 + packets6))
		filter_remove || { note reason "$R" && return 1; }
		reached=$probes
	else
		made_before "$table"
	fi
	now
	undone_ms=${removed_ms:-$R} # the proof takes a while, and traffic flows from the removal on
	[ -z "$reached" ] || reopen
}

# Of another boot: the machine did restart. exo may be started by the machine itself a little later than us; then that one counts.
undo_reboot() {
	if same_boot; then
		note rebooted 0
		main_find && note old_main "$main_pid:$main_start"
		now
		undone_ms=$R
		return 0
	fi
	note rebooted 1
	boot_id_now && note new_boot "$R"
	now
	give_up_ms=$((R + 5000))
	until main_find; do
		now
		[ "$R" -lt "$give_up_ms" ] || break
		pause 100
	done
	if [ -z "$start" ]; then
		now
		undone_ms=$R
		return 0
	fi
	undo_killed
}
