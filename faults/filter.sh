# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154 # set in lib.sh and partition.sh, read there
# The packet filter of a node, nft, iptables (where nft is missing) or pf (`filter_kind`, set in lib.sh), and the probes that prove
# what it does. Fail closed: a table, a chain or an anchor that no lease names is not ours, and is neither used nor removed.
#
#   filter_ready            may a rule be loaded? R: why not
#   filter_load             load the rule of this fault; R: why not
#   filter_counts           packets4, packets6: packets dropped between the peers so far; fails when the rule is not there
#   filter_remove           remove it (removed_ms: when), prove it gone; R: why not. Does nothing when it is gone already
#   filter_name             table: what the rules of this fault are called

filter_ready() { "${filter_kind:-none}_ready"; }
filter_load() { "${filter_kind:-none}_load"; }
filter_counts() { filter_of_lease && "${filter_kind:-none}_counts"; }
filter_remove() { filter_of_lease && "${filter_kind:-none}_remove"; }

# A chain of iptables has at most 28 characters, of which an id's last ones tell it from others.
filter_name() {
	R=$(printf '%s' "$id" | tr -c 'A-Za-z0-9_' '_')
	if [ "$filter_kind" = iptables ]; then table=rig-$(printf '%s' "$R" | tail -c 22); else table=rig_$R; fi
}

# Rules are undone by what made them, whatever is there now.
filter_of_lease() {
	case $os.$table in Linux.rig-*) filter_kind=iptables ;; Linux.rig_*) filter_kind=nft ;; esac
}

none_ready() {
	R="no packet filter is known for $os"
	return 1
}
none_load() { none_ready; }
none_counts() { none_ready; }
none_remove() { none_ready; }

# filter COMMAND…: as root, bounded. Standard error is kept: it is the reason when it fails.
filter() {
	if [ "$sudo" = 1 ] && [ "$(id -u)" != 0 ]; then set -- sudo -n "$@"; fi
	bounded 5 "$@" </dev/null 2>&1
}

family_of() {
	case $1 in *:*) R=6 ;; *) R=4 ;; esac
}

# device_of ADDRESS -> R: the interface by which it is reached; empty when that is not known
device_of() {
	case $1 in
	*%*) R=${1#*%} ;;
	*)
		if [ "$os" = Linux ]; then
			R=$(ip -o route get "$1" 2>/dev/null | sed -n 's/.* dev \([^ ]*\).*/\1/p')
		else
			R=$(route -n get "$1" 2>/dev/null | sed -n 's/.*interface: *\([^ ]*\).*/\1/p')
		fi
		;;
	esac
}

# reached_by INTERFACE ADDRESS… -> R: those of the addresses that are reached by it
reached_by() {
	wanted_device=$1 reached_peers=
	shift
	for address; do
		device_of "$address"
		[ "$R" != "$wanted_device" ] || reached_peers="$reached_peers${reached_peers:+ }$address"
	done
	R=$reached_peers
}

# The controller's address and the port of its SSH session, which must go on. Empty when the script was not started over SSH.
controller_read() {
	# shellcheck disable=SC2086 # four fields
	set -- ${SSH_CONNECTION-}
	controller=${1-} controller_port=${4:-22}
	case ${controller%%%*} in *[!0-9A-Fa-f.:]*) controller='' ;; esac
	case $controller_port in *[!0-9]*) controller_port=22 ;; esac
}

# addresses_or_usage LIST: addresses of others, and nothing that a rule file could take for more than that.
addresses_or_usage() {
	[ -n "$1" ] || usage 'peers are needed'
	for address in $1; do
		case ${address%%%*} in '' | *[!0-9A-Fa-f.:]*) usage "not an address: $address" ;; esac
		case $address in *%*) case ${address#*%} in '' | *[!A-Za-z0-9._-]*) usage "not an address: $address" ;; esac ;; esac
		case $address in 127.* | ::1 | ::1%* | fe80::1%lo*) usage "an address of this node itself: $address" ;; *:* | *.*.*.*) ;; *) usage "not an address: $address" ;; esac
	done
}

