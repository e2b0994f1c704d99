"""Virtual Macs: hosts in namespaces with the commands of macOS, as far as node scripts and the rig use them."""
