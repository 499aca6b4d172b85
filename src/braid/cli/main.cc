#include <cstdio>

#include "braid/cli/program.h"
#include "braid/cli/verbs.h"

int main(int argc, char** argv) {
  const int status = braid::run_program(argc, argv);
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  // What failed has said so, and that may have been this.
  const bool said = status != braid::kFound && status != braid::kInfeasible;
  return written || said ? status : braid::fail("cannot write to standard output");
}
