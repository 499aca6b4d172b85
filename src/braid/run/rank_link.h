#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "braid/run/stage_math.h"

namespace braid {

/// Another rank does not answer any more, or did not come.
class LostPeer : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// How a rank reaches the others. Everything throws LostPeer, naming the peer where it is known,
/// when one of them is lost.
class RankLink {
 public:
  virtual ~RankLink() = default;
  /// Does not block. `tag` tells apart all that two ranks exchange in an iteration.
  virtual void send(const TensorHandle& tensor, std::int32_t peer, std::int32_t tag) = 0;
  /// Fills `room` and returns it.
  virtual TensorHandle receive(TensorHandle room, std::int32_t peer, std::int32_t tag) = 0;
  /// Waits until what was sent has left.
  virtual void finish_sends() = 0;
  // Among the ranks of a group, each of which calls the same in the same order.
  virtual TensorHandle sum(std::size_t group, TensorHandle row) = 0;
  /// This rank's part, of as many equal ones as the group has ranks, of the sum.
  virtual TensorHandle sum_part(std::size_t group, TensorHandle row) = 0;
  /// All ranks' parts, one after the other: in `room` where that is not null. A null part is in its
  /// place there already.
  virtual TensorHandle gather(std::size_t group, TensorHandle part, TensorHandle room) = 0;
  /// `parts[i]` goes to the group's rank i; what rank i sends here fills `rooms[i]`, which are
  /// given back. Those of no numbers are not sent.
  virtual std::vector<TensorHandle> all_to_all(std::size_t group,
                                               std::span<const TensorHandle> parts,
                                               std::span<const TensorHandle> rooms) = 0;
  /// The sum of a number over all ranks.
  virtual double sum_of_all(double number) = 0;
};

}  // namespace braid
