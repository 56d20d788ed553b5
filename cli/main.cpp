#include "cli/command.h"
#include "cli/memory.h"

int main(int argc, char** argv) {
  espalier::cli::keep_memory();
  espalier::cli::name_lack_of_memory();
  return espalier::cli::run_command(argc, argv);
}
