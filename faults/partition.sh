#!/bin/sh
# Cut this node off from `peers`: their packets are dropped, IPv4 and IPv6, for `hold` seconds. The controller's SSH passes.
# `interface`: only those of their addresses that are reached by it; what goes by other ways goes on.
# Keys: id run owner rig_dir hold peers [interface direction ports clients api_port sudo at also lock]. docs/node-scripts.md shows the rules.
case $0 in */*) here=${0%/*} ;; *) here=. ;; esac
# shellcheck source=faults/lib.sh
. "$here/lib.sh"
# shellcheck source=faults/undo.sh
. "$here/undo.sh"

parse_args 'id run owner lock rig_dir hold at also home pidfile match sudo peers interface direction ports clients api_port' "$@"
require_fault
kind=partition
direction=${direction:-both}
case $direction in both | in | out) ;; *) usage 'direction: both, in or out' ;; esac
ports=${ports:-52415 52414}
numbers_or_usage ports "$ports"
numbers_or_usage api_port "$api_port"
[ -z "$clients" ] || [ -n "$api_port" ] || usage 'clients need api_port'
addresses_or_usage "$peers"
case $interface in -* | *[!A-Za-z0-9._-]*) usage "interface: $interface" ;; esac
[ -z "$clients" ] || addresses_or_usage "$clients"

# family_probes FAMILY LIST -> R: those of that family.
family_probes() {
	probes_of=
	for probe in $2; do
		family_of "${probe%,*}"
		[ "$R" != "$1" ] || probes_of="$probes_of${probes_of:+ }$probe"
	done
	R=$probes_of
}

# judge: each family that could be probed beforehand must be silent now, and the rule must have counted its packets: silence alone
# may have another cause. -> cut, unproved, why (the cut is not proved; empty when it is).
judge() {
	cut='' unproved='' why=''
	for family in 4 6; do
		family_probes "$family" "$probes" && before=$R
		family_probes "$family" "$answered" && still=$R
		[ "$family" = 4 ] && counted=$packets4 || counted=$packets6
		if [ -z "$before" ]; then
			family_probes "$family" "$all_probes"
			[ -z "$R" ] || unproved="$unproved${unproved:+ }ipv$family"
		elif [ -n "$still" ]; then
			why="$why${why:+; }ipv$family still answers: $still"
		elif [ "$counted" = 0 ]; then
			why="$why${why:+; }ipv$family is silent, but the rule counted no packets"
		else
			cut="$cut${cut:+ }ipv$family"
		fi
	done
}

evidence() {
	if [ "$filter_kind" = pf ]; then note anchor "com.apple/$table"; else note table "$table"; fi
	note packets $((packets4 + packets6))
	note cut "$cut"
	note unproved "$unproved"
	note probes "$(printf '%s\n' "$probes" | wc -w | tr -d ' ')"
	clients_cut=0
	[ -z "$clients" ] || clients_cut=1
	case " $peers " in *" ${controller:-none} "*) clients_cut=1 ;; esac # its SSH passes, its requests do not
	note clients_cut "$clients_cut"
	[ -z "$interface" ] || note interface "$interface"
}

# still_cut: shortly before the end of the hold.
open_again=
# shellcheck disable=SC2329 # called by hold_from
still_cut() {
	filter_look # before the probes count
	# shellcheck disable=SC2086 # a list of probes
	probe_all $probes
	open_again=$answered
}

filter_name
controller_read
if [ -n "$interface" ]; then
	# shellcheck disable=SC2086 # a list of addresses
	reached_by "$interface" $peers
	[ -n "$R" ] || skip "no address of the other side is reached by $interface"
	peers=$R
fi
filter_ready || skip "$R"
probe_list && all_probes=$R
# shellcheck disable=SC2086 # a list of probes
probe_all $all_probes
probes=$answered
[ -n "$probes" ] || skip "no peer answers at the ports $ports: a cut could not be proved"
begin
phase=struck
set -- "direction=$direction"
[ -z "$clients" ] || { bare "$clients" && set -- "$@" "clients=$R" "api_port=$api_port"; }
if filter_load cut "$@"; then
	now
	struck_ms=$R
	# shellcheck disable=SC2086
	probe_all $probes
	if filter_counts; then
		judge
		evidence
	else
		why=$R
	fi
	if [ -z "$why" ]; then
		filter_proved
		struck "$struck_ms"
		last_look=still_cut last_look_ms=1500
		hold_from "$struck_ms" filter_sample
		filter_look
		lost=${rules_lost:-${open_again:+$open_again answers}}
		[ -z "$lost" ] || ineffective "the cut did not last: $lost"
	else
		ineffective "$why"
	fi
else
	load_error=$R
	undo_rules || { note load_error "$load_error" && finish; }
	notes=
	skip "the rule was not loaded: $load_error"
fi
finish
