#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "braid/chip/chip_work.h"
#include "braid/chip/dataflow_chip.h"

namespace braid {

/// A random graph of kernels with whole sizes of some hundreds of bytes; all tensors of a writer
/// have one size. Kernels are numbered in no topological order.
inline ChipWork random_work(std::mt19937_64& dice, std::size_t kernels) {
  const auto number = [&dice](std::uint64_t most) {
    return static_cast<double>(dice() % (most + 1));
  };
  ChipWork work;
  std::vector<std::int32_t> number_of(kernels);
  for (std::size_t i = 0; i < kernels; ++i) number_of[i] = static_cast<std::int32_t>(i);
  std::shuffle(number_of.begin(), number_of.end(), dice);
  for (std::size_t i = 0; i < kernels; ++i) {
    ChipKernel kernel;
    kernel.name = "k" + std::to_string(i);
    kernel.matrix = dice() % 3 != 0;
    kernel.rows = static_cast<std::int64_t>(dice() % 60 + 1);
    kernel.depth = kernel.matrix ? static_cast<std::int64_t>(dice() % 8 + 1) : 1;
    kernel.columns = static_cast<std::int64_t>(dice() % 30 + 1);
    kernel.flops =
        static_cast<double>(kernel.rows * kernel.depth * kernel.columns) * (kernel.matrix ? 2 : 1);
    if (dice() % 2 == 0) kernel.weight_bytes = number(300);
    if (dice() % 5 == 0) kernel.dram_bytes = number(200);
    if (dice() % 3 == 0) kernel.network_s = number(40) * 1e-9;
    work.kernels.push_back(kernel);
  }
  // The last of the order that the tensors follow are the backward pass.
  const std::size_t first_backward = dice() % 3 == 0 ? dice() % (kernels + 1) : kernels;
  for (std::size_t a = first_backward; a < kernels; ++a) {
    work.kernels[static_cast<std::size_t>(number_of[a])].backward = true;
  }
  const std::uint64_t density = dice() % 4 + 2;
  for (std::size_t a = 0; a < kernels; ++a) {
    const double tile = number(30) + 1, tiles = number(3) + 1;
    for (std::size_t b = a + 1; b < kernels; ++b) {
      if (dice() % density != 0 && !(b == a + 1 && dice() % 2 == 0)) continue;
      ChipTensor tensor;
      tensor.from = number_of[a];
      tensor.to = number_of[b];
      tensor.tile_bytes = tile;
      tensor.bytes = tile * tiles;
      tensor.buffers = static_cast<double>(b - a) + 1;
      if (dice() % 6 == 0) tensor.network_s = number(10) * 1e-9;
      work.tensors.push_back(tensor);
    }
  }
  work.resident_bytes = number(100);
  work.live_copies = number(2) + 1;
  return work;
}

/// A random graph of forward kernels in rows of `width`, each of which reads one to three kernels
/// of the `reach` rows before. Tensors have 1 to 124 bytes, half the kernels up to 300 bytes of
/// parameters.
inline ChipWork wide_work(std::mt19937_64& dice, std::size_t kernels, std::size_t width,
                          std::size_t reach) {
  ChipWork work = random_work(dice, kernels);
  work.tensors.clear();
  for (ChipKernel& kernel : work.kernels) kernel.backward = false;
  std::vector<double> tile_bytes(kernels), tiles(kernels);
  for (std::size_t i = 0; i < kernels; ++i) {
    tile_bytes[i] = static_cast<double>(dice() % 31 + 1);
    tiles[i] = static_cast<double>(dice() % 4 + 1);
  }
  for (std::size_t to = width; to < kernels; ++to) {
    const std::size_t row = to / width * width, first = row - std::min(row, reach * width);
    std::vector<bool> read(row - first, false);
    for (std::uint64_t reads = dice() % 3 + 1; reads > 0; --reads) {
      read[dice() % read.size()] = true;
    }
    for (std::size_t from = first; from < row; ++from) {
      if (!read[from - first]) continue;
      ChipTensor tensor;
      tensor.from = static_cast<std::int32_t>(from);
      tensor.to = static_cast<std::int32_t>(to);
      tensor.tile_bytes = tile_bytes[from];
      tensor.bytes = tile_bytes[from] * tiles[from];
      work.tensors.push_back(tensor);
    }
  }
  return work;
}

/// A chip for them, bound by its memory, with this much SRAM.
inline DataflowChip wide_chip(double sram_bytes) {
  DataflowChip chip;
  chip.tiles = 16;
  chip.lanes = 4;
  chip.stages = 2;
  chip.clock_hz = 1e9;
  chip.sram_bytes = sram_bytes;
  chip.dram_bytes = 1e12;
  chip.dram_bytes_per_s = 10e9;
  return chip;
}

inline DataflowChip random_chip(std::mt19937_64& dice) {
  DataflowChip chip;
  chip.tiles = static_cast<std::int64_t>(dice() % 12 + 1);
  chip.lanes = static_cast<std::int64_t>(dice() % 8 + 1);
  chip.stages = static_cast<std::int64_t>(dice() % 4 + 1);
  chip.clock_hz = 1e9;
  chip.sram_bytes = static_cast<double>(dice() % 900 + 50);
  chip.dram_bytes = static_cast<double>(dice() % 1500 + 200);
  chip.dram_bytes_per_s = 1e9 * static_cast<double>(dice() % 20 + 1);
  if (dice() % 3 == 0) {
    chip.spill_bytes = static_cast<double>(dice() % 500 + 1);
    chip.spill_bytes_per_s = chip.dram_bytes_per_s / 4;
  }
  return chip;
}

}  // namespace braid
