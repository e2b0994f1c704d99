# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154 # set in lib.sh and bootstrap.sh, read there
# The contents of what bootstrap.sh installs, each a function that prints one file.

libexec=/usr/local/libexec/rig
guard_label=io.rig.guard
exo_label=io.rig.exo

# sudoers_text: root.sh and nothing else, whatever the words; it refuses what it does not know. The words are limited here as well, to the
# kinds of faults that were asked for, each rule anchored at both ends: sudo matches the arguments as one string, and a `*` in it would
# match blanks and more.
sudoers_text() {
	printf '# The rig'"'"'s faults on this machine, and nothing else. Made by rig bootstrap; rig bootstrap --remove takes it away.\n'
	printf 'Defaults!%s env_reset,!setenv\n' "$libexec/root.sh"
	rule 'rules (look|show)'
	case " $allow " in *' cut '* | *' shape '*) rule 'rules (counts|remove|forget) rig[_-][A-Za-z0-9_]+' ;; esac
	case " $allow " in *' cut '*) rule 'rules cut rig[_-][A-Za-z0-9_]+( [a-z_]+=[0-9A-Za-z.,\:]+)+' ;; esac
	case " $allow " in *' shape '*) rule 'rules (loss|bandwidth|delay) rig_[A-Za-z0-9_]+( [a-z_]+=[0-9A-Fa-f.,\:]+)+' ;; esac
	case " $allow " in *' link '*) rule 'link (down|up) [A-Za-z0-9._-]+' ;; esac
	case " $allow " in *' reboot '*) rule reboot ;; esac
	[ -z "$exo_command" ] || rule 'exo (start|stop)'
}

rule() {
	printf '%s ALL=(root) NOPASSWD: %s ^%s$\n' "$user" "$libexec/root.sh" "$1"
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
