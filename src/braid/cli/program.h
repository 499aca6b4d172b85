#pragma once

#include <string_view>

namespace braid {

/// Runs the command that argv[1] … argv[argc − 1] state and returns its exit status (ExitStatus, in
/// verbs.h). Answers go to stdout, and a mistake of the user's is one line on stderr. Never throws;
/// may be called several times, one after another.
int run_program(int argc, char** argv);

/// Prints "braid: " and the message as one line on stderr, and returns the status of bad input.
int fail(std::string_view message) noexcept;

}  // namespace braid