# ---- nft: a table a fault, so that undoing one never touches another

nft_ready() {
	R='nft not found'
	command -v nft >/dev/null 2>&1 || return 1
	tables=$(filter nft list tables) || { R="nft list tables: $tables" && return 1; }
	while read -r _ family name _; do
		case $family.$name in inet.rig_*) ;; *) continue ;; esac
		if [ "$name" = "$table" ]; then
			R="table inet $name is there already"
			return 1
		elif ! rules_leased "$name"; then
			R="table inet $name is there and no lease names it"
			return 1
		fi
	done <<-END
		$tables
	END
}

rules_leased() {
	lease_files
	leased_list=$R
	while IFS= read -r file; do
		[ -n "$file" ] && grep -q -x -e "table=$1" "$file" 2>/dev/null && return 0
	done <<-END
		$leased_list
	END
	return 1
}

nft_load() {
	rules_in='' rules_out=''
	for address in $peers; do
		case $direction in both | in) nft_rule saddr "$address" '' && rules_in="$rules_in$R" ;; esac
		case $direction in both | out) nft_rule daddr "$address" '' && rules_out="$rules_out$R" ;; esac
	done
	for address in $clients; do
		nft_rule saddr "$address" "tcp dport $api_port " && rules_in="$rules_in$R"
		nft_rule daddr "$address" "tcp sport $api_port " && rules_out="$rules_out$R"
	done
	nft_table_load
}

# nft_table_load: rules_in and rules_out as one table, behind what passes in any case.
nft_table_load() {
	pass_in='' pass_out=''
	if [ -n "$controller" ]; then
		family_of "$controller" && [ "$R" = 6 ] && ip=ip6 || ip=ip
		pass_in="$tab$tab$ip saddr ${controller%%%*} tcp dport $controller_port accept$nl"
		pass_out="$tab$tab$ip daddr ${controller%%%*} tcp sport $controller_port accept$nl"
	fi
	rules_file=$rig_dir/filter-$id.nft
	{
		printf 'table inet %s {\n' "$table"
		nft_chain input "$tab${tab}iifname \"lo\" accept$nl$pass_in$rules_in"
		nft_chain output "$tab${tab}oifname \"lo\" accept$nl$pass_out$rules_out"
		nft_chain forward "$rules_in$rules_out"
		printf '}\n'
	} 2>/dev/null >"$rules_file" || { R="$rules_file cannot be written" && return 1; }
	R=$(filter nft -f "$rules_file") && loaded=1 || loaded=
	[ -n "$loaded" ]
}

# The scope of a link-local address is left out: see docs/node-scripts.md.
nft_rule() {
	family_of "$2"
	[ "$R" = 6 ] && R=ip6 || R=ip
	R="$tab$tab$R $1 ${2%%%*} $3counter drop$nl"
}

# Before connection tracking and every other filter (priority -300), so that an established connection is cut like a new one.
nft_chain() {
	printf '\tchain %s {\n\t\ttype filter hook %s priority -300; policy accept;\n%s\t}\n' "$1" "$1" "$2"
}

nft_counts() {
	packets4=0 packets6=0
	listed=$(filter nft list table inet "$table") || return 1
	# shellcheck disable=SC2046 # two numbers
	set -- $(printf '%s\n' "$listed" | awk '
		/ counter packets [0-9]+ .* drop/ && !/ tcp / {
			for (i = 1; i < NF; i++) if ($i == "packets") sum[$1] += $(i + 1)
		}
		END { print sum["ip"] + 0, sum["ip6"] + 0 }')
	packets4=$1 packets6=$2
}

nft_remove() {
	rm -f "$rig_dir/filter-$id.nft"
	case $table in rig_*[!A-Za-z0-9_]* | '') R="the lease names no table of ours" && return 1 ;; rig_?*) ;; *) return 1 ;; esac
	nft_there || return "$((R == 0))"
	deleted=$(filter nft delete table inet "$table") || :
	now && removed_ms=$R
	nft_there || return "$((R == 0))"
	R="table inet $table is still there: $deleted"
	return 1
}

