#pragma once

#include <barrier>
#include <memory>
#include <thread>

#include "braid/base/index.h"
#include "braid/serve/cache/decode_step.h"

#include "serve/cache/attention_reference.h"

namespace braid::test {

/// Messages between ranks that are threads of one process.
class ThreadExchange {
 public:
  explicit ThreadExchange(std::int32_t ranks)
      : sent(at(ranks), std::vector<std::vector<double>>(at(ranks))), meet(ranks) {}
  std::vector<std::vector<std::vector<double>>> sent;
  std::barrier<> meet;
};

class ThreadLink : public DecodeLink {
 public:
  ThreadLink(ThreadExchange& with, std::int32_t rank, std::int32_t ranks)
      : DecodeLink(rank, ranks), with_(with) {}

 protected:
  void transfer(std::span<const std::vector<double>> out,
                std::span<std::vector<double>> in) override {
    with_.sent[at(rank())].assign(out.begin(), out.end());
    with_.meet.arrive_and_wait();
    for (std::int32_t r = 0; r < ranks(); ++r) {
      if (r == rank()) continue;
      const std::vector<double>& from = with_.sent[at(r)][at(rank())];
      // Sizes are known beforehand, as messages of a network need.
      if (in[at(r)].size() == from.size()) in[at(r)] = from;
    }
    with_.meet.arrive_and_wait();
  }

 private:
  ThreadExchange& with_;
};

}  // namespace braid::test
