// The table of docs/notes/dfmodel.md on wide graphs: how far mappings are from their bounds on
// random graphs ten wide, without overlap. Arguments: kernels (300), graphs (4), rows that a kernel
// may reach back (2), bytes of SRAM (400 600 800 1200).

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <random>
#include <vector>

#include <fmt/format.h>

#include "braid/chip/kernel_mapper.h"

#include "chip/random_work.h"

namespace braid {
namespace {

void map_graphs(std::size_t kernels, std::uint64_t graphs, std::size_t reach, double sram_bytes) {
  const MappingRules rules = dfmodel_rules(PartitionOverlap::none);
  for (std::uint64_t graph = 1; graph <= graphs; ++graph) {
    std::mt19937_64 dice(graph);
    const ChipWork work = wide_work(dice, kernels, 10, reach);
    const DataflowChip chip = wide_chip(sram_bytes);
    const std::clock_t start = std::clock();
    const MappingOutcome outcome = map_kernels(work, chip, rules);
    const double cpu_s = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    const double gap = outcome.cost.time_s / outcome.lower_bound_s - 1;
    fmt::print("{:6.0f} {:5} {:10} {:10.4f} {:10.4f} {:7.2f} % {:8.2f} s\n", sram_bytes, graph,
               outcome.cost.partitions.size(), outcome.cost.time_s * 1e6,
               outcome.lower_bound_s * 1e6, gap * 100, cpu_s);
  }
}

}  // namespace
}  // namespace braid

int main(int count, char** arguments) {
  const auto number = [&](int at, unsigned long otherwise) {
    return at < count ? std::strtoul(arguments[at], nullptr, 10) : otherwise;
  };
  std::vector<double> sram_bytes = {400, 600, 800, 1200};
  if (count > 4) sram_bytes.clear();
  for (int at = 4; at < count; ++at) sram_bytes.push_back(static_cast<double>(number(at, 0)));
  fmt::print("{:>6} {:>5} {:>10} {:>10} {:>10} {:>9} {:>10}\n", "SRAM", "graph", "partitions", "us",
             "bound us", "gap", "processor");
  for (const double bytes : sram_bytes) {
    braid::map_graphs(number(1, 300), number(2, 4), number(3, 2), bytes);
  }
}
