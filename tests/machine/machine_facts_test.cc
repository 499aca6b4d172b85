#include "braid/machine/machine_facts.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(MachineFacts, MemoryIsThatOfTheGroupWhereThatIsLess) {
  const char* const meminfo = "MemTotal:       16384 kB\nMemFree:         1024 kB\n";
  EXPECT_EQ(memory_bytes(meminfo, ""), 16384.0 * 1024);
  EXPECT_EQ(memory_bytes(meminfo, "max\n"), 16384.0 * 1024);
  EXPECT_EQ(memory_bytes(meminfo, "4096\n"), 4096);
  EXPECT_EQ(memory_bytes(meminfo, "99999999999\n"), 16384.0 * 1024);
  EXPECT_EQ(memory_bytes("nothing", ""), 0);
}

TEST(MachineFacts, AreThoseOfAMachine) {
  const MachineFacts facts = machine_facts();
  EXPECT_GE(facts.cores, 1);
  EXPECT_GT(facts.memory_bytes, 1e8);
  EXPECT_GE(facts.cache_bytes, 0);
  EXPECT_FALSE(facts.processor.empty());
}

}  // namespace
}  // namespace braid
