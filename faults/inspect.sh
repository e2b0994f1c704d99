#!/bin/sh
# What is on this node: read-only, but for RIG_DIR/tree, the record by which orphans are told later.
# Keys: rig_dir [what home pidfile match log pids sudo]. Answers `key=value` lines; docs/node-scripts.md lists them.
case $0 in */*) here=${0%/*} ;; *) here=. ;; esac
# shellcheck source=faults/lib.sh
. "$here/lib.sh"
# shellcheck source=faults/filter.sh
. "$here/filter.sh"

parse_args 'rig_dir what id run owner home pidfile match log pids sudo hold' "$@"
what=${what:-all}
case $what in all | clock | tree | master | leases | procs | rules) ;; *) usage 'what: all, clock, tree, master, leases, procs or rules' ;; esac
log=${log:-${home:+$home/exo_log/exo.log}}

say() { printf '%s=%s\n' "$1" "$2"; }

say_clock() {
	now && from_ms "$R" && say clock "$R"
}

say_lines() { # KEY LINES
	printf '%s' "$2" | sed "s/^/$1=/"
}

say_tree() {
	if [ "$have_main" = 1 ]; then
		tree_find "$main_pid"
		tree_record
		say_lines proc "$tree_lines"
		say_cpu
	fi
	tree=
	orphans_find
	say_lines orphan "$orphans"
}

# CPU seconds that each process of the tree has used since its start.
say_cpu() {
	if [ "$os" = Linux ]; then
		for item in $tree; do
			proc_read "${item%%:*}" || continue
			# shellcheck disable=SC2086 # fields
			set -- ${P_line##*) }
			printf '%s %s\n' "${item%%:*}" "$((${12} + ${13}))"
		done | awk -v hz="$(getconf CLK_TCK)" '{ printf "cpu=%s|%.2f\n", $1, $2 / hz }'
	else
		list=
		for item in $tree; do list="$list${list:+,}${item%%:*}"; done
		ps -o pid= -o time= -p "$list" |
			awk '{ n = split($2, part, "[-:]"); s = 0; for (i = 1; i <= n; i++) s = s * 60 + part[i]; printf "cpu=%s|%.2f\n", $1, s }'
	fi
}

say_main() {
	have_main=0
	[ -n "$match" ] && [ -n "$pidfile" ] && main_find || return 0
	have_main=1
	say main_pid "$main_pid"
	say main_start "$main_start"
	say main_cmd "$main_cmd"
}

# The last master line counts: of itself (a claim, which stands since the first of them in a row) or of another. Looked
# for in the last megabyte first, for logs grow. A log begins with its process, and that with the node's own id.
say_master() {
	line='' claim='' since='' node_id=''
	if [ -f "$log" ]; then
		said=$(tail -c 1048576 "$log" | master_lines)
		[ -n "$said" ] || said=$(master_lines <"$log")
		line=${said#*"$nl"} since=${said%%"$nl"*}
		case $line in '') ;; *'promoting self'* | *'maintaining self'*) claim=1 ;; *) claim=0 ;; esac
		node_id=$(head -c 65536 "$log" | sed -n 's/.*Starting node \([^ ]*\).*/\1/p' | tail -n 1)
		say exo_log_bytes "$(wc -c <"$log" | tr -d ' ')"
	fi
	say master_log "$line"
	say master_claim "$claim"
	say master_since "$since"
	say log_now "$(date '+%Y-%m-%d %H:%M:%S')"
	say node_id "$node_id"
	[ "$have_main" = 1 ] || return 0
	has_file=0
	! open_files "$main_pid" | grep -q '/event_log/master/events\.bin$' || has_file=1
	say master_files "$has_file"
}

# From a log on stdin: the first line of the claim that stands (empty: none does), then the last master line.
master_lines() {
	awk '/promoting self|maintaining self/ { if (since == "") since = $0; last = $0; next }
		/demoting self|elected master/ { since = ""; last = $0 }
		END { if (last != "") printf "%s\n%s\n", since, last }'
}

say_leases() {
	lease_files
	IFS=$nl
	for file in $R; do
		IFS=" $tab$nl"
		(say_lease "$file")
	done
	IFS=" $tab$nl"
	[ ! -f "$rig_dir/lock" ] || say_lines lock "$(cat "$rig_dir/lock" 2>/dev/null)$nl"
}

say_lease() {
	lease_read "$1" || { [ ! -f "$1" ] || say lease "${1##*/}|unreadable|||||||"; return; }
	same=0 alive=0
	! same_boot || same=1
	[ "$same" = 0 ] || ! script_alive || alive=1
	say lease "$id|$kind|$(printf %s "$owner" | tr '|' '/')|$(printf %s "$run" | tr '|' '/')|$started|$deadline|$phase|$same|$alive"
}

say_machine() {
	memory_read
	say mem_available "$mem_available"
	[ -z "$mem_wired" ] || say mem_wired "$mem_wired"
	say disk_free "$(df -Pk "$rig_dir" 2>/dev/null | awk 'NR == 2 { printf "%.0f", $4 * 1024 }')"
	uid=$(id -u)
	say uid "$uid"
	allowed=0
	if [ "$uid" = 0 ] || root_allowed; then allowed=1; fi
	say sudo_filter "$allowed"
	for tool in nc perl lsof ss; do say "have_$tool" "$(command -v "$tool")"; done
	case $filter_kind in pf) filter_command=pfctl ;; iptables) filter_command=iptables ;; *) filter_command=nft ;; esac
	say have_filter "$(command -v "$filter_command")"
}

say_clock
case $what in all | clock)
	boot_id_now
	say boot_id "$R"
	say os "$os"
	;;
esac
case $what in all | tree | master) say_main ;; esac
case $what in all | tree) say_tree ;; esac
case $what in all | master) say_master ;; esac
case $what in all | leases) say_leases ;; esac
case $what in procs)
	ps_table | awk -v pids=" $pids " 'index(pids, " " $1 " ")' | while read -r pid ppid state begun command; do
		if [ "$os" = Linux ]; then
			proc_read "$pid" || continue
			begun=$P_start
		fi
		say proc "$pid|$ppid|$begun|$state|$command"
	done
	;;
esac
case $what in all) say_machine ;; esac
case $what in rules) rooted rules show ;; esac
exit 0
