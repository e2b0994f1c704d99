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
for tool in cksum sed perl; do command -v "$tool" >/dev/null 2>&1 || usage "$tool not found"; done

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

# folder PATH MODE OWNER [SORT]: what the manifest calls it.
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

# own_folder PATH: the user's. Root makes nothing in a folder that others can change: a link put there at the right moment would lead it
# elsewhere. There the user makes it, with his own rights.
own_folder() {
	existing_above "$1"
	if roots_alone "$R"; then
		parents "$1"
		folder "$1" 700 "$user" data-folder
	else
		users_folder "$1" data-folder
	fi
}

users_folder() { # PATH SORT
	[ ! -d "$prefix$1" ] || return 0
	users_folder "${1%/*}" users-parent
	if [ "$step" = install ]; then
		record "$2" - "$1"
		as_user mkdir -m 700 "$prefix$1" || refuse "$1 cannot be made by $user"
		printf 'made the folder %s\n' "$1"
	else
		printf 'make the folder %s (700, %s), as that user\n' "$1" "$user"
	fi
}

# existing_above PATH -> R: the nearest folder above it that is there, with the prefix
existing_above() {
	R=$prefix${1%/*}
	until [ -d "${R:-/}" ]; do R=${R%/*}; done
}

# roots_alone FOLDER: nobody but root can change what this path leads to: each part of it, and of where it leads by links, is root's, and
# no other may write there, but for folders in which nobody can take away what is another's (/tmp).
roots_alone() {
	parts_are_roots "$1" && parts_are_roots "$(cd -P "${1:-/}" && pwd -P)"
}

parts_are_roots() {
	parts=${1%/}/ part=
	while [ -n "$parts" ]; do
		part=$part/${parts%%/*} parts=${parts#*/}
		# shellcheck disable=SC2012 # mode and owner
		case $(ls -ldn "${part%/}/." 2>/dev/null | awk '{ print substr($1, 1, 10), $3 }') in
		d????-??-?' 0' | d????????[tT]' 0') ;;
		*) return 1 ;;
		esac
		# shellcheck disable=SC2012
		case $(ls -ldn "${part%/}" 2>/dev/null | awk '{ print $3 }') in '' | 0) ;; *) return 1 ;; esac
		part=${part%/}
	done
}

# as_user COMMAND…: with the rights of the user alone.
as_user() {
	[ "$user" != root ] || { "$@" && return 0 || return 1; }
	# shellcheck disable=SC2016 # perl
	perl -MPOSIX -e '
		my (undef, undef, $uid, $gid) = getpwnam shift or exit 1;
		$) = "$gid $gid"; POSIX::setgid($gid); POSIX::setuid($uid);
		$< == $uid && $> == $uid && $uid or exit 1;
		chdir "/"; exec { $ARGV[0] } @ARGV; exit 127' "$user" "$@"
}

# plain PATH MODE OWNER [data]: a file with the content of $work/content. `data` may change later.
plain() {
	existing_above "$1"
	roots_alone "$R" || refuse "others than root can change ${R#"$prefix"} or a folder above it, where ${1##*/} would go"
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
	own_folder "$rig_dir"
	if [ "$user" != root ]; then
		sudoers_text >"$work/content"
		command -v visudo >/dev/null 2>&1 || refuse 'visudo not found: the sudoers file could not be checked'
		checked=$(visudo -c -q -f "$work/content" 2>&1) || refuse "visudo: $checked"
		plain /etc/sudoers.d/rig 440 0
	fi
	for script in $guard_scripts; do
		cat "$here/$script" >"$work/content"
		case $script in root.sh) mode=755 ;; *) mode=644 ;; esac
		plain "$libexec/$script" "$mode" 0
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
	[ ! -d "$prefix$rig_dir" ] || as_user rm -f "$prefix$rig_dir/guard" || :
	sed -n '1!G;h;$p' "$manifest" >"$work/backwards"
	while read -r sort _ path; do
		case $sort in
		file | data) [ ! -e "$prefix$path" ] || { rm -f "$prefix$path" && printf 'removed %s\n' "$path"; } ;;
		users-parent) ! as_user rmdir "$prefix$path" 2>/dev/null || printf 'removed %s\n' "$path" ;;
		data-folder)
			# What the user owns is taken away with his rights; what he may not take away himself is empty by then.
			[ -d "$prefix$path" ] || continue
			as_user rm -rf "$prefix$path" 2>/dev/null || :
			existing_above "$path"
			[ ! -d "$prefix$path" ] || ! roots_alone "$R" || rmdir "$prefix$path"
			[ -d "$prefix$path" ] || printf 'removed %s\n' "$path"
			;;
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
