# shellcheck shell=sh
# shellcheck disable=SC2034 # variables set here are read by the scripts that source this file
# What the node scripts share: arguments, clock, events, processes, leases. The branches on the operating system are all here.
#
# Conventions. POSIX sh without `local`. A function that computes something leaves its answer in R, which costs no fork.
# Times are whole milliseconds of the node's monotonic clock, except where they are printed (seconds). A process is an
# item `pid:start`; a list of items is blank-separated. Nothing that arrives as a value is ever evaluated, except the
# commands of the inventory, in run_command.

set -u -f
LC_ALL=C
PATH=${PATH:+$PATH:}/usr/bin:/bin:/usr/sbin:/sbin
export LC_ALL PATH
unset CDPATH
umask 077
nl='
'
tab=$(printf '\t')
IFS=" $tab$nl"
os=$(uname -s)
asked= # set by a signal: heal at once
notes= # key=value pairs of the next event
log_file=
trap 'asked=1' TERM INT HUP
trap : PIPE # a reader that went away must neither end the hold nor break the heal; caught, not ignored, so that children start clean

case $os in
Linux)
	filter_kind=nft sample_ms=200 probe_limit_s=2
	command -v nft >/dev/null 2>&1 || ! command -v iptables >/dev/null 2>&1 || filter_kind=iptables
	;;
Darwin) filter_kind=pf sample_ms=500 probe_limit_s=1 ;; # a look costs a process there; its nc -w does not bound a connect
*) filter_kind='' sample_ms=500 probe_limit_s=2 ;;
esac
command -v perl >/dev/null 2>&1 && have_perl=1 || have_perl=

# ---- arguments

usage() {
	printf '%s: %s\n' "${0##*/}" "$1" >&2
	exit 2
}

# Every key a script may be given and every key a lease may hold (pf_loading, pf_token, had, qdisc and pipe are of leases of earlier versions),
# and nothing else. Fails on an unknown one.
assign() {
	case $1 in
	id) id=$2 ;; run) run=$2 ;; owner) owner=$2 ;; lock) lock=$2 ;; rig_dir) rig_dir=$2 ;; kind) kind=$2 ;;
	hold) hold=$2 ;; at) at=$2 ;; also) also=$2 ;; sudo) sudo=$2 ;; what) what=$2 ;;
	home) home=$2 ;; pidfile) pidfile=$2 ;; match) match=$2 ;; log) log=$2 ;;
	start) start=$2 ;; hold_cmd) hold_cmd=$2 ;; release_cmd) release_cmd=$2 ;;
	port) port=$2 ;; others) others=$2 ;; pids) pids=$2 ;; main) main=$2 ;;
	peers) peers=$2 ;; direction) direction=$2 ;; ports) ports=$2 ;; clients) clients=$2 ;; api_port) api_port=$2 ;;
	version) version=$2 ;; boot_id) boot_id=$2 ;; started) started=$2 ;; deadline) deadline=$2 ;; phase) phase=$2 ;;
	script_pid) script_pid=$2 ;; script_start) script_start=$2 ;; script) script=$2 ;;
	table) table=$2 ;; pf_loading) pf_loading=$2 ;; pf_token) pf_token=$2 ;; probes) probes=$2 ;; end) end=$2 ;;
	stop) stop=$2 ;; leave) leave=$2 ;; most) most=$2 ;; load) load=$2 ;; hogs) hogs=$2 ;; filled) filled=$2 ;;
	interface) interface=$2 ;; had) had=$2 ;; effect) effect=$2 ;; amount) amount=$2 ;; qdisc) qdisc=$2 ;; pipe) pipe=$2 ;;
	patience) patience=$2 ;; every) every=$2 ;; once) once=$2 ;; step) step=$2 ;; user) user=$2 ;; allow) allow=$2 ;; prefix) prefix=$2 ;;
	exo_command) exo_command=$2 ;; exo_home) exo_home=$2 ;; evaluate) evaluate=$2 ;; offset) offset=$2 ;;
	*) return 1 ;;
	esac
}

forget() {
	for key in id run owner lock kind hold at also sudo what home pidfile match log start hold_cmd release_cmd port others \
		pids main peers direction ports clients api_port version boot_id started deadline phase script_pid script_start \
		script table pf_loading pf_token probes end stop leave most load hogs filled interface had effect amount qdisc pipe \
		patience every once step user allow prefix exo_command exo_home evaluate offset; do
		assign "$key" ''
	done
}
rig_dir=
forget

