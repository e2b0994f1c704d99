#!/bin/sh
# Take one network interface down for `hold` seconds: the first of `interface` (a list) that is up and does not carry this SSH session.
# Keys: id run owner rig_dir hold interface [sudo at also lock]. On a Mac this leaves RDMA over the same cable alive.
case $0 in */*) here=${0%/*} ;; *) here=. ;; esac
# shellcheck source=faults/lib.sh
. "$here/lib.sh"
# shellcheck source=faults/undo.sh
. "$here/undo.sh"

parse_args 'id run owner lock rig_dir hold at also home pidfile match sudo interface' "$@"
require_fault
kind=link-down
candidates=$interface interface=''
for word in $candidates; do
	case $word in -* | lo | lo0 | *[!A-Za-z0-9._-]*) usage "interface: not one that can be taken down: $word" ;; esac
done
[ -n "$candidates" ] || usage 'interface is needed'

# ssh_interface -> R: the one by which the controller is reached; fails when that is not known.
ssh_interface() {
	controller_read
	R=
	[ -n "$controller" ] || return 1
	device_of "$controller"
	[ -n "$R" ]
}

came_up=
# shellcheck disable=SC2329 # called by hold_until
sample() {
	link_is down || came_up=1
}

ssh_interface || skip 'it is not known which interface carries the SSH session'
ours=$R refused=
for interface in $candidates; do
	if [ "$interface" = "$ours" ]; then
		refused="$refused $interface carries the SSH session;"
	elif link_is up; then
		refused='' && break
	else
		refused="$refused $R;"
	fi
done
[ -z "$refused" ] || skip "no interface to take down:$refused"
begin
phase=struck
lease_renew || { ineffective 'the lease cannot be written' && finish; }
now
struck_ms=$R
R=$(rooted link down "$interface") || link_error=$R
if link_is down; then
	note interface "$interface"
	struck "$struck_ms"
	hold_from "$struck_ms" sample
	[ -z "$came_up" ] || ineffective "$interface came up during the hold"
else
	ineffective "$interface did not go down: ${link_error:-}"
fi
finish
