# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154 # set in lib.sh, filter.sh and shape.sh, read there
# A network made worse but not cut, towards the peers alone. Loss and bandwidth are rules of this fault's own nft table on Linux; delay
# is netem there, which not every kernel has. On Darwin all three are a dummynet pipe that the anchor com.apple/rig sends packets to.
# Fail closed as in filter.sh: a root qdisc or a pipe that no lease names is not ours.

rig_pipe=41
rig_qdisc=7a19

# shape_ready: may this fault be set up? R: why not
shape_ready() {
	case $filter_kind.$effect in
	nft.delay | iptables.delay) tc_ready ;;
	nft.*) filter_ready ;;
	pf.*) filter_ready && pipe_ready ;;
	iptables.*) R='nft not found' && return 1 ;;
	*) none_ready ;;
	esac
}

# shape_load: set it up; R: why not
shape_load() {
	case $filter_kind.$effect in
	nft.delay | iptables.delay) tc_load ;;
	nft.*) shape_nft_load ;;
	pf.*) pipe_load && pf_load ;;
	esac
}

# shape_counts -> seen, dropped: packets so far; fails when the rule is not there. netem and dummynet tell only of what passed.
shape_counts() {
	seen=0 dropped=0
	case $filter_kind.$effect in
	nft.delay | iptables.delay) tc_counts ;;
	nft.*) shape_nft_counts ;;
	pf.*) pipe_counts ;;
	esac
}

undo_shape() {
	removed_ms=
	if same_boot; then
		if [ -n "$qdisc" ]; then
			tc_remove || { note reason "$R" && return 1; }
		elif [ "$os" = Linux ]; then
			[ -z "$table" ] || nft_remove || { note reason "$R" && return 1; }
		else
			pf_remove || { note reason "$R" && return 1; }
			[ -z "$pipe" ] || pipe_remove || { note reason "$R" && return 1; }
		fi
	fi
	now
	undone_ms=${removed_ms:-$R}
}

# ---- nft

shape_nft_load() {
	case $effect in
	loss) condition="numgen random mod 100 < $amount" ;;
	bandwidth) condition="limit rate over $((amount / 8 + 1)) kbytes/second burst 64 kbytes" ;;
	esac
	rules_in='' rules_out=''
	for address in $peers; do
		family_of "$address"
		[ "$R" = 6 ] && ip=ip6 || ip=ip
		for side in saddr daddr; do
			R="$tab$tab$ip $side ${address%%%*} counter$nl$tab$tab$ip $side ${address%%%*} $condition counter drop$nl"
			[ "$side" = saddr ] && rules_in="$rules_in$R" || rules_out="$rules_out$R"
		done
	done
	nft_table_load
}

shape_nft_counts() {
	listed=$(filter nft list table inet "$table") || return 1
	# shellcheck disable=SC2046 # two numbers
	set -- $(printf '%s\n' "$listed" | awk '
		/ counter packets [0-9]+ / && !/ tcp / {
			for (i = 1; i < NF; i++) if ($i == "packets") sum[/ drop/ ? "d" : "s"] += $(i + 1)
		}
		END { print sum["s"] + 0, sum["d"] + 0 }')
	seen=$1 dropped=$2
}

# ---- tc netem: a class of a priority queue that only the peers' packets go to

# devices -> R: the interfaces by which the peers are reached
devices() {
	found_devices=
	for address in $peers; do
		device_of "$address" && device=$R
		case " $found_devices lo " in *" $device "*) ;; *) found_devices="$found_devices${found_devices:+ }$device" ;; esac
	done
	R=$found_devices
}

tc_ready() {
	R='tc not found'
	command -v tc >/dev/null 2>&1 || return 1
	devices
	[ -n "$R" ] || { R='no interface leads to the peers' && return 1; }
	for device in $R; do
		root=$(tc qdisc show dev "$device" root 2>/dev/null | sed -n 1p)
		case $root in '' | 'qdisc '*' 0: '*) ;; *) R="$device has a queueing discipline that is not ours: $root" && return 1 ;; esac
	done
}

tc_load() {
	devices
	qdisc=$R
	lease_write || { R='the lease cannot be written' && return 1; }
	for device in $qdisc; do
		if ! R=$(filter tc qdisc add dev "$device" root handle $rig_qdisc: prio bands 4) ||
			! R=$(filter tc qdisc add dev "$device" parent $rig_qdisc:4 netem delay "${amount}ms"); then
			R="tc: this kernel cannot delay packets (netem): $(printf '%s' "$R" | tr '\n' ' ')"
			return 1
		fi
		for address in $peers; do
			family_of "$address"
			if [ "$R" = 6 ]; then set -- ipv6 2 ip6 128; else set -- ip 1 ip 32; fi
			R=$(filter tc filter add dev "$device" parent $rig_qdisc: protocol "$1" prio "$2" u32 match "$3" dst "${address%%%*}/$4" flowid $rig_qdisc:4) ||
				return 1
		done
	done
}

tc_counts() {
	for device in $qdisc; do
		R=$(tc -s qdisc show dev "$device" 2>/dev/null | awk '/^qdisc/ { netem = / netem / } netem && /Sent/ { print $4 }')
		[ -n "$R" ] || return 1
		seen=$((seen + R))
	done
}

tc_remove() {
	for device in $qdisc; do
		case $device in *[!A-Za-z0-9._-]*) R="the lease names no interface: $device" && return 1 ;; esac
		root=$(tc qdisc show dev "$device" root 2>/dev/null | sed -n 1p)
		case $root in "qdisc "*" $rig_qdisc: "*) ;; *) continue ;; esac
		R=$(filter tc qdisc del dev "$device" root handle $rig_qdisc:) || return 1
	done
	now && removed_ms=$R
}

# ---- dummynet

pipe_there() {
	case "$nl$(filter dnctl pipe show 2>/dev/null)" in *"$nl"000"$rig_pipe":*) return 0 ;; esac
	return 1
}

pipe_ready() {
	R='dnctl not found'
	command -v dnctl >/dev/null 2>&1 || return 1
	R="pipe $rig_pipe is there already"
	! pipe_there
}

pipe_load() {
	pipe=$rig_pipe
	lease_write || { R='the lease cannot be written' && return 1; }
	case $effect in
	loss) R=$(filter dnctl pipe $rig_pipe config plr "0.$((amount / 10))$((amount % 10))") ;;
	bandwidth) R=$(filter dnctl pipe $rig_pipe config bw "${amount}Kbit/s") ;;
	delay) R=$(filter dnctl pipe $rig_pipe config delay "$amount") ;;
	esac
}

# In place of the partition's rules (filter.sh), for pf_load.
shape_pf_rules() {
	for address in $peers; do
		printf 'dummynet out quick proto tcp from any to %s pipe %s\n' "${address%%%*}" "$rig_pipe"
	done
}

pipe_counts() {
	pipe_there || return 1
	seen=$(filter pfctl -q -a com.apple/rig -s dummynet -v | awk '
		/Packets:/ { for (i = 1; i < NF; i++) if ($i == "Packets:") sum += $(i + 1) } END { print sum + 0 }')
}

pipe_remove() {
	[ "$pipe" = "$rig_pipe" ] || { R="the lease names a pipe that is not ours: $pipe" && return 1; }
	pipe_there || return 0
	R=$(filter dnctl pipe "$rig_pipe" delete) || :
	! pipe_there
}
