// Stands for the libraries: its precompiled header is theirs.
