#pragma once

#include <string>

namespace braid {

/// Prints how far off the catalogue's figures of kernels are on all rows of a folder of tables,
/// with nothing fitted. An exit status of verbs.h. Throws Error for tables without any group that
/// the catalogue has.
int validate_kernels(const std::string& tables, bool json);

}  // namespace braid
