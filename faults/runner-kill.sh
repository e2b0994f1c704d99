#!/bin/sh
# Kill one runner: SIGKILL to the one child of exo's main process that serves the instance with ring port `port`.
# Which runner serves which instance shows only in its sockets. When it cannot be told for certain, nothing is killed.
# Keys: id run owner rig_dir home pidfile match port others [at also lock]. docs/node-scripts.md has the rest.
case $0 in */*) here=${0%/*} ;; *) here=. ;; esac
# shellcheck source=faults/lib.sh
. "$here/lib.sh"
# shellcheck source=faults/undo.sh
. "$here/undo.sh"

parse_args 'id run owner lock rig_dir at also home pidfile match sudo port others hold' "$@"
require_fault
require_target
numbers_or_usage port "$port"
numbers_or_usage others "$others"
kind=runner-kill hold_ms=0

# runners: children of main that multiprocessing spawned, without its resource tracker.
runners_find() {
	runners='' runner_pids='' runner_count=0
	while IFS='|' read -r pid ppid begun state command; do
		[ "$ppid" = "$main_pid" ] && [ "$state" != Z ] || continue
		case $command in *resource_tracker*) continue ;; *spawn_main* | *--multiprocessing-fork*) ;; *) continue ;; esac
		runners="$runners${runners:+ }$pid:$begun" runner_pids="$runner_pids${runner_pids:+,}$pid" runner_count=$((runner_count + 1))
	done <<-END
		$tree_lines
	END
}

# sockets: `PID LOCALPORT REMOTEPORT` of each TCP socket of the runners.
sockets_find() {
	if command -v lsof >/dev/null 2>&1; then
		sockets=$(bounded 5 lsof -nP -a -p "$runner_pids" -iTCP -Fpn </dev/null 2>/dev/null | awk '
			/^p/ { pid = substr($0, 2) }
			/^n/ {
				split(substr($0, 2), end, "->")
				local = end[1]; sub(/.*:/, "", local)
				remote = end[2]; sub(/.*:/, "", remote)
				print pid, local, remote ? remote : "-"
			}')
	elif command -v ss >/dev/null 2>&1; then
		sockets=$(bounded 5 ss -Htanp </dev/null 2>/dev/null | awk '
			match($0, /pid=[0-9]+/) {
				pid = substr($0, RSTART + 4, RLENGTH - 4)
				local = $4; sub(/.*:/, "", local)
				remote = $5; sub(/.*:/, "", remote)
				print pid, local, remote
			}')
	else
		skip 'neither lsof nor ss is there to find the runner by its ring port'
	fi
}

# holders PORT -> held: the runners whose own end of a socket is that port (a ring listens on it, and accepts there); failing those,
# the ones connected to it elsewhere.
holders() {
	near='' far=''
	while read -r pid local remote; do
		for item in $runners; do
			[ "${item%%:*}" = "$pid" ] || continue
			[ "$local" != "$1" ] || case " $near " in *" $item "*) ;; *) near="$near${near:+ }$item" ;; esac
			[ "$remote" != "$1" ] || case " $far " in *" $item "*) ;; *) far="$far${far:+ }$item" ;; esac
		done
	done <<-END
		$sockets
	END
	held=${near:-$far}
}

# choose -> victim. By its own ring port, else as the one runner left when those of the other instances are set aside, and that only
# when no instance can be without its runner.
choose() {
	chosen_by='ring port' victim=
	if [ -n "$port" ]; then
		holders "$port"
		case $held in
		*' '*) skip "port $port is held by several runners: $held" ;;
		?*) victim=$held && return 0 ;;
		esac
	fi
	chosen_by=elimination remaining=$runners needed=1
	for other in $others; do
		needed=$((needed + 1))
		holders "$other"
		for item in $held; do
			kept=
			for candidate in $remaining; do
				[ "$candidate" = "$item" ] || kept="$kept${kept:+ }$candidate"
			done
			remaining=$kept
		done
	done
	[ "$runner_count" -ge "$needed" ] || skip "$runner_count runners for $needed instances: one may have died already"
	case $remaining in
	'') skip 'every runner here serves another instance' ;;
	*' '*) skip "cannot tell which of these runners serves the instance: $remaining" ;;
	esac
	victim=$remaining
}

main_find || skip "no main process: $pidfile names none whose command matches"
main=$main_pid:$main_start
tree_find "$main_pid"
tree_record
runners_find
[ -n "$runners" ] || skip 'no runner here'
sockets_find
choose
# shellcheck disable=SC2086 # one item
look $victim
[ -z "$is_stopped" ] || skip "the runner was stopped by somebody else: $victim"
pids=$victim
begin
phase=struck
signal KILL "$victim"
now
struck_ms=$R
deadline_ms=$((R + 5000))
while :; do
	look "$victim"
	now
	[ -z "$is_gone" ] && [ "$R" -lt "$deadline_ms" ] || break
	pause 10
done
note pids "$victim"
note main "$main"
note chosen_by "$chosen_by"
if [ -z "$is_gone" ]; then
	ineffective "SIGKILL was sent and it is there still: $victim"
else
	look "$main"
	if [ -n "$is_gone" ]; then
		ineffective 'the main process is gone too: this was no runner kill'
	else
		struck "$struck_ms"
	fi
fi
finish
