#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "braid/base/file.h"
#include "braid/base/temporary_folder.h"

#include "cli/program.h"
#include "run_torch/tiny_models.h"
#include "run_torch/trials.h"

namespace braid::test {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// A model, and a plan for it: 2 stages of 2 replicas each.
class RunProcesses : public testing::Test {
 protected:
  void SetUp() override {
    write_file(folder_ / "config.json", tiny_models().front().config);
    const Ran planned =
        run_braid({"plan", "config.json", "--cluster", "dgx-h100:4", "--global-batch", "8", "--tp",
                   "1", "--pp", "2", "--dp", "2", "--micro-batch", "1", "-o", "plan.json"},
                  folder_.path());
    ASSERT_EQ(planned.status, 0) << planned.err;
  }

  Ran braid(const std::vector<std::string>& arguments) const {
    return run_braid(arguments, folder_.path());
  }

  TemporaryFolder folder_;
};

/// braid as it runs, in a folder with its output there.
class StartedBraid {
 public:
  /// `most_bytes`: to which files may grow; 0: to any size.
  StartedBraid(std::vector<std::string> arguments, std::string folder,
               std::vector<std::pair<std::string, std::string>> environment = {},
               std::size_t most_bytes = 0)
      : folder_(std::move(folder)), name_("run" + std::to_string(count_++)) {
    arguments.insert(arguments.begin(), BRAID_PROGRAM);
    process_ = ::fork();
    if (process_ != 0) return;
    if (most_bytes > 0) {
      ::signal(SIGXFSZ, SIG_IGN);
      const rlimit limit{most_bytes, most_bytes};
      ::setrlimit(RLIMIT_FSIZE, &limit);
    }
    for (const auto& [key, value] : environment) ::setenv(key.c_str(), value.c_str(), 1);
    const std::string out = folder_ + "/" + name_ + ".out", err = folder_ + "/" + name_ + ".err";
    ::dup2(::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
    ::dup2(::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
    if (::chdir(folder_.c_str()) != 0) ::_exit(126);
    std::vector<char*> words;
    for (std::string& word : arguments) words.push_back(word.data());
    words.push_back(nullptr);
    ::execv(words.front(), words.data());
    ::_exit(127);
  }
  StartedBraid(const StartedBraid&) = delete;
  StartedBraid& operator=(const StartedBraid&) = delete;
  ~StartedBraid() {
    if (process_ > 0) end(SIGKILL), wait();
  }

  void end(int signal) const { ::kill(process_, signal); }
  int wait() {
    int status = 0;
    ::waitpid(process_, &status, 0);
    process_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  std::string out() const { return read_file(folder_ + "/" + name_ + ".out"); }
  std::string err() const { return read_file(folder_ + "/" + name_ + ".err"); }

  /// Its processes, once there are so many.
  std::vector<pid_t> children(std::size_t count) const {
    const std::string file =
        "/proc/" + std::to_string(process_) + "/task/" + std::to_string(process_) + "/children";
    for (const auto start = Clock::now(); seconds_since(start) < 20;) {
      std::vector<pid_t> found;
      const std::string text = read_file(file);
      for (std::size_t i = 0; i < text.size(); i = text.find(' ', i) + 1) {
        found.push_back(static_cast<pid_t>(std::stol(text.substr(i))));
      }
      if (found.size() >= count) return found;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return {};
  }

 private:
  inline static int count_ = 0;
  std::string folder_, name_;
  pid_t process_ = -1;
};

const std::vector<std::string> kEndless = {"run", "plan.json", "--iterations", "100000000"};

bool is_there(pid_t process) { return ::kill(process, 0) == 0; }

TEST_F(RunProcesses, TrainAsOneDoes) {
  const Ran ran = braid({"run", "plan.json", "--check", "--iterations", "3", "--trace",
                         "trace.json", "--weights", "weights.safetensors"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, testing::HasSubstr("by 4 processes in 2 stages"));
  EXPECT_THAT(ran.out, testing::HasSubstr("iteration    3  loss "));
  EXPECT_THAT(ran.out, testing::HasSubstr("As one process trains it: "));
  EXPECT_THAT(read_file(folder_ / "trace.json"), testing::HasSubstr("\"F 0 c0\""));
  EXPECT_THAT(read_file(folder_ / "weights.safetensors"), testing::HasSubstr("\"dtype\":\"F64\""));
}

TEST_F(RunProcesses, AKilledProcessEndsAllAndIsNamed) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < trials("BRAID_RUN_KILLS", 2); ++trial) {
    StartedBraid run(kEndless, folder_.path());
    const std::vector<pid_t> ranks = run.children(4);
    ASSERT_EQ(ranks.size(), 4U);
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 1500));
    const std::size_t victim = random() % 4;
    const auto start = Clock::now();
    ::kill(ranks[victim], SIGKILL);
    EXPECT_EQ(run.wait(), 2);
    EXPECT_LT(seconds_since(start), 5);
    const std::string err = run.err();
    EXPECT_THAT(err, testing::HasSubstr("rank " + std::to_string(victim) + " (stage "));
    EXPECT_THAT(err, testing::HasSubstr("was ended by signal 9"));
    // That the processes start, and why they end.
    EXPECT_THAT(err, testing::StartsWith("braid: starting 4 processes"));
    EXPECT_EQ(std::count(err.begin(), err.end(), '\n'), 2) << err;
    for (const pid_t rank : ranks) EXPECT_FALSE(is_there(rank));
  }
}

TEST_F(RunProcesses, AnInterruptEndsAll) {
  StartedBraid run(kEndless, folder_.path());
  const std::vector<pid_t> ranks = run.children(4);
  ASSERT_EQ(ranks.size(), 4U);
  run.end(SIGINT);
  const auto start = Clock::now();
  EXPECT_EQ(run.wait(), 2);
  EXPECT_LT(seconds_since(start), 5);
  EXPECT_THAT(run.err(), testing::HasSubstr("the run was ended by signal 2"));
  for (const pid_t rank : ranks) EXPECT_FALSE(is_there(rank));
}

TEST_F(RunProcesses, NoneOutlivesBraidItself) {
  StartedBraid run(kEndless, folder_.path());
  const std::vector<pid_t> ranks = run.children(4);
  ASSERT_EQ(ranks.size(), 4U);
  run.end(SIGKILL);
  run.wait();
  const auto start = Clock::now();
  const auto any = [&] { return std::any_of(ranks.begin(), ranks.end(), is_there); };
  while (any() && seconds_since(start) < 5) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_FALSE(any());
}

/// The environment of a rank that others start.
std::vector<std::pair<std::string, std::string>> as_rank(int rank, int ranks, int port) {
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(ranks)},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", std::to_string(port)}};
}

/// One that is likely to be free: other tests may run at the same time.
int some_port() { return 20000 + static_cast<int>(::getpid() % 10000); }

TEST_F(RunProcesses, StartedByOthersFindEachOther) {
  const int port = some_port();
  std::vector<std::unique_ptr<StartedBraid>> ranks;
  for (int r = 0; r < 4; ++r) {
    ranks.push_back(std::make_unique<StartedBraid>(
        std::vector<std::string>{"run", "plan.json", "--iterations", "2"}, folder_.path(),
        as_rank(r, 4, port)));
  }
  for (const auto& rank : ranks) EXPECT_EQ(rank->wait(), 0) << rank->err();
  EXPECT_THAT(ranks.front()->out(), testing::HasSubstr("iteration    2  loss "));
  EXPECT_EQ(ranks.back()->out(), "");
}

TEST_F(RunProcesses, APeerThatDoesNotComeIsNotWaitedForForEver) {
  StartedBraid rank({"run", "plan.json", "--timeout", "1"}, folder_.path(),
                    as_rank(0, 4, some_port() + 1));
  const auto start = Clock::now();
  EXPECT_EQ(rank.wait(), 2);
  EXPECT_LT(seconds_since(start), 15);
  EXPECT_THAT(rank.err(), testing::HasSubstr("waiting for the other ranks"));
}

TEST_F(RunProcesses, AsManyAsThePlanHasDevices) {
  StartedBraid rank({"run", "plan.json"}, folder_.path(), as_rank(0, 3, some_port()));
  EXPECT_EQ(rank.wait(), 2);
  EXPECT_THAT(rank.err(), testing::HasSubstr("the plan has 4 ranks, and 3 were started"));
}

TEST_F(RunProcesses, MeasureWhatTheyComputeWith) {
  const Ran ran = braid({"measure", "--trained", "--samples", "3", "--json", "-o", "here.yaml"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, testing::HasSubstr("\"GEMM 1000 x 1024 x 1024, gradients\""));
  const std::string text = read_file(folder_ / "here.yaml");
  EXPECT_THAT(text, testing::HasSubstr("measured with libtorch"));
  EXPECT_THAT(text, testing::HasSubstr("messages and all-reduces of Gloo"));
  EXPECT_EQ(braid({"plan", "config.json", "--cluster", "here.yaml", "--global-batch", "8"}).status,
            0);
}

TEST_F(RunProcesses, WhatCannotBeRunIsRefusedAtOnce) {
  ASSERT_EQ(braid({"plan", "config.json", "--cluster", "dgx-h100:4", "--global-batch", "8", "--tp",
                   "2", "--cp", "2", "--pp", "1", "--dp", "1", "-o", "both.json"})
                .status,
            0);
  const Ran ran = braid({"run", "both.json"});
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.err, testing::HasSubstr("stage 1 has "));
  EXPECT_THAT(ran.err, testing::HasSubstr("context parallelism 2"));
  EXPECT_EQ(ran.out, "");
}

TEST_F(RunProcesses, DivideTheWorkOfAReplica) {
  ASSERT_EQ(braid({"plan", "config.json", "--cluster", "dgx-h100:4", "--global-batch", "4", "--tp",
                   "2", "--pp", "2", "--dp", "1", "-o", "tp.json"})
                .status,
            0);
  const Ran ran = braid({"run", "tp.json", "--check", "--iterations", "2"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, testing::HasSubstr("As one process trains it: "));
}

TEST_F(RunProcesses, GoOnFromACheckpoint) {
  const Ran whole = braid({"run", "plan.json", "--iterations", "4", "--optimizer", "adam",
                           "--weights", "whole.safetensors"});
  ASSERT_EQ(whole.status, 0) << whole.err;
  const Ran first = braid({"run", "plan.json", "--iterations", "3", "--optimizer", "adam",
                           "--checkpoint", "c.safetensors", "--checkpoint-every", "2"});
  ASSERT_EQ(first.status, 0) << first.err;
  const Ran second = braid({"run", "plan.json", "--iterations", "1", "--optimizer", "adam",
                            "--resume", "c.safetensors", "--weights", "resumed.safetensors"});
  ASSERT_EQ(second.status, 0) << second.err;
  EXPECT_THAT(second.out, testing::HasSubstr("iteration    4  loss "));
  EXPECT_EQ(read_file(folder_ / "resumed.safetensors"), read_file(folder_ / "whole.safetensors"));
  const Ran other = braid({"run", "plan.json", "--resume", "c.safetensors"});
  EXPECT_EQ(other.status, 2);
  EXPECT_THAT(other.err, testing::HasSubstr("give --optimizer adam"));
}

TEST_F(RunProcesses, ACheckpointThatCannotBeWrittenEndsTheRunAndLeavesTheOldOne) {
  ASSERT_EQ(
      braid({"run", "plan.json", "--iterations", "1", "--checkpoint", "c.safetensors"}).status, 0);
  const std::string before = read_file(folder_ / "c.safetensors");
  // Files may grow to a half of it, as on a disk that is full then.
  StartedBraid run({"run", "plan.json", "--iterations", "3", "--seed", "2", "--checkpoint",
                    "c.safetensors", "--checkpoint-every", "1"},
                   folder_.path(), {}, before.size() / 2);
  EXPECT_EQ(run.wait(), 2);
  const std::string err = run.err();
  EXPECT_THAT(err, testing::HasSubstr("rank 0 (stage 1"));
  EXPECT_THAT(err, testing::HasSubstr("c.safetensors"));
  EXPECT_THAT(err, testing::StartsWith("braid: starting 4 processes"));
  EXPECT_EQ(std::count(err.begin(), err.end(), '\n'), 2) << err;
  EXPECT_EQ(read_file(folder_ / "c.safetensors"), before);
}

}  // namespace
}  // namespace braid::test
