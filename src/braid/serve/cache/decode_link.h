#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace braid {

/// What joins ranks that decode together. Every rank calls the same in the same order.
class DecodeLink {
 public:
  DecodeLink(std::int32_t rank, std::int32_t ranks) : rank_(rank), ranks_(ranks) {}
  virtual ~DecodeLink() = default;
  DecodeLink(const DecodeLink&) = delete;
  DecodeLink& operator=(const DecodeLink&) = delete;

  std::int32_t rank() const { return rank_; }
  std::int32_t ranks() const { return ranks_; }
  /// That this rank has sent to others.
  std::int64_t sent_bytes() const { return sent_bytes_; }

  /// Sends out[r] to each rank r and fills in[r], whose sizes are what the others send, with what
  /// comes from it. Of this rank itself, in is a copy of out.
  void exchange(std::span<const std::vector<double>> out, std::span<std::vector<double>> in);
  /// The sum over all ranks, in the ranks' order: each adds up a part, which all then gather.
  void sum(std::span<double> row);

 protected:
  /// Hands over what is for other ranks; empty messages need not be sent.
  virtual void transfer(std::span<const std::vector<double>> out,
                        std::span<std::vector<double>> in) = 0;

 private:
  std::int32_t rank_, ranks_;
  std::int64_t sent_bytes_ = 0;
};

}  // namespace braid
