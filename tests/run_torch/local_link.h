#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "braid/run/rank_link.h"

namespace braid {

/// Where the ranks of one process, a thread each, leave what they send each other.
class LocalExchange {
 public:
  /// `groups`: the ranks of each, as meeting_ranks() has them.
  LocalExchange(std::size_t ranks, std::vector<std::vector<std::int32_t>> groups,
                const TensorArithmetic& arithmetic)
      : ranks_(ranks), groups_(std::move(groups)), arithmetic_(arithmetic) {}

  /// Makes everybody who waits, and will, throw.
  void give_up(const std::string& why);

  void put(std::int32_t from, std::int32_t to, std::int32_t tag, TensorHandle tensor);
  TensorHandle take(std::int32_t from, std::int32_t to, std::int32_t tag);
  /// What every rank of the group brings, in their order, once all have.
  std::vector<TensorHandle> meet(std::size_t group, std::size_t place, TensorHandle mine);
  double sum_of_all(std::int32_t rank, double number);

  const std::vector<std::int32_t>& ranks_of(std::size_t group) const { return groups_[group]; }
  const TensorArithmetic& arithmetic() const { return arithmetic_; }

 private:
  /// What members bring to a meeting, and how many have left with it.
  struct Meeting {
    std::vector<TensorHandle> brought;
    std::size_t here = 0, gone = 0;
  };
  template <typename Ready>
  void wait(std::unique_lock<std::mutex>& lock, const Ready& ready);

  std::size_t ranks_;
  std::vector<std::vector<std::int32_t>> groups_;
  const TensorArithmetic& arithmetic_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string why_given_up_;
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, std::deque<TensorHandle>> mail_;
  std::map<std::size_t, Meeting> meetings_;
  std::vector<double> numbers_;
  std::size_t numbers_here_ = 0, numbers_gone_ = 0;
};

/// A rank's end of it.
class LocalLink : public RankLink {
 public:
  LocalLink(LocalExchange& exchange, std::int32_t rank) : exchange_(exchange), rank_(rank) {}
  void send(const TensorHandle& tensor, std::int32_t peer, std::int32_t tag) override;
  TensorHandle receive(TensorHandle room, std::int32_t peer, std::int32_t tag) override;
  void finish_sends() override {}
  TensorHandle sum(std::size_t group, TensorHandle row) override;
  TensorHandle sum_part(std::size_t group, TensorHandle row) override;
  TensorHandle gather(std::size_t group, TensorHandle part, TensorHandle room) override;
  std::vector<TensorHandle> all_to_all(std::size_t group, std::span<const TensorHandle> parts,
                                       std::span<const TensorHandle> rooms) override;
  double sum_of_all(double number) override { return exchange_.sum_of_all(rank_, number); }

 private:
  std::size_t place_in(std::size_t group) const;
  LocalExchange& exchange_;
  std::int32_t rank_;
};

}  // namespace braid
