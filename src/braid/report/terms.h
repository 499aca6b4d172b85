#pragma once

#include <string>
#include <utility>
#include <vector>

#include "braid/plan/outcome.h"

namespace braid {

/// Times of an iteration by what they go into, with the words and in the order of all reports. They
/// sum to the iteration time. Gradient sync sums gradients, over replicas and context-
/// parallel ranks and between stages that share an embedding, and gathers the weights that ZeRO
/// shards.
std::vector<std::pair<std::string, double>> time_terms(const Metrics& metrics);

/// The same of memory on a device.
std::vector<std::pair<std::string, double>> memory_terms(const MemoryBreakdown& memory);

/// A part of `whole` with as many decimals as write `whole` with five figures (four from 10 on to
/// 100), so that the parts of one table stand below each other and add up: of 207.8 s "1.15",
/// "55.92" and "207.80".
std::string part_text(double part, double whole);

/// Whether a figure is written as zero ("0.00"): a row of such figures alone says nothing.
bool is_zero(const std::string& figure);

/// Tokens or samples a second: "36260", "3.12".
std::string rate_text(double per_s);

}  // namespace braid
