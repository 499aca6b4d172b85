#pragma once

#include <optional>
#include <string>

#include "braid/dataflow/dataflow_setup.h"

#include "base/reference_files.h"

namespace braid {

/// An input published with DFModel: `user_input/setup.txt` of a folder below reference/dfmodel.
/// nullopt when it is not there.
inline std::optional<DataflowSetup> reference_setup(const std::string& name) {
  const std::string path = reference_file("reference/dfmodel/" + name + "/user_input/setup.txt");
  if (path.empty()) return std::nullopt;
  return read_dataflow_setup(path);
}

}  // namespace braid
