# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154 # set in lib.sh, read by the scripts that source this file
# Stopping a whole process tree, as freeze.sh and crash.sh do it.

# prepare_tree: find the main process and its tree; skip the fault when there is none, or when somebody has stopped part of it.
prepare_tree() {
	main_find || skip "no main process: $pidfile names none whose command matches"
	main=$main_pid:$main_start
	tree_find "$main_pid"
	# shellcheck disable=SC2086 # a list of items
	look $tree
	[ -z "$is_stopped" ] || skip "already stopped by somebody else:$is_stopped"
	case " $tree " in *" $main "*) ;; *) skip "the main process ended" ;; esac
	tree_record
	pids=$tree
}

# stop_tree -> pids (every item, parents first), struck_ms (when the first was stopped); fails with R: why.
# The parent first, for a parent that runs can make children; again until a look at the table, taken when all
# known ones stand still, shows no further one. Whatever is stopped is in the lease beforehand.
stop_tree() {
	struck_ms='' passes=0 fresh=$pids
	while [ -n "$fresh" ]; do
		passes=$((passes + 1))
		[ "$passes" -le 20 ] || { R='the tree keeps growing' && return 1; }
		lease_renew || { R='the lease cannot be written' && return 1; }
		# shellcheck disable=SC2086
		signal STOP $fresh
		[ -n "$struck_ms" ] || { now && struck_ms=$R; }
		await_stopped || return 1
		fresh=
		childless && break
		tree_find "$main_pid"
		for item in $tree; do
			case " $pids " in *" $item "*) ;; *) fresh="$fresh${fresh:+ }$item" ;; esac
		done
		pids="$pids${fresh:+ }$fresh"
	done
	# shellcheck disable=SC2086
	look $pids
	case " $is_stopped " in *" $main "*) ;; *) R='the main process is not stopped' && return 1 ;; esac
	# A process that ended before it could be stopped is no part of what is held.
	pids=${is_stopped# }
	lease_renew || { R='the lease cannot be written' && return 1; }
}

# childless: no process of `pids` has a child outside of it. Where the kernel tells children without a look at every process.
childless() {
	[ "$os" = Linux ] && [ -r "/proc/$main_pid/task/$main_pid/children" ] || return 1
	set +f
	for item in $pids; do
		for file in /proc/"${item%%:*}"/task/*/children; do
			{ read -r children <"$file"; } 2>/dev/null || [ -n "${children:-}" ] || continue
			for child in $children; do
				case " $pids" in *" $child:"*) ;; *) set -f && return 1 ;; esac
			done
			children=
		done
	done
	set -f
}

await_stopped() {
	now
	stop_deadline_ms=$((R + 2000))
	while :; do
		# shellcheck disable=SC2086
		look $pids
		[ -n "$is_running" ] || return 0
		now
		[ "$R" -lt "$stop_deadline_ms" ] || { R="not stopped:$is_running" && return 1; }
		pause 10
	done
}
