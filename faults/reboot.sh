#!/bin/sh
# Restart this machine by `shutdown -r now`. Refused unless FileVault is off and stays so: the Mac would wait for a password.
# Keys: id run owner rig_dir home pidfile match [start sudo at also lock]. This script does not live to see the strike: its lease does.
# Whoever reads the lease after the boot (the node guard, or heal.sh) says `rebooted=1`, sees that exo runs, and drops it.
case $0 in */*) here=${0%/*} ;; *) here=. ;; esac
# shellcheck source=faults/lib.sh
. "$here/lib.sh"
# shellcheck source=faults/undo.sh
. "$here/undo.sh"

parse_args 'id run owner lock rig_dir hold at also home pidfile match sudo start' "$@"
require_fault
kind=reboot hold_ms=0

if [ "$os" = Darwin ]; then
	vault=$(fdesetup status 2>&1) || skip "fdesetup status: $vault"
	case $vault in 'FileVault is Off.') ;; *) skip "FileVault: $vault After a reboot this Mac would wait for a password" ;; esac
fi
command -v shutdown >/dev/null 2>&1 || skip 'shutdown not found'
if main_find; then main=$main_pid:$main_start; fi
boot_id_now
[ -n "$R" ] || skip 'the boot cannot be told from the next one'
strike_limit_ms=120000
begin
phase=struck
lease_renew || { ineffective 'the lease cannot be written' && finish; }
note main "${main:-}"
emit striking
trap : TERM INT HUP # the machine says so to everybody on its way down; the lease must outlive that
asked_to=$(rooted reboot) || { ineffective "shutdown: $asked_to" && finish; }
now
while [ "$R" -lt $((begin_ms + strike_limit_ms)) ]; do
	pause "$sample_ms"
	now
done
ineffective "this machine did not restart within $((strike_limit_ms / 1000)) s"
finish
