#pragma once

#include <string>

namespace braid::test {

/// The project's root folder.
std::string source_folder();

/// The path of a file of the project, given from its root: `source_path("data/chips")`.
std::string source_path(const std::string& path);

}  // namespace braid::test
