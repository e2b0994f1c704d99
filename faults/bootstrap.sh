#!/bin/sh
# What a node owner lets the rig have on a machine, and its exact inverse. Run as root, by `rig bootstrap` or by hand.
#   step=plan     say what is missing, in full, and change nothing
#   step=install  make it so; what is there already is left alone
#   step=remove   undo exactly what an install made, by its manifest
# Keys: step rig_dir user [allow exo_command exo_home prefix]. `allow` lists the faults whose commands go into the sudoers file: cut
# shape link reboot. `prefix` is put before every path, and then no service is touched: to look at the result elsewhere first.
# Nothing that somebody else made is replaced or removed: then nothing at all is done (status 12). docs/harm.md tells the rest.
case $0 in */*) here=${0%/*} ;; *) here=. ;; esac
# shellcheck source=faults/lib.sh
. "$here/lib.sh"
# shellcheck source=faults/bootstrap-files.sh
. "$here/bootstrap-files.sh"

parse_args 'step rig_dir user allow exo_command exo_home prefix sudo' "$@"
case $step in plan | install | remove) ;; *) usage 'step: plan, install or remove' ;; esac
case $user in [a-z_]*) ;; *) usage 'user: a user name is needed' ;; esac
case $user in *[!a-z0-9._-]*) usage 'user: a user name is needed' ;; esac
case $rig_dir$prefix$exo_home in *[!A-Za-z0-9._/-]*) usage 'paths: letters, digits and . _ / - only' ;; esac
case $exo_command in *[!A-Za-z0-9._/\ =:,@-]*) usage 'exo_command: words of letters, digits and . _ / = : , @ - only' ;; esac
[ -z "$exo_command" ] || check_path exo_command "$exo_command"
[ -z "$exo_command" ] || check_path exo_home "$exo_home"
for word in $allow; do
	case $word in cut | shape | link | reboot) ;; *) usage 'allow: cut, shape, link or reboot' ;; esac
done
for tool in cksum sed; do command -v "$tool" >/dev/null 2>&1 || usage "$tool not found"; done

manifest=$prefix/etc/rig/manifest
work=$(mktemp -d "${TMPDIR:-/tmp}/rig-bootstrap.XXXXXX") || exit 12
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

refuse() {
	printf 'refused: %s\n' "$1"
	exit 12
}

sum_of() {
	# shellcheck disable=SC2046 # checksum and size, the name follows
	set -- $(cksum <"$1")
	R=$1.$2
}

# recorded KIND PATH -> R: the checksum that the manifest has for it (`-` for folders); fails when it is not there.
recorded() {
	R=$(sed -n "s|^$1 \([^ ]*\) $2\$|\1|p" "$manifest" 2>/dev/null | tail -n 1)
	[ -n "$R" ]
}

# record KIND SUM PATH: before it is made, so that an install that is cut short can be removed.
record() {
	printf '%s %s %s\n' "$1" "$2" "$3" >>"$manifest" || refuse "$manifest cannot be written"
}

# ---- one thing each: planned, installed

# folder PATH MODE OWNER [data]: with `data`, removed with what the rig put there later.
folder() {
	[ -d "$prefix$1" ] && [ ! -L "$prefix$1" ] && return 0
	[ ! -e "$prefix$1" ] && [ ! -L "$prefix$1" ] || refuse "$1 is there and is no folder"
	case $step in
	plan)
		case " $planned " in *" $1 "*) return 0 ;; esac
		planned="$planned $1"
		printf 'make the folder %s (%s, %s)\n' "$1" "$2" "$3"
		;;
	install)
		[ "$1" = /etc/rig ] || record "${4:-folder}" - "$1"
		if ! mkdir "$prefix$1" || ! chmod "$2" "$prefix$1" || ! chown "$3" "$prefix$1"; then refuse "$1 cannot be made"; fi
		[ "$1" != /etc/rig ] || record folder - "$1"
		printf 'made the folder %s\n' "$1"
		;;
	esac
}

# parents PATH: the folders above it that are missing.
parents() {
	[ -n "${1%/*}" ] && [ ! -d "$prefix${1%/*}" ] || return 0
	parents "${1%/*}"
	folder "${1%/*}" 755 0
}

# plain PATH MODE OWNER [data]: a file with the content of $work/content. `data` may change later.
plain() {
	sum_of "$work/content" && wanted=$R
	parents "$1"
	if [ -e "$prefix$1" ] || [ -L "$prefix$1" ]; then
		sum_of "$prefix$1" 2>/dev/null && present=$R
		recorded "${4:-file}" "$1" || refuse "$1 is there and was not made by rig bootstrap"
		[ "${4:-file}" = data ] && return 0
		[ "$present" != "$wanted" ] || return 0
		[ "$present" = "$R" ] || refuse "$1 was changed since rig bootstrap made it"
		verb="renew"
	else
		verb="write"
	fi
	case $step in
	plan)
		printf '%s %s (%s, %s)\n' "$verb" "$1" "$2" "$3"
		case $1 in "$libexec"/*) printf '    a copy of %s\n' "${1##*/}" ;; *) sed 's/^/    /' "$work/content" ;; esac
		;;
	install)
		record "${4:-file}" "$wanted" "$1"
		if ! cp "$work/content" "$prefix$1.rig-new" || ! chmod "$2" "$prefix$1.rig-new" || ! chown "$3" "$prefix$1.rig-new" ||
			! mv -f "$prefix$1.rig-new" "$prefix$1"; then
			rm -f "$prefix$1.rig-new"
			refuse "$1 cannot be written"
		fi
		printf 'wrote %s\n' "$1"
		changed=1
		;;
	esac
}

