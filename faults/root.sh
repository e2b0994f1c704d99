#!/usr/bin/env -S -i PATH=/usr/sbin:/sbin:/usr/bin:/bin LC_ALL=C sh
# Everything that the rig's faults need root for, and nothing else. `rig bootstrap` installs it, owned by root, and lets the SSH user
# run it by sudo: its first line gives it a clean environment then. A user who is root runs the same file as `sh root.sh`.
#
#   rules look                         what is here: `name=NAME` for all rules of the rig; on a Mac `referenced=0|1` and `enabled=0|1` too
#   rules show                         the same in the words of the packet filter, for people
#   rules cut NAME direction=both|in|out peers=A,B [ports=N,M] [clients=A,B api_port=N] [ssh=ADDRESS,PORT]
#                                      with `ports`, only what goes to and from these ports of the peers, UDP and TCP
#   rules loss|bandwidth|delay NAME amount=N peers=A,B [ssh=ADDRESS,PORT]      per cent, kbit/s, ms
#   rules counts NAME                  `DROPPED_IPV4 DROPPED_IPV6 SEEN MARK`; MARK is the same as long as the rules are
#   rules remove NAME, rules forget NAME       take them away; then prove it, and give back what they needed
#   link down|up INTERFACE             `up` gives back the addresses and routes that were there before
#   exo start|stop                     the service that rig bootstrap made
#   reboot
#
# Status 0; 1 with the reason on stdout; 2 when it refuses the words. It builds all rules itself out of words that it has checked, reads
# no file but its own, and touches only what it made: a note of each thing lies beside $made, where root alone can write, before the
# thing is made. NAME is `rig_` (nft, pf, tc) or `rig-` (iptables) and letters, digits and `_`.
set -u -f
umask 077
LC_ALL=C
PATH=${PATH:+$PATH:}/usr/sbin:/sbin:/usr/bin:/bin
export LC_ALL PATH
nl='
'
tab=$(printf '\t')
IFS=" $tab$nl"
cd / || exit 1
os=$(uname -s)
made=${RIG_MADE:-/var/run/rig} # RIG_MADE: of a node that is emulated, or whose SSH user is root
handle=7a19                    # of the queueing discipline that delays
first_pipe=7190 last_pipe=7199

refuse() {
	printf 'root.sh: refused: %s\n' "$1"
	exit 2
}

fail() {
	printf '%s\n' "$1"
	exit 1
}

# tool COMMAND…: its output and errors; ended when it takes longer than 5 s.
tool() {
	command -v "$1" >/dev/null 2>&1 || { printf '%s not found\n' "$1" && return 1; }
	if command -v perl >/dev/null 2>&1; then
		# shellcheck disable=SC2016 # perl
		set -- perl -e 'alarm 5; exec { $ARGV[0] } @ARGV; exit 127' "$@"
	fi
	"$@" </dev/null 2>&1
}

# ---- what it was told

check_name() {
	case ${1#rig[_-]} in "$1" | '' | *[!A-Za-z0-9_]*) refuse "no name of rules: $1" ;; esac
	case $os.$1 in Linux.rig-*) most=28 ;; *.rig_*) most=63 ;; *) refuse "no name of rules here: $1" ;; esac
	[ "${#1}" -le "$most" ] || refuse "longer than $most characters: $1"
	name=$1 note=$made.$1
}

check_number() { # KEY VALUE LEAST MOST
	case $2 in '' | 0?* | *[!0-9]* | ?????????*) refuse "$1: no number: $2" ;; esac
	[ "$2" -ge "$3" ] && [ "$2" -le "$4" ] || refuse "$1: $3 to $4: $2"
}

# addresses KEY LIST -> R: blank-separated. Numeric, each one address alone, of others than this node.
addresses() {
	key=$1 IFS=,
	# shellcheck disable=SC2086 # a list of addresses
	set -- $2
	IFS=" $tab$nl"
	[ $# -ge 1 ] && [ $# -le 256 ] || refuse "$key: 1 to 256 addresses"
	for address; do
		case $key.$address in ssh.*) ;; *.127.* | *.::1) refuse "$key: $address" ;; esac # what passes may be of this node itself
		case $address in
		*[!0-9A-Fa-f:.]*) refuse "$key: $address" ;;
		*:*:*) ;;
		*[!0-9.]*) refuse "$key: $address" ;;
		*.*.*.*) ;;
		*) refuse "$key: $address" ;;
		esac
	done
	R="$*"
}

