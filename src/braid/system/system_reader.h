#pragma once

#include "braid/base/document.h"
#include "braid/system/catalogue.h"
#include "braid/system/system.h"

namespace braid {

/// Reads a cluster from its YAML (or JSON) form, docs/file-formats.md; `count` overrides its number
/// of nodes, `depth` counts the cluster files that led here. What may be left out and is, is
/// recorded in System::provenance as assumed. Throws Error.
System read_system(const Value& value, const DeviceCount& count, int depth);

/// What joins the nodes of a cluster of one kind, read as a cluster of `chip`: its form without
/// `chip`, `groups` and, if need be, `name`. Throws Error.
System read_network(const Value& value, const Chip& chip, const DeviceCount& count);

}  // namespace braid
