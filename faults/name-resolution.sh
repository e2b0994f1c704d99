#!/bin/sh
# Names do not resolve on this node for `hold` seconds: what goes to and from its resolvers at port 53, and multicast DNS (`.local` names),
# is dropped. Everything else passes, and names that the system has cached resolve on.
# Keys: id run owner rig_dir hold [peers sudo at also lock]. `peers`: the resolvers' addresses; without it those that the node itself asks.
case $0 in */*) here=${0%/*} ;; *) here=. ;; esac
# shellcheck source=faults/lib.sh
. "$here/lib.sh"
# shellcheck source=faults/undo.sh
. "$here/undo.sh"

parse_args 'id run owner lock rig_dir hold at also home pidfile match sudo peers' "$@"
require_fault
kind=name-resolution
[ -z "$peers" ] || addresses_or_usage "$peers"
[ -n "$have_perl" ] || skip 'perl is needed'
multicast='224.0.0.251 ff02::fb'

# resolvers -> R: addresses of resolvers on other machines, at most 16. A stub on this node itself (systemd-resolved) asks those in a file of its own.
resolvers() {
	if [ "$os" = Darwin ]; then
		listed=$(scutil --dns 2>/dev/null | sed -n 's/^ *nameserver\[[0-9]*\] *: *//p')
	else
		listed=$(sed -n 's/^nameserver[[:blank:]]*//p' /etc/resolv.conf /run/systemd/resolve/resolv.conf 2>/dev/null)
	fi
	resolver_list='' resolver_count=0
	for address in $listed; do
		case " $resolver_list $address " in *" $address "*" $address "* | *' 127.'* | *' ::1 '*) continue ;; esac
		resolver_count=$((resolver_count + 1))
		[ "$resolver_count" -gt 16 ] || resolver_list="$resolver_list${resolver_list:+ }$address"
	done
	R=$resolver_list
}

# judge: no resolver that answered before answers now, and the rules have dropped packets. Fails with R: why it is not proved.
judge() {
	# shellcheck disable=SC2086 # a list of probes
	probe_all $probes
	filter_counts || return 1
	note packets $((packets4 + packets6))
	R="still answers: $answered"
	[ -z "$answered" ] || return 1
	R='resolvers are silent, but the rules dropped no packets'
	[ $((packets4 + packets6)) -gt 0 ]
}

# still_cut: shortly before the end of the hold.
answers_again=
# shellcheck disable=SC2329 # called by hold_from
still_cut() {
	filter_look # before the probes count
	judge || answers_again=$R
	notes=
}

filter_name
controller_read
[ -n "$peers" ] || { resolvers && peers=$R; }
[ -n "$peers" ] || skip 'no resolver on another machine is known'
filter_ready || skip "$R"
all_probes=
for address in $peers; do all_probes="$all_probes${all_probes:+ }$address,dns"; done
# shellcheck disable=SC2086 # a list of probes
probe_all $all_probes
probes=$answered
[ -n "$probes" ] || skip "no resolver answers ($peers): that names do not resolve could not be proved"
peers="$peers $multicast"
begin
phase=struck
if filter_load cut direction=both ports=53,5353; then
	now
	struck_ms=$R
	if judge; then
		note resolvers "$probes"
		filter_proved
		struck "$struck_ms"
		last_look=still_cut last_look_ms=1500
		hold_from "$struck_ms" filter_sample
		filter_look
		lost=${rules_lost:-$answers_again}
		[ -z "$lost" ] || ineffective "names resolved again during the hold: $lost"
	else
		ineffective "$R"
	fi
else
	load_error=$R
	undo_rules || { note load_error "$load_error" && finish; }
	notes=
	skip "the rule was not loaded: $load_error"
fi
finish
