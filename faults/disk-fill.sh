#!/bin/sh
# Fill the disk of exo's home until `leave` bytes are free (at most `most` bytes are written), for `hold` seconds.
# Keys: id run owner rig_dir hold home leave [most at also lock]. What is written is one file, HOME/.rig-fill-ID.
case $0 in */*) here=${0%/*} ;; *) here=. ;; esac
# shellcheck source=faults/lib.sh
. "$here/lib.sh"
# shellcheck source=faults/undo.sh
. "$here/undo.sh"

parse_args 'id run owner lock rig_dir hold at also home pidfile match sudo leave most' "$@"
require_fault
kind=disk-fill
check_path home "$home"
bytes_or_usage leave "$leave"
[ -z "$most" ] || bytes_or_usage most "$most"

# fill BYTES: real blocks, quickly where the system can set them aside. What writes them otherwise is in the lease: it could go on when
# this script is gone, into a file that has no name any more. R: why not.
fill() {
	umask 077
	if [ "$os" = Linux ] && command -v fallocate >/dev/null 2>&1; then
		R=$(bounded 60 fallocate -l "$1" "$filled" 2>&1) && return 0
		rm -f "$filled"
	fi
	R='neither fallocate nor perl is there'
	[ -n "$have_perl" ] || return 1
	# shellcheck disable=SC2016 # perl
	hog_start '
		use Fcntl; sysopen(my $file, $ARGV[0], O_WRONLY | O_CREAT | O_EXCL) or exit;
		my $block = "\0" x 1048576;
		for (1 .. $ARGV[1] / 1048576) { (syswrite($file, $block) // 0) == 1048576 or exit }
		exit' "$filled" "$1" && lease_write && hogs_release || return 1
	now
	filled_by_ms=$((R + strike_limit_ms))
	while [ -z "$asked" ] && [ "$R" -lt "$filled_by_ms" ]; do
		look "$hogs"
		[ -z "$is_gone" ] || return 0
		pause 50
		now
	done
	R="not within $((strike_limit_ms / 1000)) s"
	return 1
}

occupied() {
	R=$(du -k "$filled" 2>/dev/null | awk '{ printf "%.0f", $1 * 1024 }')
	R=${R:-0}
}

gone_early=
# shellcheck disable=SC2329 # called by hold_until
sample() {
	occupied
	[ "$R" -ge $((size - size / 20)) ] || gone_early=1
}

[ -d "$home" ] && [ -w "$home" ] || skip "$home cannot be written"
disk_free "$home" || skip "df does not say how much is free at $home"
before=$R size=$((R - leave))
[ -z "$most" ] || [ "$size" -le "$most" ] || size=$most
[ "$size" -ge 1048576 ] || skip "only $before bytes are free, $leave are to be left"
filled=$home/.rig-fill-$id
[ ! -e "$filled" ] && [ ! -L "$filled" ] || skip "$filled is there already"
strike_limit_ms=60000
hog_life_s=$(((hold_ms + strike_limit_ms) / 1000 + 5))
begin
phase=struck
fill "$size" || fill_error=$R
occupied
now
struck_ms=$R
occupied && note bytes "$R"
if [ "$R" -ge $((size - size / 20)) ]; then
	note free_before "$before"
	disk_free "$home" && note free "$R"
	struck "$struck_ms"
	hold_from "$struck_ms" sample
	[ -z "$gone_early" ] || ineffective 'the file was removed or cut during the hold'
else
	ineffective "only $R of $size bytes were written: ${fill_error:-}"
fi
finish
