"""macOS's packet filter: its grammar, its state, and its translation to nftables."""
