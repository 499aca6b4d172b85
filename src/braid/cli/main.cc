#include <cstdio>

#include "braid/cli/program.h"

int main(int argc, char** argv) {
  const int status = braid::run_program(argc, argv);
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return braid::fail("cannot write to standard output");
  }
  return status;
}
