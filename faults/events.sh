#!/bin/sh
# A piece of the event log that exo has open: read-only. Keys: rig_dir home pidfile match [offset most].
# Answers `path= inode= size= head=` (its first 128 bytes, in base64), then a line `data` and after it, in base64, at most `most` bytes
# from byte `offset` on. Nothing where there is no such file.
case $0 in */*) here=${0%/*} ;; *) here=. ;; esac
# shellcheck source=faults/lib.sh
. "$here/lib.sh"

parse_args 'rig_dir id run owner home pidfile match sudo offset most' "$@"
offset=${offset:-0} most=${most:-1048576}
bytes_or_usage offset "$offset"
bytes_or_usage most "$most"

# Where main has it open, else where it usually is.
file=
[ -n "$match" ] && [ -n "$pidfile" ] && main_find && file=$(open_files "$main_pid" | grep '/event_log/api/events\.bin$' | head -n 1)
[ -n "$file" ] || file=$home/event_log/api/events.bin
[ -f "$file" ] && [ -r "$file" ] && command -v base64 >/dev/null 2>&1 || exit 0

inode() {
	# shellcheck disable=SC2012,SC2046 # the number before one name
	set -- $(ls -i "$file" 2>/dev/null)
	R=${1:-gone}
}

# A log begun anew has another inode; what was read across such a moment is read again.
for attempt in 1 2 3; do
	inode
	before=$R
	size=$(wc -c <"$file" | tr -d ' ')
	head=$(head -c 128 "$file" | base64 | tr -d '\n')
	data=$(tail -c "+$((offset + 1))" "$file" | head -c "$most" | base64)
	inode
	[ "$R" != "$before" ] || [ "$R" = gone ] || break
	[ "$attempt" -lt 3 ] || exit 0
done
printf 'path=%s\ninode=%s\nsize=%s\nhead=%s\ndata\n%s\n' "$file" "$before" "$size" "$head" "$data"