# parse_args "ALLOWED KEYS" key=value… : sets a variable per key. Ends the script (2) on anything it does not expect.
parse_args() {
	allowed=" $1 " given=' '
	shift
	if [ "${1-}" = - ]; then # what other users of this machine must not find among the arguments: on stdin, a line each, then a dot
		shift
		while IFS= read -r arg && [ "$arg" != . ]; do set -- "$@" "$arg"; done
		[ "${arg-}" = . ] || usage 'stdin ended early'
	fi
	for arg; do
		case $arg in *=*) ;; *) usage "not key=value: $arg" ;; esac
		key=${arg%%=*} value=${arg#*=}
		case $key in '' | *[!a-z_]*) usage "not a key: $key" ;; esac
		case $allowed in *" $key "*) ;; *) usage "unknown key: $key" ;; esac
		case $given in *" $key "*) usage "key given twice: $key" ;; esac
		given="$given$key "
		while :; do
			case $value in *"$nl") value=${value%"$nl"} ;; *) break ;; esac
		done
		case $value in *[[:cntrl:]]*) usage "$key: a line break or control character" ;; esac
		assign "$key" "$value"
	done
	check_path rig_dir "$rig_dir"
	case ${id:-x} in [!A-Za-z0-9]* | *[!A-Za-z0-9._-]*) usage "id: letters, digits and . _ - only" ;; esac
	[ "${#id}" -le 64 ] || usage "id: longer than 64 characters"
	case $sudo in '' | 0 | 1) ;; *) usage "sudo: 0 or 1" ;; esac
	case $also in '' | 0 | 1) ;; *) usage "also: 0 or 1" ;; esac
	[ -n "$pidfile" ] || pidfile=${home:+$home/exo.pid}
}

