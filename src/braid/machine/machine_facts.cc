#include "braid/machine/machine_facts.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <thread>

#include <unistd.h>

#include "braid/backend/measure/cost_store.h"

namespace braid {
namespace {

std::string text_of(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The number that a text begins with, spaces left out; 0: none.
double leading_number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return static_cast<double>(number);
}

double largest_cache_bytes() {
  long most = 0;
  for (const int level : {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE,
                          _SC_LEVEL4_CACHE_SIZE}) {
    most = std::max(most, ::sysconf(level));
  }
  return static_cast<double>(most);
}

}  // namespace

double memory_bytes(std::string_view meminfo, std::string_view group_limit) {
  constexpr std::string_view key = "MemTotal:";
  constexpr double kib = 1024;
  const std::size_t at = meminfo.find(key);
  if (at == std::string_view::npos) return 0;
  const double all = kib * leading_number(meminfo.substr(at + key.size()));
  const double limit = leading_number(group_limit);
  return limit > 0 ? std::min(all, limit) : all;
}

MachineFacts machine_facts() {
  MachineFacts facts;
  facts.processor = machine_name();
  facts.cores = std::max(1U, std::thread::hardware_concurrency());
  facts.memory_bytes = memory_bytes(text_of("/proc/meminfo"), text_of("/sys/fs/cgroup/memory.max"));
  facts.cache_bytes = largest_cache_bytes();
  return facts;
}

}  // namespace braid