# nft_there: is the table loaded? When it is not known, fails with R=0, otherwise R=1 says that the answer is sure.
nft_there() {
	R=1
	tables=$(filter nft list tables) || { R=0 && return 1; }
	case "$nl$tables$nl" in *"table inet $table$nl"*) return 0 ;; esac
	return 1
}

# ---- iptables: a chain a fault in each family, first in INPUT and OUTPUT. What comes from a peer is only met in the one, what goes
# to a peer in the other.

# both COMMAND…: for each family; stops at the first that fails. R: what it said
both() {
	for tool in iptables ip6tables; do
		R=$(filter "$tool" -w "$@") || return 1
	done
}

iptables_ready() {
	for tool in iptables ip6tables; do
		R="$tool not found"
		command -v "$tool" >/dev/null 2>&1 || return 1
		chains=$(filter "$tool" -w -S) || { R="$tool: $chains" && return 1; }
		for name in $(printf '%s\n' "$chains" | sed -n 's/^-N \(rig-.*\)/\1/p'); do
			R="chain $name is there already"
			[ "$name" != "$table" ] || return 1
			rules_leased "$name" || { R="chain $name is there and no lease names it" && return 1; }
		done
	done
}

iptables_load() {
	both -N "$table" && both -A "$table" -i lo -j RETURN && both -A "$table" -o lo -j RETURN || return 1
	if [ -n "$controller" ]; then
		iptables_rule -s "$controller" RETURN -p tcp --dport "$controller_port" || return 1
		iptables_rule -d "$controller" RETURN -p tcp --sport "$controller_port" || return 1
	fi
	for address in $peers; do
		case $direction in both | in) iptables_rule -s "$address" DROP || return 1 ;; esac
		case $direction in both | out) iptables_rule -d "$address" DROP || return 1 ;; esac
	done
	for address in $clients; do
		iptables_rule -s "$address" DROP -p tcp --dport "$api_port" || return 1
		iptables_rule -d "$address" DROP -p tcp --sport "$api_port" || return 1
	done
	both -I INPUT 1 -j "$table" && both -I OUTPUT 1 -j "$table"
}

# iptables_rule SIDE ADDRESS TARGET [MATCH…]
iptables_rule() {
	family_of "$2"
	[ "$R" = 6 ] && tool=ip6tables || tool=iptables
	side=$1 address_only=${2%%%*} target=$3
	shift 3
	R=$(filter "$tool" -w -A "$table" "$side" "$address_only" "$@" -j "$target")
}

iptables_counts() {
	iptables_of iptables && packets4=$R && iptables_of ip6tables && packets6=$R
}

# iptables_of TOOL -> R: packets dropped between the peers in that family
iptables_of() {
	listed=$(filter "$1" -w -x -v -n -L "$table") || return 1
	R=$(printf '%s\n' "$listed" | awk '$3 == "DROP" && $4 != "tcp" && $4 != "6" { sum += $1 } END { print sum + 0 }')
}

iptables_remove() {
	case ${table#rig-} in '' | *[!A-Za-z0-9_]*) R='the lease names no chain of ours' && return 1 ;; esac
	for tool in iptables ip6tables; do
		for hook in INPUT OUTPUT; do filter "$tool" -w -D "$hook" -j "$table" >/dev/null || :; done
		now && removed_ms=$R
		filter "$tool" -w -F "$table" >/dev/null || :
		filter "$tool" -w -X "$table" >/dev/null || :
		chains=$(filter "$tool" -w -S) || { R="$tool: $chains" && return 1; }
		case "$nl$chains$nl" in *"$nl-N $table$nl"*) R="chain $table is still there" && return 1 ;; esac
	done
}

# ---- pf: the anchor com.apple/rig, which the stock main ruleset reaches through its wildcard

pf_file() {
	R=$rig_dir/partition.conf
	[ ! -w /etc/rig/partition.conf ] || R=/etc/rig/partition.conf
}