check_path() {
	case $2 in /*) ;; *) usage "$1: an absolute path is needed" ;; esac
}

# What every fault needs.
require_fault() {
	[ -n "$id" ] || usage "id is needed"
	seconds_or_usage hold "${hold:-0}" && hold_ms=$R
	[ "$hold_ms" -le 3600000 ] || usage "hold: at most 3600 s"
	at_ms=
	[ -z "$at" ] || { seconds_or_usage at "$at" && at_ms=$R; }
}

# What every fault on a process needs. An empty or broken `match` would let any process pass for exo.
require_target() {
	check_path pidfile "$pidfile"
	[ -n "$match" ] || usage "match is needed"
	printf '\n' | grep -E -e "$match" >/dev/null 2>&1
	[ $? -le 1 ] || usage "match: not an extended regular expression"
}

seconds_or_usage() {
	case $2 in
	'' | *[!0-9.]* | *.*.* | .* | *. | ????????????????*) usage "$1: seconds are needed" ;;
	esac
	to_ms "$2"
}

# numbers_or_usage KEY "LIST": TCP ports.
numbers_or_usage() {
	number_key=$1
	# shellcheck disable=SC2086 # a blank-separated list
	set -- $2
	for number; do
		case $number in 0* | *[!0-9]* | ??????*) usage "$number_key: TCP ports are needed" ;; esac
		[ "$number" -le 65535 ] || usage "$number_key: TCP ports are needed"
	done
}

# bytes_or_usage KEY VALUE
bytes_or_usage() {
	case $2 in '' | 0?* | *[!0-9]* | ???????????????*) usage "$1: a number of bytes is needed" ;; esac
}

# ---- time

# to_ms "12.3456" -> R=12345
to_ms() {
	case $1 in *.*) fraction=${1#*.}000 R=${1%%.*} ;; *) fraction=000 R=$1 ;; esac
	fraction=${fraction%"${fraction#???}"}
	while :; do # a leading zero would mean octal
		case $R in 0?*) R=${R#0} ;; *) break ;; esac
	done
	R=$((R * 1000 + 1$fraction - 1000))
}

# from_ms 12345 -> R=12.345
from_ms() {
	fraction=$(($1 % 1000 + 1000))
	R=$(($1 / 1000)).${fraction#1}
}

# The node clock: monotonic, and the same one in every script.
now() {
	if [ "$os" = Linux ] && [ -r /proc/uptime ]; then
		read -r R _ </proc/uptime
	else
		R=$(perl -MTime::HiRes=clock_gettime,CLOCK_MONOTONIC -e 'printf "%.3f", clock_gettime(CLOCK_MONOTONIC)')
	fi
	to_ms "$R"
}

# pause MS: sleep, cut short by a signal.
pause() {
	from_ms "$1"
	sleep "$R" >/dev/null 2>&1 &
	sleeper=$!
	wait "$sleeper" 2>/dev/null || kill -s KILL "$sleeper" 2>/dev/null
	return 0
}

# hold_until MS [COMMAND]: wait for that moment or a signal; COMMAND is run at each sample.
hold_until() {
	while [ -z "$asked" ]; do
		[ $# -lt 2 ] || "$2"
		now
		left=$(($1 - R))
		[ "$left" -gt 0 ] || return 0
		[ "$left" -le "$sample_ms" ] || left=$sample_ms
		pause "$left"
	done
}

# exactly MS: wait for that moment or a signal, to within what the clock can tell. Waking is late by some milliseconds where the
# machine is busy: the last of them are watched, not slept, or slept to the moment itself by a process that started before.
exactly() {
	now
	left=$(($1 - R))
	[ -z "$asked" ] && [ "$left" -gt 0 ] || return 0
	if [ "$os" = Linux ]; then
		[ "$left" -le 50 ] || pause $((left - 40))
		while [ -z "$asked" ]; do
			now
			[ "$R" -lt "$1" ] || return 0
		done
	else
		from_ms "$1"
		perl -MTime::HiRes=clock_gettime,CLOCK_MONOTONIC,sleep \
			-e 'my $left = $ARGV[0] - clock_gettime(CLOCK_MONOTONIC); sleep $left if $left > 0' "$R" >/dev/null 2>&1 &
		sleeper=$!
		wait "$sleeper" 2>/dev/null || kill -s KILL "$sleeper" 2>/dev/null
	fi
	return 0
}

# ---- events

# note KEY VALUE: to be said with the next event.
note() {
	R=$2
	case $R in *[[:cntrl:]]*) R=$(printf '%s' "$R" | tr '[:cntrl:]' ' ') ;; esac
	notes="$notes$tab$1=$R"
}

# emit EVENT [MS]: to the log first, because stdout may be a connection that is gone. Neither may fail the script.
emit() {
	if [ $# -gt 1 ]; then R=$2; else now; fi
	from_ms "$R"
	event="@rig$tab$1$tab$R$notes"
	notes=
	[ -z "$log_file" ] || printf '%s\n' "$event" 2>/dev/null >>"$log_file" || :
	printf '%s\n' "$event" 2>/dev/null || :
}

# skip REASON: nothing was done, nothing will be.
skip() {
	lease_drop
	note reason "$1"
	emit skipped
	exit 10
}

# ---- processes

# ps in UTC, whatever the zone of the session, the guard or the machine: `lstart` is local time without its zone, and who a process is
# must not depend on who looks. `awk_start` is a function of awk: the five words of it as one, with the zone.
ps() {
	TZ=UTC0 command ps "$@"
}
# shellcheck disable=SC2016 # awk
awk_start='function start_word(at) { return $at "_" $(at + 1) "_" $(at + 2) "_" $(at + 3) "_" $(at + 4) "_UTC" } '

# proc_fetch PID…: where looking is expensive, look once for all of them. proc_read then answers from that. One word that is no pid
# would cost the answer for all.
proc_fetch() {
	[ "$os" = Linux ] && return 0
	list=
	for item; do
		case ${item%%:*} in '' | *[!0-9]*) ;; *) list="$list${list:+,}${item%%:*}" ;; esac
	done
	fetched=$nl$(ps -o pid= -o state= -o ppid= -o lstart= -p "${list:-0}" 2>/dev/null |
		awk "$awk_start"'{ print $1, $2, $3, start_word(4) }')$nl
}

# proc_read PID -> P_state (one letter), P_ppid, P_start; fails when there is no such process.
proc_read() {
	case $1 in '' | *[!0-9]*) return 1 ;; esac
	if [ "$os" = Linux ]; then
		{ read -r P_line <"/proc/$1/stat"; } 2>/dev/null || return 1
		# shellcheck disable=SC2086 # fields; the command before the last parenthesis may contain anything
		set -- ${P_line##*) }
		P_state=$1 P_ppid=$2 P_start=${20}
	else
		case $fetched in *"$nl$1 "*) P_line=${fetched#*"$nl$1 "} ;; *) return 1 ;; esac
		# shellcheck disable=SC2086 # fields
		set -- ${P_line%%"$nl"*}
		P_state=${1%"${1#?}"} P_ppid=$2 P_start=$3
	fi
}

# own_item -> R: this very shell, which in a shell of its own is not the process `$$`.
own_item() {
	R=$(exec sh -c 'echo "$PPID"')
	proc_fetch "$R"
	proc_read "$R" || return 1
	R=$R:$P_start
}

# in_utc ITEM… -> R: the same processes with their starts in UTC. Earlier versions wrote local time without its zone. It is some
# whole number of quarter hours from UTC; of a process that is there, and whose start fits so, the start is known.
in_utc() {
	in_utc_items=
	for item; do
		case $os.$item in
		Linux.* | *_UTC) ;;
		*)
			proc_fetch "$item"
			! proc_read "${item%%:*}" || ! quarter_hours_apart "$P_start" "${item#*:}_UTC" || item=${item%%:*}:$P_start
			;;
		esac
		in_utc_items="$in_utc_items${in_utc_items:+ }$item"
	done
	R=$in_utc_items
}

# quarter_hours_apart START START: by at most the 14 hours that zones are from UTC.
quarter_hours_apart() {
	# shellcheck disable=SC2016 # perl
	perl -MTime::Piece -e 'my ($s, $t) = map { Time::Piece->strptime($_, "%a_%b_%e_%H:%M:%S_%Y_UTC")->epoch } @ARGV;
		exit(($s - $t) % 900 != 0 || abs($s - $t) > 50400)' "$1" "$2" 2>/dev/null
}

# look ITEM…: sorts them into is_stopped, is_gone (no such pid with that start, or defunct) and is_running.
look() {
	is_stopped='' is_gone='' is_running=''
	proc_fetch "$@"
	for item; do
		if ! proc_read "${item%%:*}" || [ "$P_start" != "${item#*:}" ]; then
			is_gone="$is_gone $item"
		else
			case $P_state in
			Z | X) is_gone="$is_gone $item" ;;
			T) is_stopped="$is_stopped $item" ;;
			*) is_running="$is_running $item" ;;
			esac
		fi
	done
}

# signal NAME ITEM…: the one place that signals a target. Only pids above 1 that still are the process they were recorded as;
# one call for all of them, in the given order; by the command, so that a node can replace it.
signal() {
	signal_name=$1 victims=''
	shift
	proc_fetch "$@"
	for item; do
		case ${item%%:*} in '' | *[!0-9]* | 0* | 1 | "$$" | "$PPID") continue ;; esac
		proc_read "${item%%:*}" && [ "$P_start" = "${item#*:}" ] && [ "$P_state" != Z ] || continue
		victims="$victims ${item%%:*}"
	done
	[ -n "$victims" ] || return 0
	# shellcheck disable=SC2086 # a list of pids
	env kill -s "$signal_name" $victims 2>/dev/null
}

# main_find -> main_pid, main_start, main_cmd, when the pid file names a live process whose command line matches.
main_find() {
	R=
	{ read -r R <"$pidfile"; } 2>/dev/null || [ -n "$R" ] || return 1
	case $R in '' | *[!0-9]* | 0* | 1 | "$$" | "$PPID" | ??????????*) return 1 ;; esac
	main_pid=$R
	proc_fetch "$main_pid"
	proc_read "$main_pid" && [ "$P_state" != Z ] || return 1
	main_start=$P_start
	main_cmd=$(ps -ww -o command= -p "$main_pid" 2>/dev/null) || return 1
	printf '%s\n' "$main_cmd" | grep -E -q -e "$match" || return 1
	proc_fetch "$main_pid" # the pid may have changed hands while its command was read
	proc_read "$main_pid" && [ "$P_start" = "$main_start" ]
}

# ps_table: every process as `pid ppid state lstart command`, lstart as one word.
ps_table() {
	ps -axww -o pid= -o ppid= -o state= -o lstart= -o command= | awk "$awk_start"'{
		head = $1 " " $2 " " substr($3, 1, 1) " " start_word(4)
		for (i = 1; i <= 8; i++) sub(/^ *[^ ]+/, "")
		sub(/^ /, "")
		print head " " $0
	}'
}

# tree_find PID -> tree (items, parents before children, without the defunct), tree_lines (`pid|ppid|start|state|command` each).
# A child recorded earlier under the same main counts although it lost its parent since.
tree_find() {
	tree='' tree_lines=''
	found=$(ps_table | awk -v root="$1" '
		{ parent[$1] = $2; line[$1] = $0; children[$2] = children[$2] " " $1 }
		END {
			queue[1] = root
			for (i = n = 1; i <= n; i++) {
				if (queue[i] in line) print line[queue[i]]
				m = split(children[queue[i]], child, " ")
				for (j = 1; j <= m; j++) if (child[j] != queue[i]) queue[++n] = child[j]
			}
		}')
	while read -r pid ppid state begun command; do
		[ -n "$pid" ] || continue
		if [ "$os" = Linux ]; then
			proc_read "$pid" && [ "$P_ppid" = "$ppid" ] || continue
			begun=$P_start
		fi
		tree_add "$pid" "$ppid" "$begun" "$state" "$command"
	done <<-END
		$found
	END
	orphans_find "$1:$main_start"
	while IFS='|' read -r pid ppid begun state command; do
		[ -z "$pid" ] || tree_add "$pid" "$ppid" "$begun" "$state" "$command"
	done <<-END
		$orphans
	END
}

tree_add() {
	tree_lines="$tree_lines$1|$2|$3|$4|$5$nl"
	[ "$4" = Z ] || tree="$tree${tree:+ }$1:$3"
}

# orphans_find [MAIN] -> orphans: live processes that RIG_DIR/tree names, unchanged in pid, start and command, as children of MAIN
# (an item) and that are not in `tree` already, or, without MAIN, of any main that is gone. Lines like tree_lines.
orphans_find() {
	orphans='' checked=''
	[ -f "$rig_dir/tree" ] || return 0
	while IFS='|' read -r pid begun of command; do
		[ "$pid:$begun" != "$of" ] || continue
		case $pid in '' | *[!0-9]* | 0* | 1) continue ;; esac
		in_utc "$of" && of=$R
		in_utc "$pid:$begun" && begun=${R#*:}
		if [ $# -gt 0 ]; then
			[ "$of" = "$1" ] || continue
			case " $tree " in *" $pid:$begun "*) continue ;; esac
		else
			[ "$of" = "$checked" ] || { look "$of" && checked=$of checked_gone=$is_gone; }
			[ -n "$checked_gone" ] || continue
		fi
		proc_fetch "$pid"
		proc_read "$pid" && [ "$P_start" = "$begun" ] && [ "$P_state" != Z ] || continue
		orphan_state=$P_state orphan_parent=$P_ppid
		[ "$(ps -ww -o command= -p "$pid" 2>/dev/null)" = "$command" ] || continue
		orphans="$orphans$pid|$orphan_parent|$begun|$orphan_state|$command$nl"
	done <"$rig_dir/tree"
}

# tree_record: remember this tree, and the orphans of earlier ones while they live.
tree_record() {
	[ -d "$rig_dir" ] && [ -w "$rig_dir" ] || return 0
	record=
	while IFS='|' read -r pid ppid begun state command; do
		[ -z "$pid" ] || record="$record$pid|$begun|$main_pid:$main_start|$command$nl"
	done <<-END
		$tree_lines
	END
	if [ -f "$rig_dir/tree" ]; then
		orphans_find
		while IFS='|' read -r pid begun of command; do
			in_utc "$pid:$begun" && begun=${R#*:}
			case "$nl$orphans" in *"$nl$pid|"*"|$begun|"*) record="$record$pid|$begun|$of|$command$nl" ;; esac
		done <"$rig_dir/tree"
	fi
	{ printf '%s' "$record" >"$rig_dir/.tree.$$" && mv -f "$rig_dir/.tree.$$" "$rig_dir/tree"; } 2>/dev/null || rm -f "$rig_dir/.tree.$$"
}

# ---- commands

# bounded SECONDS COMMAND…: ended by SIGALRM when it takes longer.
bounded() {
	if [ -n "$have_perl" ]; then
		# shellcheck disable=SC2016 # perl
		perl -e 'alarm shift; exec { $ARGV[0] } @ARGV; exit 127' "$@"
	else
		shift
		"$@"
	fi
}

# What a shell is given to carry out RIG_COMMAND: the command itself would be among its arguments, for every user of the machine to read.
# shellcheck disable=SC2016 # for that shell
carry_out='command=$RIG_COMMAND; unset RIG_COMMAND; eval "$command"'

# run_command COMMAND [RECORD]: start a command of the inventory in the background, with default signals (a shell starts background
# jobs with SIGINT ignored, and exo would inherit that), away from our streams. RECORD is called in that background shell, before the
# command without an argument and after it with its status. command_done: has it ended? R: its status, or that it has not; where the
# folder cannot be written that is never known, and the command is given all the same. (`true`, for a redirection that fails ends a
# POSIX shell where the command is a special builtin like `:`.) command_forget: nobody will ask any more.
run_command() {
	status_file=$rig_dir/.status.$id.$$
	true 2>/dev/null >"$status_file"
	(
		[ $# -lt 2 ] || "$2"
		RIG_COMMAND=$1
		export RIG_COMMAND
		if [ -n "$have_perl" ]; then
			# shellcheck disable=SC2016 # perl
			perl -e '$SIG{$_} = "DEFAULT" for qw(INT QUIT HUP TERM PIPE); exec "/bin/sh", "-c", $ARGV[0]' "$carry_out"
		else
			sh -c "$carry_out"
		fi
		command_status=$?
		[ ! -f "$status_file" ] || printf '%s\n' "$command_status" >"$status_file"
		[ $# -lt 2 ] || "$2" "$command_status"
	) </dev/null >/dev/null 2>&1 &
}

command_done() {
	R=
	{ read -r R <"$status_file"; } 2>/dev/null
	[ -z "$R" ] || return 0
	R='has not ended'
	return 1
}

command_forget() {
	rm -f "$status_file"
}

# ---- the lock that keeps two rigs apart

# lock_allows: whether a fault may strike here now: RIG_DIR/lock still has the token that the controller came with (`lock`), and has not
# run out; for a script that is run without a token, that nobody holds the node. Fails with R: why not.
lock_allows() {
	lock_token='' lock_owner='' lock_run='' lock_boot='' lock_until='' lock_line=''
	if [ -e "$rig_dir/lock" ]; then
		while IFS= read -r lock_line; do
			case $lock_line in
			token=*) lock_token=${lock_line#*=} ;; boot_id=*) lock_boot=${lock_line#*=} ;; deadline=*) lock_until=${lock_line#*=} ;;
			owner=*) lock_owner=${lock_line#*=} ;; run=*) lock_run=${lock_line#*=} ;;
			esac
		done 2>/dev/null <"$rig_dir/lock"
		case $lock_until in
		'' | *[!0-9.]* | *.*.* | .* | *. | ????????????????*) lock_live=1 ;; # what cannot be read binds
		*)
			to_ms "$lock_until" && lock_until_ms=$R lock_live=
			now
			[ "$R" -ge "$lock_until_ms" ] || [ "$lock_boot" != "$boot_id" ] || lock_live=1
			;;
		esac
	else
		lock_live=
	fi
	R="this node is locked by ${lock_owner:-somebody} for run ${lock_run:-?}"
	if [ -z "$lock" ]; then
		[ -z "$lock_live" ]
	elif [ "$lock_token" != "$lock" ]; then
		[ -n "$lock_live" ] || R='the lock of this run is gone'
		return 1
	else
		R='the lock of this run has run out'
		[ -n "$lock_live" ]
	fi
}

# ---- leases

# An emulated machine shares its kernel with others and says by itself when it booted.
boot_id_now() {
	if [ -n "${RIG_EMULATED_BOOT:-}" ]; then
		R=$RIG_EMULATED_BOOT
	elif [ "$os" = Linux ] && [ -r /proc/sys/kernel/random/boot_id ]; then
		read -r R </proc/sys/kernel/random/boot_id
	else
		R=$(sysctl -n kern.bootsessionuuid 2>/dev/null)
	fi
}

# same_boot: the lease is of this boot. One that cannot be told counts as this one: its processes are looked at then, not forgotten.
same_boot() {
	boot_id_now
	[ -z "$R" ] || [ "$boot_id" = "$R" ]
}

# rig_dir_safe: ours, a real folder, nobody else can write to it. What a lease says is acted upon, commands included. R: why not.
rig_dir_safe() {
	R="rig_dir: $rig_dir is not a folder"
	[ -d "$rig_dir" ] && [ ! -L "$rig_dir" ] || return 1
	# shellcheck disable=SC2012 # the mode and owner of one folder
	mode_owner=$(ls -ldn "$rig_dir" | awk '{ print substr($1, 1, 10), $3 }')
	R="rig_dir: $rig_dir belongs to another user"
	[ "${mode_owner#* }" = "$(id -u)" ] || return 1
	R="rig_dir: $rig_dir can be written by others"
	case $mode_owner in d????-??-?*) ;; *) return 1 ;; esac
}

# lease_renew: write it if what it says of the strike is no longer so. Writing costs processes, which a strike has no time for.
lease_renew() {
	[ "$lease_says" = "$phase $pids" ] || lease_write
}
lease_says=

# lease_write: all of it under a temporary name, on the disk, then renamed; what is read is whole (`end`) or the one before, after a
# power cut too.
lease_write() {
	lease_new=$rig_dir/leases/.$id.$$
	printf '%s\n' version=1 "id=$id" "run=$run" "owner=$owner" "kind=$kind" "boot_id=$boot_id" "started=$started" \
		"deadline=$deadline" "script_pid=$script_pid" "script_start=$script_start" "script=$script" "phase=$phase" \
		"pids=$pids" "main=$main" "home=$home" "pidfile=$pidfile" "match=$match" "start=$start" "hold_cmd=$hold_cmd" \
		"release_cmd=$release_cmd" "sudo=$sudo" "table=$table" \
		"probes=$probes" "hogs=$hogs" "filled=$filled" "interface=$interface" \
		"patience=$patience" end=1 2>/dev/null >"$lease_new" && on_disk "$lease_new" &&
		mv -f "$lease_new" "$rig_dir/leases/$id" 2>/dev/null && lease_says="$phase $pids" && return 0
	rm -f "$lease_new" 2>/dev/null
	return 1
}

# on_disk PATH…: files and folders are written through to the disk. At most 5 s; fails when they are not. macOS has no command for one
# file, and its fsync stops short of the disk: F_FULLFSYNC (51) does not.
on_disk() {
	if [ "$os" = Linux ]; then
		bounded 5 sync "$@" </dev/null >/dev/null 2>&1
	else
		# shellcheck disable=SC2016 # perl
		bounded 5 perl -MIO::Handle -e 'for (@ARGV) { open my $file, "<", $_ or exit 1; fcntl($file, 51, 0) || $file->sync or exit 1 }' \
			"$@" </dev/null >/dev/null 2>&1
	fi
}

# lease_begin: the first writing, with the folders in which it stands.
lease_begin() {
	lease_write || return 1
	set -- "$rig_dir/leases" "$rig_dir"
	[ ! -r "$rig_dir/.." ] || set -- "$@" "$rig_dir/.."
	on_disk "$@"
}

# lease_read FILE: sets the variables of a lease; fails on one that is not whole, not named like its id, or holds an unknown key.
# lease_bad: what else in it cannot be understood. The rest of it is undone, and the lease stays.
lease_read() {
	forget
	lease_bad=
	while IFS= read -r line; do
		assign "${line%%=*}" "${line#*=}" || return 1
	done <"$1"
	case $deadline in '' | *[!0-9.]* | *.*.* | .* | *. | ????????????????*) return 1 ;; esac
	[ "$version" = 1 ] && [ "$end" = 1 ] && [ "$id" = "${1##*/}" ] && [ -n "$boot_id" ] || return 1
	# shellcheck disable=SC2086 # lists of items
	{
		items_read pids $pids && pids=$R
		items_read main $main && main=$R
		items_read hogs $hogs && hogs=$R
		[ -z "$script_pid$script_start" ] || { items_read script "$script_pid:$script_start" && script_start=${R#*:}; }
	}
	case $patience in 0?* | *[!0-9]* | ?????*) lease_bad="$lease_bad patience=$patience" patience='' ;; esac
}
lease_bad=

