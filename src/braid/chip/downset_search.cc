#include "braid/chip/downset_search.h"

#include <algorithm>

#include "braid/base/rounding.h"
#include "braid/chip/partition_time.h"

namespace braid {
namespace {

/// Kernels that may join, of all downsets together: 256 MB.
constexpr std::size_t kMostJoining = 32'000'000;

}  // namespace

DownsetSearch::DownsetSearch(const MapperTables& tables, const MapperBudget& budget,
                             const std::vector<double>& floors, double upper_s)
    : tables_(tables),
      budget_(budget),
      floors_(floors),
      sums_(tables),
      upper_s_(upper_s),
      sets_(tables.kernels.size()) {
  Node root;
  for (std::size_t i = 0; i < tables.kernels.size(); ++i) {
    compute_s_ += tables.kernels[i].compute_s;
    network_s_ += tables.kernels[i].network_s;
    traffic_bytes_ += tables.kernels[i].traffic_bytes;
    floor_bytes_ += floors[i];
    if (!tables.kernels[i].inputs.empty()) continue;
    joining_.emplace_back(static_cast<std::uint32_t>(i), kNone);
    ++root.joining;
  }
  root.so_far_s = 0;
  root.bound_s = bound_of(root, 0);
  nodes_.push_back(root);
  open_.emplace(root.bound_s, 0U);
}

bool DownsetSearch::run() {
  while (!open_.empty()) {
    const auto [total_s, id] = open_.top();
    open_.pop();
    if (total_s >= upper_s_ * kBelowTolerance) break;
    if (nodes_[id].closed) continue;
    nodes_[id].closed = true;
    if (id == whole_) return true;
    sums_.begin(sets_.set(id));
    start_ = id;
    ++stamp_;
    if (!walk(id)) {
      lower_bound_s_ = total_s;
      return false;
    }
  }
  return true;
}

std::vector<Bitset> DownsetSearch::partitions() const {
  std::vector<Bitset> found;
  if (whole_ == kNone || nodes_[whole_].parent == kNone) return found;
  for (std::uint32_t id = whole_; id != 0; id = nodes_[id].parent) {
    found.push_back(sets_.set(id) - sets_.set(nodes_[id].parent));
  }
  std::reverse(found.begin(), found.end());
  return found;
}

double DownsetSearch::bound_of(const Node& node, double cut_bytes) const {
  return remaining_bound_s(tables_, std::max(0.0, compute_s_ - node.compute_s),
                           std::max(0.0, network_s_ - node.network_s),
                           std::max(0.0, traffic_bytes_ - node.traffic_bytes),
                           std::max(cut_bytes, floor_bytes_ - node.floor_bytes));
}

/// Lists what may join `larger`, the downset `id` with `kernel`, at the end of joining_.
void DownsetSearch::add_joining(std::uint32_t id, std::uint32_t larger, std::uint32_t kernel,
                                Node& node) {
  const Node& before = nodes_[id];
  node.first_joining = static_cast<std::uint32_t>(joining_.size());
  for (std::size_t i = 0; i < before.joining; ++i) {
    const std::uint32_t other = joining_[before.first_joining + i].first;
    if (other != kernel) joining_.emplace_back(other, kNone);
  }
  for (const MapperTables::Tensor& tensor : tables_.kernels[kernel].outputs) {
    const auto& inputs = tables_.kernels[tensor.other].inputs;
    // Of writers that are missing the last is the likeliest.
    const bool ready = std::all_of(inputs.rbegin(), inputs.rend(), [&](const auto& input) {
      return sets_.has(larger, input.other);
    });
    const bool listed = std::any_of(joining_.begin() + node.first_joining, joining_.end(),
                                    [&](const auto& have) { return have.first == tensor.other; });
    if (ready && !listed) joining_.emplace_back(tensor.other, kNone);
  }
  node.joining = static_cast<std::uint32_t>(joining_.size()) - node.first_joining;
}

/// The downset `id` with the kernel of joining_[at]; the sums are those of the larger one.
std::uint32_t DownsetSearch::follow(std::uint32_t id, std::size_t at) {
  const auto [kernel, known] = joining_[at];
  if (known != kNone) return known;
  const std::uint32_t larger = sets_.with(id, kernel);
  joining_[at].second = larger;
  if (larger < nodes_.size()) return larger;
  const Node& before = nodes_[id];
  const MapperTables::Kernel& added = tables_.kernels[kernel];
  Node node;
  node.compute_s = before.compute_s + added.compute_s;
  node.network_s = before.network_s + added.network_s;
  node.traffic_bytes = before.traffic_bytes + added.traffic_bytes;
  node.floor_bytes = before.floor_bytes + floors_[kernel];
  add_joining(id, larger, kernel, node);
  node.bound_s = bound_of(node, sums_.cut_bytes());
  if (node.joining == 0) {
    node.bound_s = 0;
    whole_ = larger;
  }
  nodes_.push_back(node);
  return larger;
}

/// Considers all partitions that continue the present one, which ends at the downset `id`. False
/// when the budget is used up. Depth: the number of kernels.
// NOLINTNEXTLINE(misc-no-recursion)
bool DownsetSearch::walk(std::uint32_t id) {
  const std::size_t first = nodes_[id].first_joining, last = first + nodes_[id].joining;
  for (std::size_t at = first; at < last; ++at) {
    const auto [kernel, known] = joining_[at];
    if (known != kNone && nodes_[known].seen == stamp_) continue;
    if (!sums_.accepts(kernel)) continue;
    if (looked_at_ >= budget_.partitions || kept() >= budget_.downsets) return false;
    if (joining_.size() >= kMostJoining) return false;
    const PartitionSums::Sums earlier = sums_.add(kernel);
    const std::uint32_t larger = follow(id, at);
    Node& node = nodes_[larger];
    bool more = true;
    if (node.seen != stamp_) {
      node.seen = stamp_;
      ++looked_at_;
      if (!node.closed) improve(larger);
      if (!sums_.is_full()) more = walk(larger);
    }
    sums_.undo(earlier);
    if (!more) return false;
  }
  return true;
}

void DownsetSearch::improve(std::uint32_t id) {
  Node& node = nodes_[id];
  const double start_s = nodes_[start_].so_far_s;
  const double enough =
      std::min(node.so_far_s, upper_s_ * kBelowTolerance - node.bound_s) - start_s;
  const double total_s = start_s + sums_.time_s(enough);
  if (total_s >= node.so_far_s || total_s + node.bound_s >= upper_s_ * kBelowTolerance) return;
  node.so_far_s = total_s;
  node.parent = start_;
  if (id == whole_) upper_s_ = total_s / kBelowTolerance;
  open_.emplace(total_s + node.bound_s, id);
}

}  // namespace braid