# port_numbers LIST -> R: blank-separated
port_numbers() {
	IFS=,
	# shellcheck disable=SC2086 # a list of ports
	set -- $1
	IFS=" $tab$nl"
	[ $# -ge 1 ] && [ $# -le 8 ] || refuse 'ports: 1 to 8'
	for port; do check_number ports "$port" 1 65535; done
	R="$*"
}

check_interface() {
	case $1 in lo | lo0 | . | .. | '' | -* | *[!A-Za-z0-9._-]* | ????????????????*) refuse "no interface: $1" ;; esac
	interface=$1 note=$made.link-$1
}

# settings WHAT KEY=VALUE…
settings() {
	direction='' peers='' ports='' clients='' api_port='' ssh_address='' ssh_port='' amount='' what=$1
	shift
	for word; do
		value=${word#*=}
		case $what.$word in
		cut.direction=both | cut.direction=in | cut.direction=out) direction=$value ;;
		*.peers=*) addresses peers "$value" && peers=$R ;;
		cut.ports=*) port_numbers "$value" && ports=$R ;;
		cut.clients=*) addresses clients "$value" && clients=$R ;;
		cut.api_port=*) check_number api_port "$value" 1 65535 && api_port=$value ;;
		*.ssh=*,*)
			addresses ssh "${value%,*}" && ssh_address=$R
			check_number ssh "${value#*,}" 1 65535 && ssh_port=${value#*,}
			;;
		loss.amount=*) check_number amount "$value" 2 90 && amount=$value ;;
		bandwidth.amount=*) check_number amount "$value" 64 9999999 && amount=$value ;;
		delay.amount=*) check_number amount "$value" 5 10000 && amount=$value ;;
		*) refuse "$what: $word" ;;
		esac
	done
	[ -n "$peers" ] && [ "${clients:+1}" = "${api_port:+1}" ] || refuse "$what: a word is missing"
	[ -n "$direction$amount" ] || refuse "$what: a word is missing"
}

# ---- what it made

# begin_note: fails where something of that name was made and not taken away yet.
begin_note() {
	(set -C && printf 'what=%s\n' "$what" >"$note") 2>/dev/null || fail "$note is there already, or cannot be written"
}

add_note() {
	printf '%s=%s\n' "$1" "$2" 2>/dev/null >>"$note"
}

# noted KEY -> R, empty when there is none
noted() {
	R=$(sed -n "s/^$1=//p" "$note" 2>/dev/null)
}

# mark TEXT -> R: one word for it. Where the packet filter says who loaded the rules or numbers them, those loaded anew have another.
mark() {
	# shellcheck disable=SC2046 # checksum and size
	set -- $(printf '%s\n' "$1" | cksum)
	R=$1.$2
}

is_v6() {
	case $1 in *:*) return 0 ;; esac
	return 1
}

# kind_of WHAT -> kind: which packet filter the rules called `name` are of
kind_of() {
	case $os.$name in Linux.rig-*) kind=iptables ;; Linux.*) kind=nft ;; Darwin.*) kind=pf ;; *) refuse "no packet filter is known for $os" ;; esac
	[ "$kind.$1" != nft.delay ] || kind=tc
}

# ---- nft: a table for each fault

# nft_there: is the table loaded? Ends with the reason when that is not known.
nft_there() {
	tables=$(tool nft list tables) || fail "nft list tables: $tables"
	case "$nl$tables$nl" in *"${nl}table inet $name$nl"*) return 0 ;; esac
	return 1
}

nft_free() {
	! nft_there || fail "table inet $name is there already"
}