# items_read KEY WORD… -> R: those that are items, with their starts in UTC.
items_read() {
	items_key=$1 items=
	shift
	for item; do
		item_pid=${item%%:*} item_start=${item#*:}
		case $item_pid in '' | *[!0-9]* | ??????????*) item_start= ;; "$item") item_start= ;; esac
		case $item_start in '' | *[!A-Za-z0-9_:]*) lease_bad="$lease_bad $items_key=$item" ;; *) items="$items${items:+ }$item" ;; esac
	done
	# shellcheck disable=SC2086
	in_utc $items
}

# lease_drop: of a fault that did nothing.
lease_drop() {
	[ "$phase" = '' ] || rm -f "$rig_dir/leases/$id"
}

# lease_end: of a fault that is undone: what a script that was killed left beside its lease, the lease, and last the claims. Fails, with
# R, where the lease cannot be removed.
lease_end() {
	scraps_drop
	rm -f "$rig_dir/leases/$id" 2>/dev/null
	R="undone, but the lease cannot be removed from $rig_dir/leases"
	[ ! -e "$rig_dir/leases/$id" ] || return 1
	claims_drop
}

# scraps_drop, claims_drop: by the id in the names.
scraps_drop() {
	case $id in '' | *[!A-Za-z0-9._-]*) return 0 ;; esac
	set +f
	rm -f "$rig_dir"/.status."$id".* "$rig_dir/.go.$id" "$rig_dir/leases/.$id.start" "$rig_dir/filter-$id.nft" 2>/dev/null
	set -f
}
claims_drop() {
	case $id in '' | *[!A-Za-z0-9._-]*) return 0 ;; esac
	set +f
	rm -f "$rig_dir"/leases/."$id".* 2>/dev/null
	set -f
}

