# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154 # set in lib.sh and bootstrap.sh, read there
# The contents of what bootstrap.sh installs, each a function that prints one file.

libexec=/usr/local/libexec/rig
guard_label=io.rig.guard
exo_label=io.rig.exo
guard_scripts='lib.sh undo.sh filter.sh machine.sh shape-filter.sh heal.sh guard.sh'

# sudoers_text: the commands of the fault scripts, each anchored at both ends: sudo matches the arguments as one string, and a `*` in it
# would match blanks and more. What may be loaded into the anchor com.apple/rig (or, on Linux, into nftables) is not limited by this.
sudoers_text() {
	printf '# The rig'"'"'s faults on this machine, and nothing else. Made by rig bootstrap; rig bootstrap --remove takes it away.\n'
	if [ "$os" = Darwin ]; then
		rule /sbin/pfctl '-s (rules|info)'
		rule /sbin/pfctl '-q -a com\.apple/rig -s (rules|dummynet)( -v)?'
		rule /sbin/pfctl '-E'
		rule /sbin/pfctl '-X [0-9]+'
		rule /sbin/pfctl '-q -a com\.apple/rig (-n )?-f /etc/rig/partition\.conf'
		rule /sbin/pfctl '-q -a com\.apple/rig -F all'
		rule /sbin/pfctl '(-k (0\.0\.0\.0|[\:][\:])/0 )?-k [0-9A-Fa-f.\:]+'
		case " $allow " in *' shape '*) rule /usr/sbin/dnctl 'pipe (show|41 (delete|config (delay [0-9]+|plr 0\.[0-9]+|bw [0-9]+Kbit/s)))' ;; esac
		case " $allow " in *' link '*) rule /sbin/ifconfig 'en[0-9]+ (up|down)' ;; esac
		case " $allow " in *' reboot '*) rule /sbin/shutdown '-r now' ;; esac
		if [ -n "$exo_command" ]; then
			rule /bin/launchctl 'kickstart system/io\.rig\.exo'
			rule /bin/launchctl 'kill TERM system/io\.rig\.exo'
		fi
		return 0
	fi
	if command -v nft >/dev/null 2>&1 || ! command -v iptables >/dev/null 2>&1; then
		rule "$(tool_path nft)" 'list tables'
		rule "$(tool_path nft)" '(list|delete) table inet rig_[A-Za-z0-9_]+'
		rule "$(tool_path nft)" "-f $(literal "$rig_dir")/filter-[A-Za-z0-9._-]+\\.nft"
	else
		for tool in iptables ip6tables; do
			rule "$(tool_path $tool)" '-w (-S|-x -v -n -L rig-[A-Za-z0-9_]+)'
			rule "$(tool_path $tool)" '-w -[NFX] rig-[A-Za-z0-9_]+'
			rule "$(tool_path $tool)" '-w (-I (IN|OUT)PUT 1|-D (IN|OUT)PUT) -j rig-[A-Za-z0-9_]+'
			rule "$(tool_path $tool)" '-w -A rig-[A-Za-z0-9_]+ -[sdio] [0-9A-Fa-flo.\:]+( -p tcp --[sd]port [0-9]+)? -j (DROP|RETURN)'
		done
	fi
	case " $allow " in *' shape '*)
		rule "$(tool_path tc)" 'qdisc (add|del) dev [A-Za-z0-9._-]+ root handle 7a19[\:]( prio bands 4)?'
		rule "$(tool_path tc)" 'qdisc add dev [A-Za-z0-9._-]+ parent 7a19[\:]4 netem delay [0-9]+ms'
		rule "$(tool_path tc)" 'filter add dev [A-Za-z0-9._-]+ parent 7a19[\:] protocol ipv?6? prio [12] u32 match ip6? dst [0-9A-Fa-f.\:]+/[0-9]+ flowid 7a19[\:]4'
		;;
	esac
	case " $allow " in *' link '*)
		rule "$(tool_path ip)" 'link set dev [A-Za-z0-9._-]+ (up|down)'
		rule "$(tool_path ip)" 'addr add [0-9A-Fa-f.\:]+/[0-9]+ dev [A-Za-z0-9._-]+( nodad)?'
		rule "$(tool_path ip)" '-[46] route replace [0-9A-Za-z.\:/ _-]+ dev [A-Za-z0-9._-]+'
		;;
	esac
	case " $allow " in *' reboot '*) rule "$(tool_path shutdown)" '-r now' ;; esac
	[ -z "$exo_command" ] || rule "$(tool_path systemctl)" '(start|stop) rig-exo\.service'
}

rule() {
	printf '%s ALL=(root) NOPASSWD: %s ^%s$\n' "$user" "$1" "$2"
}

tool_path() {
	command -v "$1" || printf '/usr/sbin/%s' "$1"
}

# literal TEXT: as a regular expression that matches it alone. Paths here hold letters, digits and . _ / - only.
literal() {
	printf '%s' "$1" | sed 's/\./\\./g'
}

plist_head() {
	cat <<-END
		<?xml version="1.0" encoding="UTF-8"?>
		<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
		<plist version="1.0">
		<dict>
		    <key>Label</key> <string>$1</string>
		    <key>UserName</key> <string>$user</string>
		    <key>RunAtLoad</key> <true/>
		    <key>ProgramArguments</key>
		    <array>
	END
}

guard_plist() {
	plist_head "$guard_label"
	for word in /bin/sh "$libexec/guard.sh" "rig_dir=$rig_dir" once=1; do printf '        <string>%s</string>\n' "$word"; done
	printf '    </array>\n    <key>StartInterval</key> <integer>4</integer>\n    <key>AbandonProcessGroup</key> <true/>\n</dict>\n</plist>\n'
}

# Not kept alive: a crash must leave exo dead for as long as the fault says.
exo_plist() {
	plist_head "$exo_label"
	# shellcheck disable=SC2086 # words
	for word in $exo_command; do printf '        <string>%s</string>\n' "$word"; done
	printf '    </array>\n    <key>EnvironmentVariables</key>\n    <dict> <key>EXO_HOME</key> <string>%s</string> </dict>\n' "$exo_home"
	printf '    <key>StandardOutPath</key> <string>/dev/null</string>\n    <key>StandardErrorPath</key> <string>/dev/null</string>\n</dict>\n</plist>\n'
}

guard_service() {
	cat <<-END
		[Unit]
		Description=Undo expired faults of the rig

		[Service]
		Type=oneshot
		User=$user
		KillMode=process
		ExecStart=/bin/sh $libexec/guard.sh rig_dir=$rig_dir once=1
	END
}

guard_timer() {
	cat <<-END
		[Unit]
		Description=Undo expired faults of the rig, every 4 s and at boot

		[Timer]
		OnBootSec=0
		OnUnitActiveSec=4
		AccuracySec=100ms

		[Install]
		WantedBy=timers.target
	END
}

exo_service() {
	cat <<-END
		[Unit]
		Description=exo, as the rig starts it
		After=network-online.target

		[Service]
		User=$user
		Environment=EXO_HOME=$exo_home
		ExecStart=$exo_command
		Restart=no
		TimeoutStopSec=30

		[Install]
		WantedBy=multi-user.target
	END
}