nft_load() {
	rules_in='' rules_out=''
	for address in $peers; do
		is_v6 "$address" && ip=ip6 || ip=ip
		case $what in
		cut)
			set -- "" ""
			[ -z "$ports" ] || {
				set -- "{ $(printf '%s' "$ports" | tr ' ' ,) }"
				set -- " meta l4proto { tcp, udp } th sport $1" " meta l4proto { tcp, udp } th dport $1"
			}
			rule_in="$ip saddr $address$1 counter drop" rule_out="$ip daddr $address$2 counter drop"
			;;
		loss) nft_shaped "numgen random mod 100 < $amount" ;;
		bandwidth) nft_shaped "limit rate over $((amount / 8 + 1)) kbytes/second burst 64 kbytes" ;;
		esac
		[ "$direction" = out ] || rules_in="$rules_in$tab$tab$rule_in$nl"
		[ "$direction" = in ] || rules_out="$rules_out$tab$tab$rule_out$nl"
	done
	for address in $clients; do
		is_v6 "$address" && ip=ip6 || ip=ip
		rules_in="$rules_in$tab$tab$ip saddr $address tcp dport $api_port counter drop$nl"
		rules_out="$rules_out$tab$tab$ip daddr $address tcp sport $api_port counter drop$nl"
	done
	pass_in="$tab${tab}iifname \"lo\" accept$nl" pass_out="$tab${tab}oifname \"lo\" accept$nl"
	if [ -n "$ssh_address" ]; then
		is_v6 "$ssh_address" && ip=ip6 || ip=ip
		pass_in="$pass_in$tab$tab$ip saddr $ssh_address tcp dport $ssh_port accept$nl"
		pass_out="$pass_out$tab$tab$ip daddr $ssh_address tcp sport $ssh_port accept$nl"
	fi
	{
		printf 'table inet %s {\n' "$name"
		nft_chain input "$pass_in$rules_in"
		nft_chain output "$pass_out$rules_out"
		nft_chain forward "$rules_in$rules_out"
		printf '}\n'
	} 2>/dev/null >"$note.rules" || fail "$note.rules cannot be written"
	tool nft -f "$note.rules" || exit 1
	rm -f "$note.rules"
}

nft_shaped() {
	rule_in="$ip saddr $address counter$nl$tab$tab$ip saddr $address $1 counter drop"
	rule_out="$ip daddr $address counter$nl$tab$tab$ip daddr $address $1 counter drop"
}

# Before connection tracking and every other filter (priority -300), so that an established connection is cut like a new one.
nft_chain() {
	printf '\tchain %s {\n\t\ttype filter hook %s priority -300; policy accept;\n%s\t}\n' "$1" "$1" "$2"
}

nft_counts() {
	listed=$(tool nft -a list table inet "$name") || fail "table inet $name is not there: $(printf '%s\n' "$listed" | sed -n 1p)"
	mark "$(printf '%s\n' "$listed" | sed 's/packets [0-9]* bytes [0-9]*//')"
	printf '%s\n' "$listed" | awk -v mark="$R" '
		/ counter packets [0-9]+ / && !/ tcp / {
			for (i = 1; i < NF; i++) if ($i == "packets") sum[/ drop/ ? $1 : "seen"] += $(i + 1)
		}
		END { print sum["ip"] + 0, sum["ip6"] + 0, sum["seen"] + 0, mark }'
}

nft_remove() {
	nft_there || return 0
	deleted=$(tool nft delete table inet "$name") || fail "table inet $name is still there: $deleted"
}

nft_forget() {
	! nft_there || fail "table inet $name is still there"
}

# ---- iptables: a chain for each fault in either family, called first by INPUT and OUTPUT

# both COMMAND…: for each family; ends with the reason at the first that fails.
both() {
	for family in iptables ip6tables; do
		R=$(tool "$family" -w "$@") || fail "$family: $R"
	done
}

# iptables_there TOOL: is there such a chain? -> R: all chains
iptables_there() {
	R=$(tool "$1" -w -S) || fail "$1: $R"
	case "$nl$R$nl" in *"$nl-N $name$nl"*) return 0 ;; esac
	return 1
}

iptables_anywhere() {
	iptables_there iptables || iptables_there ip6tables
}

iptables_free() {
	[ "$what" = cut ] || fail 'nft not found'
	! iptables_anywhere || fail "chain $name is there already"
}

iptables_load() {
	both -N "$name"
	both -A "$name" -i lo -j RETURN
	both -A "$name" -o lo -j RETURN
	if [ -n "$ssh_address" ]; then
		iptables_rule -s "$ssh_address" RETURN -p tcp --dport "$ssh_port"
		iptables_rule -d "$ssh_address" RETURN -p tcp --sport "$ssh_port"
	fi
	for address in $peers; do
		if [ -z "$ports" ]; then
			[ "$direction" = out ] || iptables_rule -s "$address" DROP
			[ "$direction" = in ] || iptables_rule -d "$address" DROP
		fi
		for port in $ports; do
			for protocol in udp tcp; do
				[ "$direction" = out ] || iptables_rule -s "$address" DROP -p $protocol --sport "$port"
				[ "$direction" = in ] || iptables_rule -d "$address" DROP -p $protocol --dport "$port"
			done
		done
	done
	for address in $clients; do
		iptables_rule -s "$address" DROP -p tcp --dport "$api_port"
		iptables_rule -d "$address" DROP -p tcp --sport "$api_port"
	done
	both -I INPUT 1 -j "$name"
	both -I OUTPUT 1 -j "$name"
}