# service ACTION…: a command of the service manager.
service() {
	if [ -n "$prefix" ]; then
		printf 'not run with a prefix: %s\n' "$*"
	elif [ "$step" = plan ]; then
		printf 'run %s\n' "$*"
	else
		printf 'run %s\n' "$*"
		bounded 30 "$@" </dev/null || refuse "$* failed"
	fi
}

# ---- all of it, in the order of an install

everything() {
	changed='' planned=''
	folder /etc/rig 755 0
	parents "$rig_dir"
	folder "$rig_dir" 700 "$user" data-folder
	if [ "$user" != root ]; then
		sudoers_text >"$work/content"
		command -v visudo >/dev/null 2>&1 || refuse 'visudo not found: the sudoers file could not be checked'
		checked=$(visudo -c -q -f "$work/content" 2>&1) || refuse "visudo: $checked"
		plain /etc/sudoers.d/rig 440 0
	fi
	[ "$os" != Darwin ] || { true >"$work/content" && plain /etc/rig/partition.conf 600 "$user" data; }
	for script in $guard_scripts; do
		cat "$here/$script" >"$work/content"
		plain "$libexec/$script" 644 0
	done
	if [ "$os" = Darwin ]; then
		guard_plist >"$work/content"
		plain "/Library/LaunchDaemons/$guard_label.plist" 644 0
		launchd_load "$guard_label"
		[ -z "$exo_command" ] || { exo_plist >"$work/content" && plain "/Library/LaunchDaemons/$exo_label.plist" 644 0 && launchd_load "$exo_label"; }
	else
		guard_service >"$work/content" && plain /etc/systemd/system/rig-guard.service 644 0
		guard_timer >"$work/content" && plain /etc/systemd/system/rig-guard.timer 644 0
		[ -z "$exo_command" ] || { exo_service >"$work/content" && plain /etc/systemd/system/rig-exo.service 644 0; }
		systemd_load
	fi
}

launchd_load() {
	launchctl print "system/$1" >/dev/null 2>&1 && [ -z "$prefix" ] && [ -z "$changed" ] && return 0
	[ -n "$prefix" ] || [ "$step" = plan ] || launchctl bootout "system/$1" >/dev/null 2>&1 || :
	service launchctl bootstrap system "/Library/LaunchDaemons/$1.plist"
}

systemd_load() {
	if [ -z "$prefix" ] && [ ! -d /run/systemd/system ]; then
		printf 'no systemd runs here: start the guard by other means: sh %s/guard.sh rig_dir=%s\n' "$libexec" "$rig_dir"
		return 0
	fi
	[ -z "$prefix" ] && [ -z "$changed" ] && systemctl is-active -q rig-guard.timer && return 0
	service systemctl daemon-reload
	service systemctl enable --now rig-guard.timer
	[ -z "$exo_command" ] || service systemctl enable rig-exo.service
}

# ---- the inverse

unload() {
	[ -z "$prefix" ] || return 0
	if [ "$os" = Darwin ]; then
		for label in "$guard_label" "$exo_label"; do
			! launchctl print "system/$label" >/dev/null 2>&1 || service launchctl bootout "system/$label"
		done
	elif [ -d /run/systemd/system ]; then
		for unit in rig-guard.timer rig-exo.service; do
			[ ! -e "/etc/systemd/system/$unit" ] || service systemctl disable --now "$unit"
		done
	fi
}

remove() {
	[ -f "$manifest" ] || { printf 'nothing of rig bootstrap is here\n' && exit 0; }
	if [ -n "$(ls "$prefix$rig_dir/leases" 2>/dev/null)" ]; then refuse "leases are left in $rig_dir: rig heal first"; fi
	# Look at everything first: either all of it goes, or none.
	while read -r sort _ path; do
		[ "$sort" = file ] && [ -e "$prefix$path" ] || continue
		recorded file "$path" && last=$R
		sum_of "$prefix$path" 2>/dev/null && [ "$R" = "$last" ] || refuse "$path was changed since rig bootstrap made it"
	done <"$manifest"
	unload
	rm -f "$prefix$rig_dir/guard"
	sed -n '1!G;h;$p' "$manifest" >"$work/backwards"
	while read -r sort _ path; do
		case $sort in
		file | data) [ ! -e "$prefix$path" ] || { rm -f "$prefix$path" && printf 'removed %s\n' "$path"; } ;;
		data-folder) [ ! -d "$prefix$path" ] || { rm -rf "${prefix:?}$path" && printf 'removed %s\n' "$path"; } ;;
		folder)
			[ "$path" != /etc/rig ] || rm -f "$manifest"
			[ ! -d "$prefix$path" ] || { rmdir "$prefix$path" 2>/dev/null && printf 'removed %s\n' "$path"; } ||
				printf 'left %s: it holds something of somebody else\n' "$path"
			;;
		esac
	done <"$work/backwards"
	[ -n "$prefix" ] || [ "$os" = Darwin ] || [ ! -d /run/systemd/system ] || service systemctl daemon-reload
}

if [ "$step" != plan ]; then
	[ "$(id -u)" = 0 ] || refuse 'this needs root'
fi
if [ "$step" = remove ]; then
	remove
	exit 0
fi
if [ "$step" = install ]; then # refusals come before the first change
	(step=plan && everything) >"$work/plan" || { cat "$work/plan" && exit 12; }
fi
everything
