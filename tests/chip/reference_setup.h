#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "braid/chip/dataflow_setup.h"

namespace braid {

/// An input published with DFModel: `user_input/setup.txt` of a folder below reference/dfmodel in
/// the folder named by BRAID_REFERENCE_DIR, else in ../shared beside the project. nullopt when it
/// is not there.
inline std::optional<DataflowSetup> reference_setup(const std::string& name) {
  const char* folder = std::getenv("BRAID_REFERENCE_DIR");
  const std::filesystem::path path =
      std::filesystem::path(folder != nullptr ? folder : BRAID_SOURCE_DIR "/../shared") /
      "reference/dfmodel" / name / "user_input/setup.txt";
  if (!std::filesystem::exists(path)) return std::nullopt;
  return read_dataflow_setup(path.string());
}

}  // namespace braid
