// The paper's own mixed-integer program (DFModel, section V-B with the matrices of equations 1 to
// 4), solved by COIN-OR CBC where that is installed.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <map>
#include <optional>
#include <random>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "braid/chip/kernel_mapper.h"

#include "chip/random_work.h"

namespace braid {
namespace {

std::string var(const char* matrix, std::size_t row, std::size_t partition) {
  return matrix + std::to_string(row) + "_" + std::to_string(partition);
}

/// A linear form; CBC wants each variable once.
class Form {
 public:
  void add(double factor, const std::string& name) { factors_[name] += factor; }
  Form& operator+=(const Form& other) {
    for (const auto& [name, factor] : other.factors_) add(factor, name);
    return *this;
  }
  std::string text() const {
    std::string text;
    for (const auto& [name, factor] : factors_) {
      char term[96];
      std::snprintf(term, sizeof term, " %+.12g %s", factor, name.c_str());
      text += term;
    }
    return text;
  }

 private:
  std::map<std::string, double> factors_;
};

/// What falls to partition `c`, over the variables.
struct PartitionForms {
  Form compute, memory, network, sram, dram;
};

PartitionForms forms_of(std::size_t c, const ChipWork& work, const DataflowChip& chip,
                        const MappingRules& rules) {
  const double rate = rules.compute_fraction * peak_flops_per_s(chip) * 1e-9;
  PartitionForms forms;
  for (std::size_t i = 0; i < work.kernels.size(); ++i) {
    const ChipKernel& kernel = work.kernels[i];
    forms.compute.add(-kernel.flops / rate, var("A", i, c));
    forms.memory.add(-kernel.dram_bytes / chip.dram_bytes_per_s * 1e9, var("A", i, c));
    forms.network.add(-kernel.network_s * 1e9, var("A", i, c));
    forms.sram.add(kernel.weight_bytes, var("A", i, c));
  }
  for (std::size_t j = 0; j < work.tensors.size(); ++j) {
    const ChipTensor& tensor = work.tensors[j];
    const auto from = static_cast<std::size_t>(tensor.from);
    const auto to = static_cast<std::size_t>(tensor.to);
    const double ns = tensor.bytes / chip.dram_bytes_per_s * 1e9;
    for (const std::size_t end : {from, to}) {  // D = A[src] xor A[dst] = A[src] + A[dst] - 2 B
      forms.memory.add(-ns, var("A", end, c));
      forms.sram.add(2 * tensor.tile_bytes, var("A", end, c));
    }
    forms.memory.add(2 * ns, var("B", j, c));
    forms.sram.add((tensor.buffers - 4) * tensor.tile_bytes, var("B", j, c));
    forms.network.add(-tensor.network_s * 1e9, var("A", to, c));
    const double waits = tensor.bytes * work.live_copies;
    for (std::size_t b = 0; b <= c; ++b) {  // L: begun, not ended before, and not within
      forms.dram.add(waits, var("A", from, b));
      if (b < c) forms.dram.add(-waits, var("A", to, b));
    }
    forms.dram.add(-waits, var("B", j, c));
  }
  return forms;
}

void time_rows(std::ostream& out, const std::string& time, const PartitionForms& forms,
               PartitionOverlap overlap) {
  const auto row = [&](std::initializer_list<const Form*> parts) {
    Form sum;
    sum.add(1, time);
    for (const Form* part : parts) sum += *part;
    out << sum.text() << " >= 0\n";
  };
  switch (overlap) {
    case PartitionOverlap::all:
      row({&forms.compute});
      row({&forms.memory});
      row({&forms.network});
      break;
    case PartitionOverlap::compute_memory:
      row({&forms.compute, &forms.network});
      row({&forms.memory, &forms.network});
      break;
    case PartitionOverlap::none:
      row({&forms.compute, &forms.memory, &forms.network});
      break;
  }
}

/// The program in CPLEX's LP format. Times are in units of 1e-9 s.
std::string program(const ChipWork& work, const DataflowChip& chip, const MappingRules& rules) {
  const std::size_t count = work.kernels.size();
  std::ostringstream out;
  out << "Minimize\n obj:";
  for (std::size_t c = 0; c < count; ++c) out << " + T" << c;
  out << "\nSubject To\n";
  for (std::size_t i = 0; i < count; ++i) {  // A 1 = 1
    Form one;
    for (std::size_t c = 0; c < count; ++c) one.add(1, var("A", i, c));
    out << one.text() << " = 1\n";
  }
  for (std::size_t j = 0; j < work.tensors.size(); ++j) {
    const auto from = static_cast<std::size_t>(work.tensors[j].from);
    const auto to = static_cast<std::size_t>(work.tensors[j].to);
    Form order;
    for (std::size_t c = 1; c < count; ++c) {
      order.add(static_cast<double>(c), var("A", to, c));
      order.add(-static_cast<double>(c), var("A", from, c));
    }
    out << order.text() << " >= 0\n";
    for (std::size_t c = 0; c < count; ++c) {  // B = A[src] and A[dst]
      const std::string b = var("B", j, c), src = var("A", from, c), dst = var("A", to, c);
      out << b << " - " << src << " <= 0\n" << b << " - " << dst << " <= 0\n";
      out << b << " - " << src << " - " << dst << " >= -1\n";
    }
  }
  for (std::size_t c = 0; c < count; ++c) {
    const PartitionForms forms = forms_of(c, work, chip, rules);
    time_rows(out, "T" + std::to_string(c), forms, rules.overlap);
    out << forms.sram.text() << " <= " << chip.sram_bytes << "\n";
    if (work.tensors.empty()) continue;
    out << forms.dram.text() << " <= " << chip.dram_bytes - work.resident_bytes << "\n";
  }
  out << "Binaries\n";
  for (std::size_t c = 0; c < count; ++c) {
    for (std::size_t i = 0; i < count; ++i) out << var("A", i, c) << "\n";
    for (std::size_t j = 0; j < work.tensors.size(); ++j) out << var("B", j, c) << "\n";
  }
  out << "End\n";
  return out.str();
}

/// CBC's optimum; nullopt when it finds the program infeasible.
std::optional<double> solve(const std::string& text, const std::string& name) {
  const std::string path = ::testing::TempDir() + "braid_" + name;
  std::ofstream(path + ".lp") << text;
  const std::string command =
      "cbc '" + path + ".lp' ratio 0 allow 1e-9 solve solution '" + path + ".txt' > /dev/null 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0);
  std::ifstream answer(path + ".txt");
  std::string line;
  std::getline(answer, line);
  std::remove((path + ".lp").c_str());
  std::remove((path + ".txt").c_str());
  if (line.rfind("Optimal", 0) != 0) return std::nullopt;
  return std::strtod(line.c_str() + line.rfind(' '), nullptr) * 1e-9;
}

TEST(CbcOracle, AgreesOnThePapersProgram) {
  if (std::system("command -v cbc > /dev/null 2>&1") != 0) GTEST_SKIP() << "cbc is not installed";
  std::mt19937_64 dice(11);
  int solved = 0;
  for (int round = 0; round < 24; ++round) {
    ChipWork work = random_work(dice, dice() % 5 + 1);
    for (ChipKernel& kernel : work.kernels) {
      kernel.backward = false;
      kernel.weight_bytes /= 4;
    }
    for (ChipTensor& tensor : work.tensors) tensor.tile_bytes = std::min(tensor.tile_bytes, 9.0);
    DataflowChip chip = random_chip(dice);
    chip.spill_bytes = chip.spill_bytes_per_s = 0;
    // Room for each kernel alone: the program does not cut kernels into parts.
    chip.sram_bytes = std::max(chip.sram_bytes / 4, 75.0 + 2 * 9 * 8);
    const MappingRules rules = dfmodel_rules(static_cast<PartitionOverlap>(round % 3));
    const auto best = solve(program(work, chip, rules), "cbc_" + std::to_string(round));
    const MappingOutcome outcome = map_kernels(work, chip, rules);
    ASSERT_EQ(outcome.status == MappingStatus::optimal, best.has_value()) << "round " << round;
    if (!best) continue;
    ++solved;
    EXPECT_NEAR(outcome.cost.time_s, *best, 1e-6 * *best) << "round " << round;
  }
  EXPECT_GT(solved, 12);
}

}  // namespace
}  // namespace braid