# scraps_sweep: what the dead left beside no lease: a claim (`.ID.claim.N`, by who was killed between his heal and its removal), something
# half written (`.ID.claiming.PID`, `.ID.PID`, `.tree.PID`, `.guard.PID`), a record (`.ID.start`).
scraps_sweep() {
	set +f
	set -- "$rig_dir"/leases/.*.* "$rig_dir"/.tree.* "$rig_dir"/.guard.*
	set -f
	for scrap; do
		[ -f "$scrap" ] || continue
		of=${scrap##*/.} scrap_by=${scrap##*.}
		case $of in
		*.claim.*) of=${of%.claim.*} && claim_holds "$scrap" && continue ;;
		*.start) of=${of%.start} ;;
		*) of=${of%.*} && of=${of%.claiming} && proc_fetch "$scrap_by" && proc_read "$scrap_by" && continue ;;
		esac
		[ -e "$rig_dir/leases/$of" ] || rm -f "$scrap" 2>/dev/null
	done
}

# claim_holds FILE: who made this claim lives. claim_by: he, as an item.
claim_holds() {
	claim_by='' claim_boot=''
	{ read -r claim_by claim_boot <"$1"; } 2>/dev/null || return 1
	boot_id_now
	[ "$claim_boot" = "$R" ] || return 1
	in_utc "$claim_by" && claim_by=$R
	look "$claim_by"
	[ -z "$is_gone" ]
}

