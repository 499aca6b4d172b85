#include "braid/run/torch/torch_experts.h"

#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/torch.h>

#include "braid/base/index.h"
#include "braid/run/torch/torch_tensor.h"

namespace braid {
namespace {

using Counts = std::vector<std::int64_t>;

/// Sends so many rows to each rank of a group, in turn, and gives what they send here.
class RowMover {
 public:
  RowMover(RankLink& link, std::size_t group) : link_(&link), group_(group) {}

  torch::Tensor moved(const torch::Tensor& x, const Counts& sent, const Counts& received) const {
    // Gloo moves bytes: any type will do.
    std::vector<TensorHandle> parts, rooms;
    std::int64_t first = 0;
    for (const std::int64_t count : sent) {
      parts.push_back(handle_of(x.slice(0, first, first + count).detach().contiguous()));
      first += count;
    }
    for (const std::int64_t count : received) {
      rooms.push_back(handle_of(torch::empty({count, x.size(1)}, x.options())));
    }
    std::vector<torch::Tensor> all;
    for (const TensorHandle& each : link_->all_to_all(group_, parts, rooms)) {
      all.push_back(tensor_of(each));
    }
    return torch::cat(all);
  }

 private:
  RankLink* link_;
  std::size_t group_;
};

class MoveBackward : public torch::autograd::Node {
 public:
  MoveBackward(RowMover mover, Counts sent, Counts received)
      : mover_(mover), sent_(std::move(sent)), received_(std::move(received)) {}

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    const torch::NoGradGuard no_gradients;
    return {mover_.moved(gradients.front(), sent_, received_)};
  }

 private:
  RowMover mover_;
  Counts sent_, received_;
};

torch::Tensor moved_rows(const RowMover& mover, const torch::Tensor& x, const Counts& sent,
                         const Counts& received) {
  torch::Tensor y;
  {
    const torch::NoGradGuard no_gradients;
    y = mover.moved(x, sent, received);
  }
  if (!torch::GradMode::is_enabled() || !x.requires_grad()) return y;
  std::shared_ptr<MoveBackward> backward(new MoveBackward(mover, received, sent),
                                         torch::autograd::deleteNode);
  backward->set_next_edges(torch::autograd::collect_next_edges(x));
  torch::autograd::set_history(y, backward);
  return y;
}

Counts counts_of(const torch::Tensor& numbers) {
  const torch::Tensor row = numbers.contiguous();
  return {row.data_ptr<std::int64_t>(), row.data_ptr<std::int64_t>() + row.numel()};
}

}  // namespace

torch::Tensor one_expert(const torch::Tensor& x, const torch::Tensor& weights,
                         const torch::Tensor& biases) {
  const std::int64_t matrices = weights.size(0), inner = weights.size(2);
  const auto biased = [&](const torch::Tensor& y, std::int64_t which, std::int64_t width) {
    if (!biases.defined()) return y;
    return y + biases.slice(0, which * inner, which * inner + width);
  };
  torch::Tensor hidden = biased(x.matmul(weights[0]), 0, inner);
  if (matrices == 3) {
    hidden = hidden * hidden.sigmoid() * biased(x.matmul(weights[1]), 1, inner);
  } else {
    hidden = torch::gelu(hidden);
  }
  return biased(hidden.matmul(weights[matrices - 1].t()), matrices - 1, x.size(1));
}

torch::Tensor TorchExpertGroup::compute(const ProgramNode& node,
                                        std::span<const torch::Tensor> operands) const {
  const torch::Tensor &x = operands[0], &scores = operands[1], &weights = operands[2];
  const std::int64_t experts = scores.size(-1), own = weights.size(0);
  const auto top_k = std::get<std::int64_t>(*node.attribute("top_k"));
  const torch::Tensor tokens = x.reshape({-1, x.size(-1)});
  const auto [best, chosen] = scores.reshape({-1, experts}).topk(top_k, 1);
  const torch::Tensor shares = best.softmax(1).reshape({-1});
  // A row for every visit, by expert, then token.
  const torch::Tensor visited = chosen.reshape({-1});
  const torch::Tensor order = at::argsort(visited, /*stable=*/true, 0, /*descending=*/false);
  const torch::Tensor visitor = order.div(top_k, "floor");
  const torch::Tensor visits = visited.bincount({}, experts).reshape({1, experts});
  const torch::Tensor all_visits =
      tensor_of(link_->gather(group_, handle_of(visits), {})).reshape({ranks_, ranks_, own});
  const Counts sent = counts_of(visits.reshape({ranks_, own}).sum(1));
  const torch::Tensor here = all_visits.select(1, rank_);  // [sender × own expert]
  const Counts received = counts_of(here.sum(1));
  const RowMover mover(*link_, group_);
  const torch::Tensor come = moved_rows(mover, tokens.index_select(0, visitor), sent, received);
  // Rows lie by sender, then expert. An expert that nobody visits is computed too: what it takes
  // part in must be the same on all ranks.
  const torch::Tensor expert_of_row =
      torch::arange(own).repeat({ranks_}).repeat_interleave(here.reshape({-1}));
  const torch::Tensor by_expert =
      at::argsort(expert_of_row, /*stable=*/true, 0, /*descending=*/false);
  const Counts rows_of = counts_of(here.sum(0));
  const torch::Tensor sorted = come.index_select(0, by_expert);
  std::vector<torch::Tensor> made;
  std::int64_t first = 0;
  for (std::int64_t e = 0; e < own; ++e) {
    const torch::Tensor biases = operands.size() > 3 ? operands[3][e] : torch::Tensor();
    made.push_back(one_expert(sorted.slice(0, first, first + rows_of[at(e)]), weights[e], biases));
    first += rows_of[at(e)];
  }
  const torch::Tensor in_place = torch::cat(made).index_select(0, by_expert.argsort());
  const torch::Tensor back = moved_rows(mover, in_place, received, sent);
  const torch::Tensor shared = back * shares.index_select(0, order).unsqueeze(1);
  return torch::zeros_like(tokens).index_add(0, visitor, shared).reshape(x.sizes());
}

}  // namespace braid
