from rig.cli.app import main

main()
