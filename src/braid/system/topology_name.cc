#include "braid/system/topology_name.h"

#include <string>

namespace braid {

std::string_view name_of(Topology topology) {
  switch (topology) {
    case Topology::ring:
      return "ring";
    case Topology::fully_connected:
      return "fully-connected";
    case Topology::switched:
      return "switch";
    case Topology::torus:
      return "torus";
    case Topology::dragonfly:
      return "dragonfly";
  }
  return "";
}

Topology read_topology(const Value& value) {
  const std::string_view name = value.as_string();
  for (const Topology topology : {Topology::ring, Topology::fully_connected, Topology::switched,
                                  Topology::torus, Topology::dragonfly}) {
    if (name_of(topology) == name) return topology;
  }
  value.fail("unknown topology '" + std::string(name) + "'",
             "use ring, fully-connected, switch, torus or dragonfly");
}

}  // namespace braid
