#pragma once

#include <cstdint>
#include <string>

#include "braid/base/document.h"
#include "braid/explore/dataflow_space.h"

namespace braid {

// Values of the axes of DFModel's spaces, by name. Throw Error.
DataflowSpaceWorkload read_dataflow_workload(const std::string& name, const Value& value,
                                             std::int64_t devices);
DataflowSpaceChip read_dataflow_chip(const std::string& name, const Value& value);
DataflowTopology read_dataflow_topology(const std::string& name, const Value& value,
                                        std::int64_t devices);
DataflowLinks read_dataflow_links(const std::string& name, const Value& value);

}  // namespace braid