pf_ready() {
	R='pfctl not found'
	command -v pfctl >/dev/null 2>&1 || return 1
	main_rules=$(filter pfctl -s rules) || { R="pfctl -s rules: $main_rules" && return 1; }
	R='anchor "com.apple/*" is not referenced by the main ruleset'
	case "$nl$main_rules" in *"$nl"'anchor "com.apple/*"'*) ;; *) return 1 ;; esac # not its scrub-anchor
	anchor_rules=$(filter pfctl -q -a com.apple/rig -s rules) || { R="pfctl: $anchor_rules" && return 1; }
	pf_is_empty "$anchor_rules" && return 0
	pf_leased && return 0
	R='anchor com.apple/rig has rules and no lease names them'
	return 1
}

# pfctl may remark on ALTQ; a rule starts with its action.
pf_is_empty() {
	! printf '%s\n' "$1" | grep -E -q '^(pass|block|scrub|anchor|dummynet|nat|rdr)'
}

pf_leased() {
	lease_files
	leased_list=$R
	while IFS= read -r file; do
		[ -n "$file" ] && grep -q -x -e 'pf_loading=1' "$file" 2>/dev/null && return 0
	done <<-END
		$leased_list
	END
	return 1
}

pf_load() {
	pf_file && rules_file=$R
	pf_rules 2>/dev/null >"$rules_file" || { R="$rules_file cannot be written" && return 1; }
	R=$(filter pfctl -q -a com.apple/rig -n -f "$rules_file") || return 1
	# The token first of all: without it, pf can never be given back.
	enabled=$(filter pfctl -E) || { R="pfctl -E: $enabled" && return 1; }
	pf_token=$(printf '%s\n' "$enabled" | sed -n 's/.*Token : \([0-9][0-9]*\).*/\1/p')
	pf_loading=1
	lease_write || { R='the token cannot be written to the lease' && return 1; }
	[ -n "$pf_token" ] || { R='pfctl -E gave no token' && return 1; }
	R=$(filter pfctl -q -a com.apple/rig -f "$rules_file") || return 1
	R='pf is not enabled'
	case $(filter pfctl -s info) in *'Status: Enabled'*) ;; *) return 1 ;; esac
	pf_kill_states
}

pf_rules() {
	printf 'table <peers> persist {'
	for address in $peers; do printf ' %s' "${address%%%*}"; done
	printf ' }\npass quick on lo0 all no state\n'
	if [ -n "$controller" ]; then
		printf 'pass in quick proto tcp from %s to any port %s flags any no state\n' "${controller%%%*}" "$controller_port"
		printf 'pass out quick proto tcp from any port %s to %s flags any no state\n' "$controller_port" "${controller%%%*}"
	fi
	case $direction in both | in)
		printf 'block drop quick inet from <peers> to any\nblock drop quick inet6 from <peers> to any\n'
		;;
	esac
	case $direction in both | out)
		printf 'block drop quick inet from any to <peers>\nblock drop quick inet6 from any to <peers>\n'
		;;
	esac
	for address in $clients; do
		printf 'block drop quick proto tcp from %s to any port %s\n' "${address%%%*}" "$api_port"
		printf 'block drop quick proto tcp from any port %s to %s\n' "$api_port" "${address%%%*}"
	done
}

# A connection that some pass rule keeps state for would live on.
pf_kill_states() {
	for address in $peers; do
		family_of "$address" && [ "$R" = 6 ] && any=::/0 || any=0.0.0.0/0
		filter pfctl -k "${address%%%*}" >/dev/null && filter pfctl -k "$any" -k "${address%%%*}" >/dev/null || states_kept=1
	done
	[ -z "${states_kept-}" ] || note states_kept 1
	return 0
}