# iptables_rule SIDE ADDRESS TARGET [MATCH…]
iptables_rule() {
	is_v6 "$2" && family=ip6tables || family=iptables
	side=$1 address_only=$2 target=$3
	shift 3
	R=$(tool "$family" -w -A "$name" "$side" "$address_only" "$@" -j "$target") || fail "$family: $R"
}

iptables_counts() {
	listing='' dropped=''
	for family in iptables ip6tables; do
		iptables_there "$family" || fail "chain $name is not there"
		for hook in INPUT OUTPUT; do
			case "$nl$R$nl" in *"$nl-A $hook -j $name$nl"*) ;; *) fail "$hook of $family does not call chain $name" ;; esac
		done
		listing="$listing$(printf '%s\n' "$R" | grep -E -e " $name( |\$)")$nl"
		listed=$(tool "$family" -w -x -v -n -L "$name") || fail "$family: $listed"
		dropped="$dropped $(printf '%s\n' "$listed" | awk '$3 == "DROP" && $4 != "tcp" && $4 != "6" { sum += $1 } END { print sum + 0 }')"
	done
	mark "$listing"
	printf '%s 0 %s\n' "${dropped# }" "$R"
}

iptables_remove() {
	for family in iptables ip6tables; do
		for hook in INPUT OUTPUT; do tool "$family" -w -D "$hook" -j "$name" >/dev/null || :; done
		tool "$family" -w -F "$name" >/dev/null || :
		tool "$family" -w -X "$name" >/dev/null || :
	done
}

iptables_forget() {
	! iptables_anywhere || fail "chain $name is still there"
}

# ---- tc: a queueing discipline of our own, of which one class delays what goes to the peers

# devices -> R: the interfaces by which the peers are reached
devices() {
	found=
	for address in $peers; do
		device=$(tool ip -o route get "$address" | sed -n 's/.* dev \([^ ]*\).*/\1/p')
		case " $found lo " in *" ${device:-lo} "*) ;; *) found="$found${found:+ }$device" ;; esac
	done
	R=$found
}

tc_root() {
	R=$(tool tc qdisc show dev "$1" root | sed -n 1p)
}

tc_free() {
	R=$(tool tc qdisc show) || fail "tc: $R"
	devices
	[ -n "$R" ] || fail 'no interface leads to the peers'
	leading=$R
	for device in $leading; do
		tc_root "$device"
		case $R in '' | 'qdisc '*' 0: '*) ;; *) fail "$device has a queueing discipline that is not ours: $R" ;; esac
	done
}

tc_load() {
	add_note devices "$leading" || fail "$note cannot be written"
	for device in $leading; do
		if ! R=$(tool tc qdisc add dev "$device" root handle $handle: prio bands 4) ||
			! R=$(tool tc qdisc add dev "$device" parent $handle:4 netem delay "${amount}ms"); then
			fail "tc: this kernel cannot delay packets (netem): $(printf '%s' "$R" | tr '\n' ' ')"
		fi
		for address in $peers; do
			if is_v6 "$address"; then set -- ipv6 2 ip6 128; else set -- ip 1 ip 32; fi
			R=$(tool tc filter add dev "$device" parent $handle: protocol "$1" prio "$2" u32 match "$3" dst "$address/$4" flowid $handle:4) ||
				fail "tc: $R"
		done
	done
}

tc_counts() {
	seen=0 listing=
	noted devices
	for device in $R; do
		R=$(tool tc -s qdisc show dev "$device" | awk '/^qdisc/ { netem = / netem / } netem && /Sent/ { print $4 }')
		[ -n "$R" ] || fail "$device delays nothing any more"
		seen=$((seen + R))
		listing="$listing$(tool tc qdisc show dev "$device")$nl$(tool tc filter show dev "$device")$nl"
	done
	mark "$listing"
	printf '0 0 %s %s\n' "$seen" "$R"
}