# lease_claim FILE: be the only one who undoes this lease; claim_number: 1, or more where somebody began before and died. Fails with
# R, the process that is at it. Claims lie beside the lease as numbered files, each made by `ln`, which fails where one is: the last
# one counts while its process lives. They go when the lease goes. Where none can be written (a full disk), nobody is kept from healing.
lease_claim() {
	claim=$rig_dir/leases/.${1##*/}.claim claim_mine=$rig_dir/leases/.${1##*/}.claiming.$$
	own_item || return 0 # what undoes is a shell of its own, and goes on when the script is killed
	claim_self=$R
	while :; do
		claim_number=0
		set +f
		set -- "$1" "$claim".*
		set -f
		for file; do
			case ${file##*.claim.} in '' | 0* | *[!0-9]* | ?????*) continue ;; esac
			[ "${file##*.}" -le "$claim_number" ] || claim_number=${file##*.}
		done
		set -- "$1"
		if claim_holds "$claim.$claim_number"; then
			R=$claim_by
			[ "$R" = "$claim_self" ] && return 0 || return 1
		fi
		claim_number=$((claim_number + 1))
		boot_id_now
		printf '%s %s\n' "$claim_self" "$R" 2>/dev/null >"$claim_mine" || { rm -f "$claim_mine" && return 0; }
		ln "$claim_mine" "$claim.$claim_number" 2>/dev/null && rm -f "$claim_mine" && return 0
		rm -f "$claim_mine"
		[ -e "$claim.$claim_number" ] || return 0
	done
}

# lease_unclaim: another may try.
lease_unclaim() {
	rm -f "$claim.$claim_number"
}

# script_alive: the script that a lease names runs still (and is not a later process with its pid).
script_alive() {
	case $script_pid in '' | *[!0-9]* | 0* | 1) return 1 ;; esac
	proc_fetch "$script_pid"
	proc_read "$script_pid" && [ "$P_start" = "$script_start" ] && [ "$P_state" != Z ] || return 1
	case $(ps -ww -o command= -p "$script_pid" 2>/dev/null) in *"$script"*) ;; *) return 1 ;; esac
}

