#pragma once

#include <string>

namespace braid {

/// The program that processes of a run are of: braid-run, which stands beside this one. Throws
/// Error where it is not there, as braid was built without libtorch.
std::string worker_program();

}  // namespace braid