tc_remove() {
	noted devices
	for device in $R; do
		tc_root "$device"
		case $R in "qdisc "*" $handle: "*) R=$(tool tc qdisc del dev "$device" root handle $handle:) || fail "tc: $R" ;; esac
	done
}

tc_forget() {
	noted devices
	for device in $R; do
		tc_root "$device"
		case $R in "qdisc "*" $handle: "*) fail "$device still has $R" ;; esac
	done
}

# ---- pf: an anchor for each fault, a child of com.apple, because the stock main ruleset calls these by its wildcard, and no grandchildren

pf_state() {
	main_rules=$(tool pfctl -s rules) || fail "pfctl -s rules: $main_rules"
	case "$nl$main_rules" in *"$nl"'anchor "com.apple/*"'*) referenced=1 ;; *) referenced=0 ;; esac # not its scrub-anchor
	case $(tool pfctl -s info) in *'Status: Enabled'*) enabled=1 ;; *) enabled=0 ;; esac
}

# in_anchor WORD…: pfctl on the anchor of this fault
in_anchor() {
	tool pfctl -q -a "com.apple/$name" "$@"
}

# pf_there: has the anchor rules? pfctl may remark on ALTQ; a rule starts with its action.
pf_there() {
	listed=$(in_anchor -s rules) || fail "pfctl: $listed"
	case $what in cut) ;; *) listed="$listed$nl$(in_anchor -s dummynet)" || fail "pfctl: $listed" ;; esac
	printf '%s\n' "$listed" | grep -E -q '^(pass|block|scrub|anchor|dummynet|nat|rdr)'
}

pf_free() {
	! pf_there || fail "anchor com.apple/$name has rules already"
}

pf_load() {
	[ "$what" = cut ] || pipe_make
	if [ "$what" = cut ]; then pf_cut; else pf_shape; fi 2>/dev/null >"$note.rules" || fail "$note.rules cannot be written"
	in_anchor -n -f "$note.rules" || exit 1
	# The token first of all: without it, pf can never be given back.
	enabling=$(tool pfctl -E) || fail "pfctl -E: $enabling"
	token=$(printf '%s\n' "$enabling" | sed -n 's/.*Token : \([0-9][0-9]*\).*/\1/p')
	[ -n "$token" ] || fail 'pfctl -E gave no token'
	add_note token "$token" || { tool pfctl -X "$token" >/dev/null && fail "$note cannot be written"; }
	in_anchor -f "$note.rules" || exit 1
	rm -f "$note.rules"
	pf_state
	[ "$enabled" = 1 ] || fail 'pf is not enabled'
	[ "$what" != cut ] || pf_kill_states
}

pf_cut() {
	printf 'pass quick on lo0 all no state\n'
	if [ -n "$ssh_address" ]; then
		printf 'pass in quick proto tcp from %s to any port %s flags any no state\n' "$ssh_address" "$ssh_port"
		printf 'pass out quick proto tcp from any port %s to %s flags any no state\n' "$ssh_port" "$ssh_address"
	fi
	for address in $peers; do
		is_v6 "$address" && family=inet6 || family=inet
		if [ -z "$ports" ]; then
			[ "$direction" = out ] || printf 'block drop quick %s from %s to any\n' "$family" "$address"
			[ "$direction" = in ] || printf 'block drop quick %s from any to %s\n' "$family" "$address"
		fi
		for port in $ports; do
			for protocol in udp tcp; do
				[ "$direction" = out ] || printf 'block drop quick %s proto %s from %s port %s to any\n' "$family" $protocol "$address" "$port"
				[ "$direction" = in ] || printf 'block drop quick %s proto %s from any to %s port %s\n' "$family" $protocol "$address" "$port"
			done
		done
	done
	for address in $clients; do
		printf 'block drop quick proto tcp from %s to any port %s\n' "$address" "$api_port"
		printf 'block drop quick proto tcp from any port %s to %s\n' "$api_port" "$address"
	done
}

pf_shape() {
	for address in $peers; do
		printf 'dummynet out quick proto tcp from any to %s pipe %s\n' "$address" "$pipe"
	done
}

# A connection that some pass rule keeps state for would live on.
pf_kill_states() {
	for address in $peers; do
		is_v6 "$address" && any=::/0 || any=0.0.0.0/0
		tool pfctl -k "$address" >/dev/null && tool pfctl -k "$any" -k "$address" >/dev/null || states_kept=1
	done
	[ -z "${states_kept-}" ] || printf 'states_kept=1\n'
}

