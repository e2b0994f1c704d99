# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154 # set in lib.sh and the scripts that source this file, read there
# Faults of the machine rather than of exo: processes that use it up (`hogs`), a file that fills its disk, an interface that is down.
# Each `undo_…` works from the variables of a lease alone, sets undone_ms, and touches nothing else.

# ---- hogs: perl processes of ours that end by themselves at the latest `hog_life_s` after their start

# hog_start CODE ARGUMENT…: one that waits to be released, so that the lease names it before it does anything. Adds to hogs.
hog_start() {
	hog_code=$1
	shift
	# shellcheck disable=SC2016 # perl
	perl -e '
		my ($parent, $life, $go, $code) = splice(@ARGV, 0, 4);
		$SIG{ALRM} = sub { exit };
		$SIG{$_} = "DEFAULT" for qw(INT HUP PIPE);
		$SIG{TERM} = sub { exit };
		alarm $life;
		my $waited = 0;
		until (-e $go) { exit if ++$waited > 500 || getppid() != $parent; select(undef, undef, undef, 0.02) }
		eval $code;
		select(undef, undef, undef, 1) while 1;
	' "$$" "$hog_life_s" "$rig_dir/.go.$id" "$hog_code" "$@" </dev/null >/dev/null 2>&1 &
	hog_pid=$!
	proc_fetch "$hog_pid"
	proc_read "$hog_pid" || { R='a process of ours ended at once' && return 1; }
	hogs="$hogs${hogs:+ }$hog_pid:$P_start"
}

hogs_release() {
	true 2>/dev/null >"$rig_dir/.go.$id" || { R="$rig_dir cannot be written" && return 1; }
}

# cpu_ms ITEM… -> R: processor time that they used so far.
cpu_ms() {
	cpu_total=0
	for item; do
		if [ "$os" = Linux ]; then
			{ read -r cpu_line <"/proc/${item%%:*}/stat"; } 2>/dev/null || continue
			cpu_line=${cpu_line##*) }
			# shellcheck disable=SC2086 # fields
			cpu_fields_of $cpu_line
		else
			R=$(ps -o time= -p "${item%%:*}" 2>/dev/null | awk '{ n = split($1, t, /[:.]/); print ((n > 3 ? t[n - 3] * 60 : 0) + t[n - 2]) * 60000 + t[n - 1] * 1000 + t[n] * 10 }')
		fi
		cpu_total=$((cpu_total + ${R:-0}))
	done
	R=$cpu_total
}

# Fields 14 and 15 of /proc/PID/stat, in ticks of 10 ms.
cpu_fields_of() {
	shift 11
	R=$((($1 + $2) * 10))
}

undo_hogs() {
	rm -f "$rig_dir/.go.$id"
	if same_boot && [ -n "$hogs" ]; then
		now
		give_up_ms=$((R + 10000))
		while :; do
			# shellcheck disable=SC2086 # a list of items
			signal KILL $hogs
			# shellcheck disable=SC2086
			look $hogs
			[ -n "$is_running$is_stopped" ] || break
			now
			[ "$R" -lt "$give_up_ms" ] || { note reason "still there:$is_running$is_stopped" && return 1; }
			pause 20
		done
	fi
	now
	undone_ms=$R
}

# ---- the file that fills a disk

# disk_free FOLDER -> R: bytes
disk_free() {
	R=$(df -Pk "$1" 2>/dev/null | awk 'NR == 2 { printf "%.0f", $4 * 1024 }')
	[ -n "$R" ]
}

# Only a file of ours by its name: of this fault, in some folder.
undo_fill() {
	case $filled in */.rig-fill-"$id") ;; *) note reason "the lease names no file of ours: $filled" && return 1 ;; esac
	[ -z "$hogs" ] || undo_hogs || return 1 # a writer that lives would go on
	if [ -L "$filled" ] || { [ -e "$filled" ] && [ ! -f "$filled" ]; }; then note reason "$filled is no plain file" && return 1; fi
	rm -f "$filled"
	[ ! -e "$filled" ] || { note reason "$filled is still there" && return 1; }
	now
	undone_ms=$R
	disk_free "${filled%/*}" && note free "$R"
	return 0
}

# ---- an interface that was taken down

# link_is up|down
link_is() {
	if [ "$os" = Linux ]; then
		link_line=$(ip -o link show dev "$interface" 2>/dev/null) || { R="there is no interface $interface" && return 1; }
		case $link_line in *[\<,]UP[,\>]*) link_state=up ;; *) link_state=down ;; esac
	else
		link_line=$(ifconfig "$interface" 2>/dev/null) || { R="there is no interface $interface" && return 1; }
		case ${link_line%%"$nl"*} in *[\<,]UP[,\>]*) link_state=up ;; *) link_state=down ;; esac
	fi
	R="$interface is $link_state"
	[ "$link_state" = "$1" ]
}

undo_link() {
	if same_boot && [ -n "$interface" ]; then
		case $interface in *[!A-Za-z0-9._-]*) note reason "the lease names no interface: $interface" && return 1 ;; esac
		now
		give_up_ms=$((R + 5000))
		until R=$(rooted link up "$interface") && link_is up; do
			link_error=$R
			now
			[ "$R" -lt "$give_up_ms" ] || { note reason "$link_error" && return 1; }
			pause 50
		done
	elif [ -n "$interface" ]; then
		made_before "link-$interface"
	fi
	now
	undone_ms=$R
}