# lease_files -> R: the leases there are.
lease_files() {
	set +f
	set -- "$rig_dir"/leases/*
	set -f
	R=
	for file; do
		[ ! -f "$file" ] || [ -L "$file" ] || R="$R${R:+$nl}$file"
	done
}

# ---- facts about the machine

guard_scripts='lib.sh undo.sh filter.sh machine.sh root.sh heal.sh guard.sh' # what heals on a node by itself

# open_files PID: paths of its open files, a line each.
open_files() {
	if [ "$os" = Linux ] && [ -d "/proc/$1/fd" ]; then
		# shellcheck disable=SC2012 # link targets
		ls -l "/proc/$1/fd" 2>/dev/null | sed -n 's/.* -> //p'
	else
		bounded 5 lsof -nP -a -p "$1" -Fn </dev/null 2>/dev/null | sed -n 's/^n//p'
	fi
}

# memory_read -> mem_available, mem_wired (bytes; empty when the system has no such figure).
memory_read() {
	mem_available='' mem_wired=''
	if [ "$os" = Linux ] && [ -r /proc/meminfo ]; then
		mem_available=$(awk '/^MemAvailable:/ { printf "%.0f", $2 * 1024 }' /proc/meminfo)
	elif command -v vm_stat >/dev/null 2>&1; then
		# shellcheck disable=SC2046 # two numbers
		set -- $(vm_stat | awk '
			/page size of/ { for (i = 1; i < NF; i++) if ($i == "of") page = $(i + 1) }
			/^Pages (free|inactive|speculative):/ { free += $NF }
			/^Pages wired down:/ { wired = $NF + 0 }
			END { printf "%.0f %.0f", free * page, wired * page }')
		mem_available=${1-} mem_wired=${2-}
	fi
}