pf_counts() {
	pf_state
	[ "$enabled" = 1 ] || fail 'pf is not enabled'
	[ "$referenced" = 1 ] || fail 'anchor "com.apple/*" is not referenced by the main ruleset'
	noted token
	case $(tool pfctl -s References) in *"$R"*) ;; *) fail 'pf was disabled: the token that kept it enabled is void' ;; esac
	pf_there || fail "anchor com.apple/$name has no rules"
	counted=rules
	if [ "$what" != cut ]; then
		counted=dummynet
		noted pipe
		listed="$listed$nl$(tool pfctl -s dummynet)$nl$(pipe_line "$R")"
		pipe_line "$R" >/dev/null || fail "pipe $R is not there"
	fi
	counters=$(in_anchor -s $counted -v) || fail "pfctl: $counters"
	mark "$listed$nl$(printf '%s\n' "$counters" | grep -v Evaluations:)" # `Inserted: … pid N`, too
	printf '%s\n' "$counters" | awk -v mark="$R" '
		/^[a-z]/ { family = /^block / && !/ proto tcp / ? (/ inet6 / ? "6" : "4") : /^dummynet/ ? "seen" : "" }
		family != "" && /Packets:/ { for (i = 1; i < NF; i++) if ($i == "Packets:") sum[family] += $(i + 1) }
		END { print sum["4"] + 0, sum["6"] + 0, sum["seen"] + 0, mark }'
}

pf_remove() {
	in_anchor -F all >/dev/null || :
}

pf_forget() {
	! pf_there || fail "anchor com.apple/$name still has rules: $listed"
	noted pipe
	if [ -n "$R" ] && pipe_line "$R" >/dev/null; then
		deleted=$(tool dnctl pipe "$R" delete) || fail "dnctl pipe $R delete: $deleted"
	fi
	noted token
	[ -n "$R" ] || return 0
	# A token can only be refused when it is void already (somebody ran pfctl -d, or an earlier undo returned it).
	if tool pfctl -X "$R" >/dev/null; then printf 'token_returned=1\n'; else printf 'token_returned=0\n'; fi
}

# pipe_line NUMBER: what dnctl says of the pipe, without what changes; fails when there is none.
pipe_line() {
	tool dnctl pipe show | grep -e "^0*$1:" | sed 's/ sl\..*//' | grep .
}

# pipe_make -> pipe: the first number of ours that nobody uses.
pipe_make() {
	R=$(tool dnctl pipe show) || fail "dnctl: $R"
	pipe=$first_pipe
	while pipe_line "$pipe" >/dev/null; do
		pipe=$((pipe + 1))
		[ "$pipe" -le "$last_pipe" ] || fail "pipes $first_pipe to $last_pipe are all in use"
	done
	case $what in
	loss) set -- plr "0.$((amount / 10))$((amount % 10))" ;;
	bandwidth) set -- bw "${amount}Kbit/s" ;;
	delay) set -- delay "$amount" ;;
	esac
	add_note pipe "$pipe" || fail "$note cannot be written"
	R=$(tool dnctl pipe "$pipe" config "$@") || fail "dnctl: $R"
}

# ---- an interface

link_list() {
	if [ "$os" = Linux ]; then tool ip -o link show dev "$interface"; else tool ifconfig "$interface"; fi
}

link_set() {
	if [ "$os" = Linux ]; then tool ip link set dev "$interface" "$1"; else tool ifconfig "$interface" "$1"; fi
}

# link_facts: its addresses and routes, a line each, as `ip` takes them. Linux drops some of them with the link; macOS keeps them.
link_facts() {
	[ "$os" = Linux ] || return 0
	ip -o addr show dev "$interface" scope global 2>/dev/null | awk '{ print "addr " $4 }'
	ip -o -6 addr show dev "$interface" scope link 2>/dev/null | awk '{ print "addr " $4 }'
	for family in -4 -6; do
		ip -o "$family" route show dev "$interface" 2>/dev/null | grep -v ' proto kernel ' | sed "s/^/route $family /; s/ linkdown//"
	done
}

link_down() {
	R=$(link_list) || fail "there is no interface $interface"
	what='link'
	begin_note
	link_facts >>"$note" || fail "$note cannot be written"
	link_set down || { rm -f "$note" && exit 1; }
}

