"""The system's tools (nft, ip, iptables, sshd) are found wherever a user's PATH leaves their folders out."""

from __future__ import annotations

import os

from rig.lab.hosts.require import SYSTEM_PATH

os.environ["PATH"] = f"{os.environ.get('PATH', os.defpath)}:{SYSTEM_PATH}"
