#include "braid/chip/systolic/nest_memo.h"

#include <bit>

#include "braid/base/hash_mix.h"

namespace braid {

std::size_t NestMemo::KeyHash::operator()(const Key& key) const {
  HashMix mix;
  const auto add = [&](auto value) { mix.add(static_cast<std::uint64_t>(value)); };
  const auto add_real = [&](double value) { mix.add(std::bit_cast<std::uint64_t>(value)); };
  const LoopNest& nest = key.nest;
  add(nest.batch), add(nest.m), add(nest.n), add(nest.k), add(nest.on_chip);
  if (nest.window.used) {
    add(nest.window.operand), add(nest.window.positions);
    add_real(nest.window.slope), add_real(nest.window.offset);
  }
  const SystolicMachine& machine = key.machine;
  add(machine.cores), add(machine.array.rows), add(machine.array.columns);
  add(machine.array.unit_words), add(machine.array.flows);
  add_real(machine.array.words_per_cycle);
  add_real(machine.buffers.l2_words), add(machine.buffers.l2_per_operand);
  add_real(machine.buffers.global_words), add_real(machine.buffers.global_words_per_cycle);
  add_real(machine.buffers.hbm_words_per_cycle);
  return mix.value();
}

MappedNest NestMemo::map(const LoopNest& nest, const SystolicMachine& machine) {
  const Key key{nest, machine};
  Shard& shard = shards_[KeyHash{}(key) % kShards];
  {
    const std::scoped_lock lock(shard.mutex);
    const auto found = shard.mapped.find(key);
    if (found != shard.mapped.end()) return found->second;
  }
  const MappedNest mapped = map_nest(nest, machine);
  const std::scoped_lock lock(shard.mutex);
  return shard.mapped.emplace(key, mapped).first->second;
}

std::size_t NestMemo::size() const {
  std::size_t size = 0;
  for (const Shard& shard : shards_) {
    const std::scoped_lock lock(shard.mutex);
    size += shard.mapped.size();
  }
  return size;
}

}  // namespace braid