pf_counts() {
	packets4=0 packets6=0
	listed=$(filter pfctl -q -a com.apple/rig -s rules -v) || return 1
	! pf_is_empty "$listed" || return 1
	# shellcheck disable=SC2046 # two numbers
	set -- $(printf '%s\n' "$listed" | awk '
		/^[a-z]/ { family = /^block .*<peers>/ ? (/ inet6 / ? "6" : "4") : "" }
		family != "" && /Packets:/ { for (i = 1; i < NF; i++) if ($i == "Packets:") sum[family] += $(i + 1) }
		END { print sum["4"] + 0, sum["6"] + 0 }')
	packets4=$1 packets6=$2
}

# Only with a lease that says we were about to load the anchor, which was empty before.
pf_remove() {
	[ "$pf_loading" = 1 ] || return 0
	flushed=$(filter pfctl -q -a com.apple/rig -F all) || :
	now && removed_ms=$R
	anchor_rules=$(filter pfctl -q -a com.apple/rig -s rules) || { R="pfctl: $anchor_rules" && return 1; }
	pf_is_empty "$anchor_rules" || { R="anchor com.apple/rig still has rules: $flushed" && return 1; }
	rm -f "$rig_dir/partition.conf"
	[ ! -w /etc/rig/partition.conf ] || true 2>/dev/null >/etc/rig/partition.conf # as rig bootstrap made it
	[ -n "$pf_token" ] || return 0
	# A token can only be refused when it is void already (somebody ran pfctl -d, or an earlier undo returned it).
	if filter pfctl -X "$pf_token" >/dev/null; then note token_returned 1; else note token_returned 0; fi
}

# ---- probes: does a connection to a peer's listening socket still come about?

# probe_list -> R: every peer address at every port, at most 32.
probe_list() {
	listed_probes='' probe_count=0
	for probe_port in $ports; do
		for address in $peers; do
			probe_count=$((probe_count + 1))
			[ "$probe_count" -gt 32 ] || listed_probes="$listed_probes${listed_probes:+ }$address,$probe_port"
		done
	done
	R=$listed_probes
}

# probe_all ITEM…: each `ADDRESS,PORT`, all at once -> answered, silent (items). Takes a little over a second when one is silent.
probe_all() {
	answered='' silent='' running=''
	for probe; do
		probe_one "${probe%,*}" "${probe##*,}" </dev/null >/dev/null 2>&1 &
		running="$running $!"
	done
	for probe; do
		running=${running# }
		if probe_wait "${running%% *}"; then answered="$answered${answered:+ }$probe"; else silent="$silent${silent:+ }$probe"; fi
		running=${running#"${running%% *}"}
	done
}

# A signal cuts `wait` short with a status above 128; the probe is then still there to be waited for.
probe_wait() {
	wait "$1" 2>/dev/null
	probe_status=$?
	[ "$probe_status" -le 128 ] || { wait "$1" 2>/dev/null && probe_status=0; }
	return "$probe_status"
}

probe_one() {
	if command -v nc >/dev/null 2>&1; then
		case $1 in
		*:*) bounded "$probe_limit_s" nc -6 -z -w 1 "$1" "$2" ;;
		*) bounded "$probe_limit_s" nc -z -w 1 "$1" "$2" ;;
		esac
	else
		# shellcheck disable=SC2016 # perl
		perl -MSocket=:addrinfo,SOCK_STREAM -e 'alarm 1; ($e, $a) = getaddrinfo($ARGV[0], $ARGV[1], {flags => AI_NUMERICHOST, socktype => SOCK_STREAM});
			exit 1 if $e; socket($s, $a->{family}, SOCK_STREAM, 0) && connect($s, $a->{addr}) or exit 1' "$1" "$2"
	fi
}

# reopen: does everything in `probes` answer again within about 2 s? Not while the other side is cut as well; so it is stated, and no condition.
reopen() {
	now
	reopen_deadline_ms=$((R + 1000))
	while :; do
		# shellcheck disable=SC2086 # a list of probes
		probe_all $probes
		[ -n "$silent" ] || break
		now
		[ -z "$asked" ] && [ "$R" -lt "$reopen_deadline_ms" ] || break
		pause 100
	done
	reopened=0
	[ -n "$silent" ] || reopened=1
	note reopened "$reopened"
}