# What the kernel gives back late (or not at all) is given back here; what is there already is not an error.
link_up() {
	if [ ! -f "$note" ]; then
		R=$(link_list) || fail "there is no interface $interface"
		case ${R%%"$nl"*} in *[\<,]UP[,\>]*) exit 0 ;; esac
		fail "$interface was not taken down by the rig"
	fi
	link_set up || exit 1
	while read -r sort value; do
		case $sort in
		addr)
			case $value in *:*) nodad=nodad ;; *) nodad='' ;; esac
			[ -n "$(ip -o addr show dev "$interface" to "${value%/*}" 2>/dev/null)" ] ||
				tool ip addr add "$value" dev "$interface" $nodad >/dev/null || :
			;;
		route)
			# shellcheck disable=SC2086 # words, as ip printed them
			tool ip ${value%% *} route replace ${value#* } dev "$interface" >/dev/null || :
			;;
		esac
	done <"$note"
	rm -f "$note"
}

# ---- what it is asked for

look() {
	case $os in
	Darwin)
		pf_state
		printf 'referenced=%s\nenabled=%s\n' "$referenced" "$enabled"
		tool pfctl -q -a com.apple -s Anchors | sed -n 's|^ *com\.apple/\(rig_[A-Za-z0-9_]*\)$|name=\1|p'
		;;
	Linux)
		if command -v nft >/dev/null 2>&1 || ! command -v iptables >/dev/null 2>&1; then
			R=$(tool nft list tables) || fail "nft list tables: $R"
			printf '%s\n' "$R" | sed -n 's/^table inet \(rig_[A-Za-z0-9_]*\)$/name=\1/p'
		else
			both -S
			{ tool iptables -w -S && tool ip6tables -w -S; } | sed -n 's/^-N \(rig-[A-Za-z0-9_]*\)$/name=\1/p' | sort -u
		fi
		;;
	*) fail "no packet filter is known for $os" ;;
	esac
}

show() {
	R=$(look) || fail "$R"
	[ "$os" != Darwin ] || { tool pfctl -s info && tool pfctl -s rules; }
	for line in $R; do
		case $os.$line in
		Darwin.name=*) tool pfctl -q -a "com.apple/${line#name=}" -s rules -v ;;
		*.name=rig_*) tool nft list table inet "${line#name=}" ;;
		*.name=*) tool iptables -w -x -v -n -L "${line#name=}" && tool ip6tables -w -x -v -n -L "${line#name=}" ;;
		esac
	done
}

load() {
	what=$1
	check_name "$2"
	shift 2
	settings "$what" "$@"
	kind_of "$what"
	"${kind}_free"
	begin_note
	"${kind}_load"
}

# undo remove|forget: rules that it did not make are left alone; where there are none, there is nothing to do.
undo() {
	noted what
	what=${R:-cut}
	kind_of "$what"
	if [ ! -f "$note" ]; then
		case $kind in nft) nft_there ;; iptables) iptables_anywhere ;; *) pf_there ;; esac || exit 0
		fail "$name is there, and was not made by the rig"
	fi
	"${kind}_$1"
	[ "$1" = remove ] || rm -f "$note" "$note.rules"
}

exo_service() {
	case $os.$1 in
	Darwin.start) tool launchctl kickstart system/io.rig.exo ;;
	Darwin.stop) tool launchctl kill TERM system/io.rig.exo ;;
	*) tool systemctl "$1" rig-exo.service ;;
	esac
}

case $#.${1-}.${2-} in
2.rules.look) look ;;
2.rules.show) show ;;
3.rules.counts)
	check_name "$3"
	[ -f "$note" ] || fail "$name was not made by the rig, or is gone"
	noted what && what=$R
	kind_of "$what"
	"${kind}_counts"
	;;
3.rules.remove | 3.rules.forget) check_name "$3" && undo "$2" ;;
[4-9].rules.cut | [4-9].rules.loss | [4-9].rules.bandwidth | [4-9].rules.delay) shift && load "$@" ;;
3.link.down | 3.link.up) check_interface "$3" && "link_$2" ;;
2.exo.start | 2.exo.stop) exo_service "$2" ;;
1.reboot.) tool shutdown -r now ;;
*) refuse "${*:-nothing asked}" ;;
esac
