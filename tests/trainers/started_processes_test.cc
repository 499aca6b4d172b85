#include "braid/trainers/exchange/started_processes.h"

#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace braid {
namespace {

std::int64_t started(const std::string& line) {
  std::istringstream text(line);
  std::vector<std::string> words;
  for (std::string word; text >> word;) words.push_back(word);
  return processes_started(words, "train.sh");
}

TEST(StartedProcesses, OfLaunchers) {
  EXPECT_EQ(started("torchrun --nproc-per-node 8 --nnodes=4"), 32);
  EXPECT_EQ(started("python -m torch.distributed.run --nproc_per_node=4"), 4);
  EXPECT_EQ(started("deepspeed --num_gpus 4 --num_nodes 2"), 8);
  EXPECT_EQ(started("deepspeed --include localhost:0,1,2,3"), 4);
  EXPECT_EQ(started("deepspeed --include=a:0,1@b:2"), 3);
  EXPECT_EQ(started("deepspeed --include a@b"), 0);
  EXPECT_EQ(started("torchrun --nproc-per-node gpu"), 0);
}

TEST(StartedProcesses, OfMpiAndSlurmWhereTheyStartTheProgramItself) {
  EXPECT_EQ(started("mpirun -np 8 -x PATH python"), 8);
  EXPECT_EQ(started("/usr/bin/mpiexec -n 16 python"), 16);
  EXPECT_EQ(started("srun -n 8 python"), 8);
  EXPECT_EQ(started("srun --ntasks=12 python"), 12);
  EXPECT_EQ(started("srun -N 2 --ntasks-per-node 4 python"), 8);
  EXPECT_EQ(started("srun --ntasks-per-node 4 python"), 0);
  // A launcher on each node starts the processes there.
  EXPECT_EQ(started("srun -N 4 -n 4 torchrun --nproc-per-node 8 --nnodes 4"), 32);
  EXPECT_EQ(started("srun -n 4 torchrun"), 0);
  EXPECT_EQ(started("python"), 0);
}

}  // namespace
}  // namespace braid
