# A main process with three children, as exo has them: `perl fakeexo.pl HOME` writes HOME/exo.pid and stays.
use strict;
use warnings;
my $home = shift;
for (1 .. 3) {
    my $pid = fork();
    if (!$pid) { $0 = "perl fakeexo-child"; sleep 1 while getppid() > 1; exit 0 }
}
open(my $file, '>', "$home/exo.pid") or die;
print $file $$;
close $file;
sleep 1 while 1;
