#include "cli/command.h"

int main(int argc, char** argv) { return espalier::cli::run_command(argc, argv); }
