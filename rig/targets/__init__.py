"""Systems under test: what the rig may ask of one (`target`), and a folder for each."""
