#include "run_torch/local_link.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "braid/base/index.h"

namespace braid {

template <typename Ready>
void LocalExchange::wait(std::unique_lock<std::mutex>& lock, const Ready& ready) {
  changed_.wait(lock, [&] { return !why_given_up_.empty() || ready(); });
  if (!why_given_up_.empty()) throw std::runtime_error(why_given_up_);
}

void LocalExchange::give_up(const std::string& why) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (why_given_up_.empty()) why_given_up_ = why;
  changed_.notify_all();
}

void LocalExchange::put(std::int32_t from, std::int32_t to, std::int32_t tag, TensorHandle tensor) {
  const std::lock_guard<std::mutex> lock(mutex_);
  mail_[{from, to, tag}].push_back(std::move(tensor));
  changed_.notify_all();
}

TensorHandle LocalExchange::take(std::int32_t from, std::int32_t to, std::int32_t tag) {
  std::unique_lock<std::mutex> lock(mutex_);
  std::deque<TensorHandle>& mail = mail_[{from, to, tag}];
  wait(lock, [&] { return !mail.empty(); });
  TensorHandle tensor = std::move(mail.front());
  mail.pop_front();
  return tensor;
}

std::vector<TensorHandle> LocalExchange::meet(std::size_t group, std::size_t place,
                                              TensorHandle mine) {
  std::unique_lock<std::mutex> lock(mutex_);
  Meeting& meeting = meetings_[group];
  const std::size_t members = groups_[group].size();
  // Those of the meeting before may still be on their way out.
  wait(lock, [&] { return meeting.gone == 0; });
  meeting.brought.resize(members);
  meeting.brought[place] = std::move(mine);
  ++meeting.here;
  changed_.notify_all();
  wait(lock, [&] { return meeting.here == members; });
  std::vector<TensorHandle> all = meeting.brought;
  if (++meeting.gone == members) {
    meeting = {};
    changed_.notify_all();
  }
  return all;
}

double LocalExchange::sum_of_all(std::int32_t rank, double number) {
  std::unique_lock<std::mutex> lock(mutex_);
  wait(lock, [&] { return numbers_gone_ == 0; });
  numbers_.resize(ranks_);
  numbers_[at(rank)] = number;
  ++numbers_here_;
  changed_.notify_all();
  wait(lock, [&] { return numbers_here_ == ranks_; });
  double sum = 0;
  for (const double each : numbers_) sum += each;
  if (++numbers_gone_ == ranks_) {
    numbers_here_ = numbers_gone_ = 0;
    changed_.notify_all();
  }
  return sum;
}

std::size_t LocalLink::place_in(std::size_t group) const {
  const std::vector<std::int32_t>& ranks = exchange_.ranks_of(group);
  return at(std::find(ranks.begin(), ranks.end(), rank_) - ranks.begin());
}

void LocalLink::send(const TensorHandle& tensor, std::int32_t peer, std::int32_t tag) {
  exchange_.put(rank_, peer, tag, tensor);
}

TensorHandle LocalLink::receive(TensorHandle, std::int32_t peer, std::int32_t tag) {
  return exchange_.take(peer, rank_, tag);
}

TensorHandle LocalLink::sum(std::size_t group, TensorHandle row) {
  // A copy: others may read it when this rank has gone on.
  row = exchange_.arithmetic().slice(row, 0, 0, exchange_.arithmetic().length(row));
  const std::vector<TensorHandle> all = exchange_.meet(group, place_in(group), std::move(row));
  TensorHandle total = all.front();
  for (std::size_t i = 1; i < all.size(); ++i) total = exchange_.arithmetic().sum(total, all[i]);
  return total;
}

TensorHandle LocalLink::sum_part(std::size_t group, TensorHandle row) {
  const TensorHandle total = sum(group, std::move(row));
  const auto members = std::ssize(exchange_.ranks_of(group));
  const std::int64_t length = exchange_.arithmetic().length(total) / members;
  return exchange_.arithmetic().slice(total, 0, static_cast<std::int64_t>(place_in(group)) * length,
                                      length);
}

std::vector<TensorHandle> LocalLink::all_to_all(std::size_t group,
                                                std::span<const TensorHandle> parts,
                                                std::span<const TensorHandle>) {
  // Below the tags of messages.
  const std::int32_t tag = -1 - static_cast<std::int32_t>(group);
  const std::vector<std::int32_t>& ranks = exchange_.ranks_of(group);
  for (std::size_t i = 0; i < ranks.size(); ++i) exchange_.put(rank_, ranks[i], tag, parts[i]);
  std::vector<TensorHandle> come;
  come.reserve(ranks.size());
  for (const std::int32_t rank : ranks) come.push_back(exchange_.take(rank, rank_, tag));
  return come;
}

TensorHandle LocalLink::gather(std::size_t group, TensorHandle part, TensorHandle room) {
  const TensorArithmetic& arithmetic = exchange_.arithmetic();
  const std::size_t place = place_in(group);
  if (!part) {
    const auto members = std::ssize(exchange_.ranks_of(group));
    const std::int64_t length = arithmetic.length(room) / members;
    part = arithmetic.slice(room, 0, static_cast<std::int64_t>(place) * length, length);
  }
  return arithmetic.join(exchange_.meet(group, place, std::move(part)), 0);
}

}  // namespace braid
