# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154 # set in lib.sh and the scripts that source this file, read there
# The rules of a fault in the node's packet filter, which root.sh builds, and the probes that prove what they do.
# Fail closed: rules of the rig's kind that no lease names are not ours, and are neither used nor removed.
#
#   filter_name             table: what the rules of this fault are called
#   filter_ready            may rules be loaded? R: why not
#   filter_load WHAT WORD…  load them: cut, loss, bandwidth or delay, with the words of root.sh beside the peers; R: why not
#   filter_counts           packets4, packets6: packets dropped so far, by family; seen: those that passed; fails (R) when the rules do nothing
#   filter_proved           the strike is proved by these rules and their counters
#   filter_look             from time to time after that: rules_lost says why they were not in force all the time, and stays
#   filter_remove           remove them (removed_ms: when), prove them gone; R: why not. Does nothing when they are gone already

root_helper=/usr/local/libexec/rig/root.sh # as rig bootstrap installs it

# rooted WORD…: what root.sh says, run as root. A node whose user needs no sudo keeps the notes of what was made in its own folder.
# Without a rig bootstrap the copy beside this file is run, where sudo allows everything.
rooted() {
	if [ "$sudo" != 1 ] || [ "$(id -u)" = 0 ]; then
		set -- env "RIG_MADE=$rig_dir/.made" sh "$here/root.sh" "$@"
	elif [ -x "$root_helper" ]; then
		set -- sudo -n "$root_helper" "$@"
	else
		set -- sudo -n sh "$here/root.sh" "$@"
	fi
	bounded 30 "$@" </dev/null 2>&1
}

# root_allowed: does sudo allow that?
root_allowed() {
	if [ -x "$root_helper" ]; then
		sudo -n -l "$root_helper" rules look
	else
		sudo -n -l sh "$here/root.sh" rules look
	fi </dev/null >/dev/null 2>&1
}

# A chain of iptables has at most 28 characters, an anchor of pf 63, of which an id's last ones tell it from others.
filter_name() {
	R=$(printf '%s' "$id" | tr -c 'A-Za-z0-9_' '_')
	if [ "$filter_kind" = iptables ]; then table=rig-$(printf '%s' "$R" | tail -c 22); else table=rig_$(printf '%s' "$R" | tail -c 59); fi
}

filter_ready() {
	looked=$(rooted rules look) || { R=$looked && return 1; }
	for line in $looked; do
		case $line in
		referenced=0) R='anchor "com.apple/*" is not referenced by the main ruleset' && return 1 ;;
		"name=$table") R="rules $table are there already" && return 1 ;;
		name=*) rules_leased "${line#name=}" || { R="rules ${line#name=} are there and no lease names them" && return 1; } ;;
		esac
	done
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

filter_load() {
	loading=$1
	shift
	bare "$peers" && set -- "$@" "peers=$R"
	[ -z "$controller" ] || { bare "$controller" && set -- "$@" "ssh=$R,$controller_port"; }
	R=$(rooted rules "$loading" "$table" "$@") || return 1
	case $R in *states_kept=1*) note states_kept 1 ;; esac
}

# bare LIST -> R: comma-separated addresses, each once. The scope of a link-local address is left out: see docs/node-scripts.md.
bare() {
	bare_list=
	for address in $1; do
		case ",$bare_list," in *",${address%%%*},"*) ;; *) bare_list="$bare_list${bare_list:+,}${address%%%*}" ;; esac
	done
	R=$bare_list
}

filter_counts() {
	counts=$(rooted rules counts "$table") || { R=$counts && return 1; }
	# shellcheck disable=SC2086 # three numbers and a word
	set -- $counts
	packets4=$1 packets6=$2 seen=$3 rules_mark=$4
}

filter_proved() {
	proved_mark=$rules_mark proved_counts="$packets4 $packets6 $seen"
	now && look_at_ms=$((R + 5000))
}

rules_lost='' look_at_ms=0
filter_look() {
	[ -z "$rules_lost" ] || return 0
	# shellcheck disable=SC2086 # three numbers
	set -- $proved_counts
	if ! filter_counts; then
		rules_lost=$R
	elif [ "$rules_mark" != "$proved_mark" ]; then
		rules_lost='the rules are not those of the strike any more'
	elif [ "$packets4" -lt "$1" ] || [ "$packets6" -lt "$2" ] || [ "$seen" -lt "$3" ]; then
		rules_lost="the counters fell from $proved_counts to $packets4 $packets6 $seen: the rules were loaded anew"
	else
		filter_proved
	fi
}

# filter_sample: a look every 5 s, for it costs some processes.
filter_sample() {
	now
	[ "$R" -lt "$look_at_ms" ] || filter_look
}

# made_before NAME: what was noted in an earlier boot, which ended it.
made_before() {
	rm -f "$rig_dir/.made.$1" "$rig_dir/.made.$1.rules"
}

filter_remove() {
	R=$(rooted rules remove "$table") || return 1
	now && removed_ms=$R
	R=$(rooted rules forget "$table") || return 1
	case $R in *token_returned=*) note token_returned "${R##*token_returned=}" ;; esac
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

# ---- probes: does a connection to a peer's listening socket still come about, and does a resolver (`ADDRESS,dns`) still answer?

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

# probe_all ITEM…: each `ADDRESS,PORT` or `ADDRESS,dns`, all at once -> answered, silent (items). Takes a little over a second when one is silent.
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
	if [ "$2" = dns ]; then
		probe_resolver "$1"
	elif command -v nc >/dev/null 2>&1; then
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

# probe_resolver ADDRESS: does it answer, whatever it answers? Asked over UDP, twice within a second, for a name that resolvers know themselves.
probe_resolver() {
	# shellcheck disable=SC2016 # perl
	perl -MSocket=:addrinfo,SOCK_DGRAM -e 'alarm 2; my ($e, $a) = getaddrinfo($ARGV[0], 53, {flags => AI_NUMERICHOST, socktype => SOCK_DGRAM});
		exit 1 if $e; socket($s, $a->{family}, SOCK_DGRAM, 0) && connect($s, $a->{addr}) or exit 1; my $id = pack "n", $$ & 0xffff;
		for (1, 2) { send($s, $id . pack("n5", 0x100, 1, 0, 0, 0) . "\x09localhost\0" . pack("n2", 1, 1), 0); vec(my $r = "", fileno $s, 1) = 1;
			while (select(my $ready = $r, undef, undef, 0.5) > 0) { defined recv($s, my $d, 4096, 0) or last; exit 0 if substr($d, 0, 2) eq $id && ord(substr $d, 2) & 128 } }
		exit 1' "$1"
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
