#!/bin/sh
# Make the network to `peers` worse for `hold` seconds: `effect` loss (amount: per cent, each way), bandwidth (amount: kbit/s) or
# delay (amount: ms, on the way out). Nothing is cut; the controller's SSH passes.
# Keys: id run owner rig_dir hold peers effect amount [ports sudo at also lock]. docs/node-scripts.md shows rules and proofs.
case $0 in */*) here=${0%/*} ;; *) here=. ;; esac
# shellcheck source=faults/lib.sh
. "$here/lib.sh"
# shellcheck source=faults/undo.sh
. "$here/undo.sh"

parse_args 'id run owner lock rig_dir hold at also home pidfile match sudo peers ports effect amount' "$@"
require_fault
case $effect in loss | bandwidth | delay) kind=net-$effect ;; *) usage 'effect: loss, bandwidth or delay' ;; esac
case $amount in '' | 0* | *[!0-9]* | ????????*) usage 'amount: a whole number is needed' ;; esac
case $effect in
loss) [ "$amount" -ge 2 ] && [ "$amount" -le 90 ] || usage 'amount: 2 to 90 per cent' ;;
delay) [ "$amount" -ge 5 ] && [ "$amount" -le 10000 ] || usage 'amount: 5 to 10000 ms' ;;
bandwidth) [ "$amount" -ge 64 ] || usage 'amount: at least 64 kbit/s' ;;
esac
ports=${ports:-52415 52414}
numbers_or_usage ports "$ports"
addresses_or_usage "$peers"
[ -n "$have_perl" ] || skip 'perl is needed'

# connects N "ADDRESS,PORT" -> connected, refused, quickest_ms: N connections at once, each given 0.9 s plus the delay wanted.
connects() {
	# shellcheck disable=SC2016 # perl
	R=$(perl -MSocket=:addrinfo,SOCK_STREAM,SOL_SOCKET,SO_ERROR -MTime::HiRes=time -MFcntl -e '
		my ($n, $place, $limit) = @ARGV; my ($host, $port) = $place =~ /(.*),(.*)/;
		my ($e, $a) = getaddrinfo($host, $port, {flags => AI_NUMERICHOST, socktype => SOCK_STREAM}); exit 1 if $e;
		my ($begun, $w, $ok, $best, %open) = (time, "", 0, 999999);
		for (1 .. $n) {
			socket(my $s, $a->{family}, SOCK_STREAM, 0) or next; fcntl($s, F_SETFL, O_NONBLOCK);
			my $at = time; connect($s, $a->{addr}); $open{fileno $s} = [$s, $at]; vec($w, fileno $s, 1) = 1;
		}
		while (%open && (my $left = $begun + $limit - time) > 0) {
			select(undef, my $ready = $w, undef, $left);
			for (keys %open) { next unless vec($ready, $_, 1); my ($s, $at) = @{$open{$_}};
				unless (unpack "i", getsockopt($s, SOL_SOCKET, SO_ERROR)) { $ok++; my $took = (time - $at) * 1000; $best = $took if $took < $best }
				vec($w, $_, 1) = 0; delete $open{$_} }
		}
		printf "%d %d %d\n", $ok, $n - $ok, $best' "$1" "$2" "$3" 2>/dev/null)
	# shellcheck disable=SC2086 # three numbers
	set -- ${R:-0 0 0}
	connected=$1 refused=$2 quickest_ms=$3
}

# flood "ADDRESS,PORT": as many UDP packets as must exceed the bandwidth, to the discard port. nftables lets a second's worth and the
# burst pass at once, so that it takes more than that.
flood() {
	# shellcheck disable=SC2016 # perl
	perl -MSocket=:addrinfo,SOCK_DGRAM -e 'alarm 3; my ($e, $a) = getaddrinfo($ARGV[0], 9, {flags => AI_NUMERICHOST, socktype => SOCK_DGRAM});
		exit 1 if $e; socket(my $s, $a->{family}, SOCK_DGRAM, 0); my $data = "x" x 1200;
		for (1 .. 300 + $ARGV[1] / 5) { send($s, $data, 0, $a->{addr}) }' "${1%,*}" "$amount" >/dev/null 2>&1 || :
}

# feel: what connections meet, noted, for prove and at the end of the hold. R: why the effect is not felt. Bandwidth is not felt by them.
feel() {
	probe=${probes%% *}
	case $effect in
	delay)
		connects 3 "$probe" "$((1 + amount / 1000)).9"
		note connect_ms "$quickest_ms" && note connect_before_ms "$before_ms"
		R="a connection takes $quickest_ms ms, $before_ms ms before"
		[ "$connected" = 0 ] || [ "$quickest_ms" -ge $((before_ms + amount * 8 / 10)) ]
		;;
	loss)
		tries=$((800 / amount + 20))
		connects "$tries" "$probe" 0.9
		note connects "$tries" && note connects_lost "$refused"
		R="$refused of $tries connections met a lost packet"
		[ "$refused" -gt 0 ]
		;;
	bandwidth) connects 1 "$probe" 0.9 ;;
	esac
}

# prove: by what happens to packets, and by the rule's own counters. R: why it is not proved.
prove() {
	feel || return 1
	[ "$effect" != delay ] || [ "$connected" -gt 0 ] || return 1
	[ "$effect" != bandwidth ] || flood "$probe"
	filter_counts || return 1
	counted
	R='the rule has seen no packets'
	[ "$seen" -gt 0 ] || return 1
	case $filter_kind.$effect in nft.loss | nft.bandwidth) R='the rule has dropped no packets' && [ $((packets4 + packets6)) -gt 0 ] || return 1 ;; esac
}

# netem and dummynet tell only of what passed.
counted() {
	note packets "$seen" && note dropped $((packets4 + packets6))
}

# still_felt: shortly before the end of the hold.
not_felt=
# shellcheck disable=SC2329 # called by hold_from
still_felt() {
	filter_look # before the probes count
	[ "$effect" = bandwidth ] || feel || not_felt=$R
	notes=
}

filter_name
controller_read
filter_ready || skip "$R"
probe_list
# shellcheck disable=SC2086 # a list of probes
probe_all $R
probes=$answered
[ -n "$probes" ] || skip "no peer answers at the ports $ports: the effect could not be proved"
connects 3 "${probes%% *}" 0.9
before_ms=$quickest_ms
strike_limit_ms=6000
begin
phase=struck
if filter_load "$effect" "amount=$amount"; then
	now
	struck_ms=$R
	if prove; then
		filter_proved
		struck "$struck_ms"
		last_look=still_felt last_look_ms=1500
		[ "$effect" != delay ] || last_look_ms=$((amount + 1500))
		hold_from "$struck_ms" filter_sample
		filter_look
		counted
		lost=${rules_lost:-$not_felt}
		[ -z "$lost" ] || ineffective "the effect did not last: $lost"
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
