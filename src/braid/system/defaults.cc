#include "braid/system/defaults.h"

#include <algorithm>
#include <span>

#include "braid/base/embedded_file.h"
#include "braid/system/chip_reader.h"

namespace braid {

std::span<const EmbeddedFile> embedded_chips();
std::span<const EmbeddedFile> embedded_clusters();

Efficiency default_efficiency(ChipExecution execution) {
  Efficiency efficiency;
  efficiency.matmul_peak_fraction = 0.585;
  efficiency.vector_peak_fraction = 0.6;
  efficiency.attention_peak_fraction = 0.45;
  efficiency.memory_peak_fraction = 0.785;
  efficiency.memory_half_bytes = 1e6;
  efficiency.kernel_launch_s = 4e-6;
  if (execution == ChipExecution::kernels) {
    efficiency.host_operator_s = 65e-6;
    efficiency.overlap_loss = 0.15;
  }
  return efficiency;
}

double usual_reserve_bytes(const Chip& chip) {
  double usual_bytes = kReservedShare * chip.memory.bytes;
  for (const EmbeddedFile& file : embedded_chips()) {
    if (file.name != chip.name) continue;
    usual_bytes =
        read_chip(Document::parse(file.text, Document::Syntax::yaml, std::string(file.file)).root())
            .reserved_bytes;
  }
  return std::min(chip.reserved_bytes, usual_bytes);
}

std::optional<ReferenceCluster> reference_cluster(const std::string& chip) {
  const std::string line = "\nchip: " + chip + "\n";
  for (const EmbeddedFile& file : embedded_clusters()) {
    if (file.text.find(line) == std::string_view::npos) continue;
    const Document document =
        Document::parse(file.text, Document::Syntax::yaml, std::string(file.file));
    const Value root = document.root();
    ReferenceCluster reference;
    reference.name = file.name;
    std::vector<Provenance> unused;
    // The catalogue leaves nothing out.
    const LinkSource none{kLinkBetweenNodes, ""};
    reference.inside = read_level(root["intra_node"], none, unused);
    if (root["levels"].exists()) {
      for (const Value& level : root["levels"].elements()) {
        reference.levels.push_back(read_level(level, none, unused));
      }
    }
    if (root["host"].exists()) {
      Memory host;
      host.name = root["host"]["name"].string_or("host");
      host.bytes = root["host"]["size"].as_positive_quantity(Unit::bytes) /
                   static_cast<double>(root["devices_per_node"].as_int_in(1, 1 << 24));
      host.bytes_per_s = root["host"]["bandwidth"].as_positive_quantity(Unit::bytes_per_s);
      reference.host = host;
    }
    return reference;
  }
  return std::nullopt;
}

LinkSource link_source(const std::optional<ReferenceCluster>& reference, Topology topology,
                       std::size_t level) {
  if (reference && (level == 0 || !reference->levels.empty())) {
    const NetworkLevel& like =
        level == 0 ? reference->inside
                   : reference->levels[std::min(level, reference->levels.size()) - 1];
    if (like.topology == topology) {
      return {{like.latency_s, like.efficiency, like.half_bytes}, "as in " + reference->name};
    }
  }
  if (topology == Topology::torus) {
    return {kLinkOfTorus, "as the catalogue's tori"};
  }
  return level == 0 ? LinkSource{kLinkInNode, "as most links in nodes of the catalogue"}
                    : LinkSource{kLinkBetweenNodes, "as most networks of the catalogue"};
}

}  // namespace braid
