#include "braid/chip/set_order.h"

#include <algorithm>
#include <numeric>

namespace braid {

SetOrder::SetOrder(const MapperTables& tables)
    : tables_(tables), group_(tables.kernels.size()), count_(group_.size()) {
  std::iota(group_.begin(), group_.end(), 0U);
}

bool SetOrder::add(std::span<const std::uint32_t> set) {
  const std::uint32_t least = *std::min_element(set.begin(), set.end());
  for (const std::uint32_t kernel : set) group_[kernel] = least;
  count_ -= set.size() - 1;
  if (groups().size() == count_) return true;
  for (const std::uint32_t kernel : set) group_[kernel] = kernel;
  count_ += set.size() - 1;
  return false;
}

std::vector<std::uint32_t> SetOrder::order() const {
  std::vector<std::vector<std::uint32_t>> members(group_.size());
  for (const std::uint32_t kernel : tables_.order) members[group_[kernel]].push_back(kernel);
  std::vector<std::uint32_t> order;
  order.reserve(group_.size());
  for (const std::uint32_t group : groups()) {
    order.insert(order.end(), members[group].begin(), members[group].end());
  }
  return order;
}

std::vector<std::uint32_t> SetOrder::groups() const {
  const std::size_t kernels = group_.size();
  std::vector<std::vector<std::uint32_t>> readers(kernels);
  std::vector<std::uint32_t> waiting(kernels, 0), ready, later, order;
  for (std::size_t i = 0; i < kernels; ++i) {
    for (const MapperTables::Tensor& tensor : tables_.kernels[i].outputs) {
      const std::uint32_t reader = group_[tensor.other];
      if (group_[i] == reader) continue;
      readers[group_[i]].push_back(reader);
      ++waiting[reader];
    }
  }
  const auto is_ready = [&](std::uint32_t group) {
    (tables_.kernels[group].waits ? later : ready).push_back(group);
  };
  for (std::size_t i = kernels; i-- > 0;) {
    if (group_[i] == i && waiting[i] == 0) is_ready(static_cast<std::uint32_t>(i));
  }
  while (!ready.empty() || !later.empty()) {
    std::vector<std::uint32_t>& from = ready.empty() ? later : ready;
    const std::uint32_t group = from.back();
    from.pop_back();
    order.push_back(group);
    for (const std::uint32_t reader : readers[group]) {
      if (--waiting[reader] == 0) is_ready(reader);
    }
  }
  return order;
}

}  // namespace braid
