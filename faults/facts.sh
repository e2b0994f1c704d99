#!/bin/sh
# Facts about this node for `rig doctor`, read-only, as `key=value` lines; a key that is missing could not be found out.
# Keys: rig_dir home pidfile match [sudo evaluate]. `evaluate=1`: also one small computation with exo's own Python and MLX.
# docs/harm.md says what is made of them.
case $0 in */*) here=${0%/*} ;; *) here=. ;; esac
# shellcheck source=faults/lib.sh
. "$here/lib.sh"
# shellcheck source=faults/filter.sh
. "$here/filter.sh"

parse_args 'rig_dir home pidfile match sudo evaluate' "$@"

# say KEY VALUE: on one line; nothing for an empty value.
say() {
	R=$(printf '%s' "$2" | tr '\n\t' '| ')
	[ -z "$R" ] || printf '%s=%s\n' "$1" "$R"
}

# ask SECONDS COMMAND…: its output, empty when it fails or is not there.
ask() {
	command -v "$2" >/dev/null 2>&1 || return 0
	bounded "$@" </dev/null 2>/dev/null || :
}

say_user() {
	say user "$(id -un)"
	say wall "$(date +%s)"
	[ "$(id -u)" = 0 ] || say sudo_rules "$(ask 5 sudo -n -l | sed -n 's/^ *\((.*NOPASSWD.*\)/\1/p')"
}

say_filter() {
	looked=$(rooted rules look) || {
		case $filter_kind in pf) say pf_error "$looked" ;; *) say nft_error "$looked" ;; esac
		looked=
	}
	for line in $looked; do
		case $line in referenced=*) say pf_anchor "${line#*=}" ;; enabled=*) say pf_enabled "${line#*=}" ;; esac
	done
	case $filter_kind in
	pf) command -v dnctl >/dev/null 2>&1 && say shaping dnctl ;;
	nft | iptables)
		[ "$filter_kind" = nft ] && shaping=nft || shaping=
		if modinfo sch_netem >/dev/null 2>&1 || [ -d /sys/module/sch_netem ]; then shaping="netem $shaping"; fi
		say shaping "$shaping"
		;;
	esac
}

say_exo() {
	if [ -n "$home" ] && [ -d "$home" ]; then
		say home 1
		if [ -w "$home" ]; then say home_writable 1; else say home_writable 0; fi
	else
		say home 0
	fi
	say exo_processes "$(ps_table | while read -r pid ppid state begun command; do
		case $command in *' match='*) continue ;; esac # this script, or another of the rig's, was given the pattern
		printf '%s\n' "$command" | grep -E -q -e "${match:-^$}" && printf '%s ' "$pid"
	done)"
	main_find || return 0
	say main "$main_pid"
	# shellcheck disable=SC2086 # words of a command line
	set -- $main_cmd
	python=${1:-}
	case $python in /*) ;; *) python=$(command -v "${python:-python3}") || python= ;; esac
	if [ "$os" = Linux ]; then folder=$(readlink "/proc/$main_pid/cwd" 2>/dev/null); else
		folder=$(bounded 5 lsof -a -p "$main_pid" -d cwd -Fn </dev/null 2>/dev/null | sed -n 's/^n//p')
	fi
	[ -z "${folder:-}" ] || say exo_revision "$(ask 5 git -C "$folder" rev-parse --short=10 HEAD)"
	case $python in *[Pp]ython*) ;; *) return 0 ;; esac
	say exo_version "$(ask 10 "$python" -c 'import importlib.metadata as m; print(m.version("exo"))')"
	[ "${evaluate:-0}" = 1 ] || return 0
	R=$(bounded 60 "$python" -c 'import mlx.core as m; print(int(m.sum(m.ones((64, 64)) @ m.ones((64, 64))).item()))' </dev/null 2>&1 | tail -n 1)
	say mlx "$R"
}

say_mac() {
	say version "$(ask 5 sw_vers -productVersion)"
	say filevault "$(ask 5 fdesetup status)"
	say power "$(ask 5 pmset -g | awk '$1 ~ /^(sleep|disablesleep|SleepDisabled|autorestart)$/ { printf "%s %s;", $1, $2 }')"
	firewall=/usr/libexec/ApplicationFirewall/socketfilterfw
	[ ! -x "$firewall" ] || say firewall "$(ask 5 "$firewall" --getglobalstate)"
	say rdma "$(ask 5 rdma_ctl status)"
	say rdma_devices "$(ask 5 ibv_devices | tail -n +3 | awk '{ printf "%s ", $1 }')"
	say thunderbolt "$(ask 15 system_profiler SPThunderboltDataType | grep -c 'Status: Device connected')"
	label=$(ask 5 launchctl list | awk -v pid="${main_pid:-none}" '$1 == pid { print $3 }')
	say exo_job "$label"
}

say_guard() {
	[ ! -f "$rig_dir/guard" ] || say guard_seen "$(sed -n 's/^clock=//p' "$rig_dir/guard") $(sed -n 's/^boot_id=//p' "$rig_dir/guard")"
	now && from_ms "$R"
	say clock "$R"
	boot_id_now && say boot_id "$R"
	scripts=$(sed -n 's/^scripts=//p' "$rig_dir/guard" 2>/dev/null)
	[ -n "$scripts" ] || return 0
	same=1
	for script in $guard_scripts; do cmp -s "$here/$script" "$scripts/$script" || same=0; done
	say guard_current "$same"
}

main_pid=
say_user
say_filter
say_exo
[ "$os" != Darwin ] || say_mac
say_guard
exit 0
