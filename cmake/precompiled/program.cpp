// Stands for the test programs: its precompiled header is theirs.
int main() { return 0; }
