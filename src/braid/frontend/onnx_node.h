#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "braid/frontend/onnx_model.h"
#include "braid/graph/graph.h"

namespace braid {

/// What is known of a value of an ONNX graph while its nodes are gone through.
struct OnnxValue {
  enum class Source : std::uint8_t {
    none,         ///< Not computed yet.
    input,        ///< Fed anew for each run.
    initializer,  ///< Stored in the file: a parameter if its type is that of weights.
    constant,     ///< Depends on no input and no parameter: costs nothing at run time.
    computed,
  };
  Source source = Source::none;
  OnnxType type = OnnxType::undefined;
  std::vector<std::int64_t> dims;
  std::shared_ptr<const OnnxConstant> values;  ///< Where they are known before running.
  OnnxValueId root = -1;  ///< The initializer of which this is the same numbers, rearranged.
  TensorId tensor = -1;   ///< In the graph, once it is there.
};

/// A node with what is known of its operands: how the operations' rules ask for shapes and
/// attributes, and say what comes out. All `fail`s name the node. Sizes of operands and outputs are
/// not negative, and their product (leaving out zeros) fits in 59 bits.
class OnnxNodeView {
 public:
  using Dims = std::vector<std::int64_t>;

  OnnxNodeView(const OnnxModel& model, const OnnxNode& node, const std::vector<OnnxValue>& values,
               const std::vector<std::optional<Dims>>& declared, std::int64_t opset,
               const std::string& file);

  /// The operation's name, e.g. "Conv".
  const std::string& operation() const { return operation_->name; }
  std::int64_t opset() const { return opset_; }
  const OnnxNode& node() const { return *node_; }

  // Operands. Those that a node leaves out are absent.
  std::size_t input_count() const { return node_->inputs.size(); }
  bool has(std::size_t input) const;
  const OnnxValue& input(std::size_t input) const;  ///< Fails when it is absent.
  const Dims& dims(std::size_t i) const { return input(i).dims; }
  std::size_t rank(std::size_t i) const { return input(i).dims.size(); }
  OnnxType type(std::size_t i) const { return input(i).type; }
  /// Fails unless there are `least` to `most` operands, the first `least` of them present.
  void need_inputs(std::size_t least, std::size_t most) const;
  void need_rank(std::size_t input, std::size_t least, std::size_t most) const;
  /// The values of an operand of whole numbers, if they are known before running.
  const std::vector<std::int64_t>* integers(std::size_t input) const;
  const std::vector<double>* reals(std::size_t input) const;
  /// Elements of an operand; 0 when a size is 0.
  std::int64_t elements(std::size_t i) const;
  /// Whether the operand costs something at run time: neither absent nor constant.
  bool is_live(std::size_t input) const;

  // Attributes. Fail when there is one of another type.
  const OnnxAttribute* attribute(std::string_view name) const;
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  std::int64_t need_integer(std::string_view name) const;
  double real(std::string_view name, double otherwise) const;
  std::string text(std::string_view name, std::string_view otherwise) const;
  /// nullptr when there is none.
  const std::vector<std::int64_t>* integers(std::string_view name) const;
  /// One number for each of `count` dimensions, between `least` and 2^31.
  Dims per_dimension(std::string_view name, std::size_t count, std::int64_t least,
                     std::int64_t otherwise) const;
  /// The axes or sizes that newer versions take from operand `input` and older ones from the
  /// attribute `name`. nullopt when neither is there; fails when the operand's values are unknown.
  std::optional<Dims> integers_of(std::size_t input, std::string_view name) const;

  /// `axis`, counted from the end when negative, in [0, rank).
  std::size_t axis(std::int64_t axis, std::size_t rank) const;

  // Arithmetic that fails instead of overflowing.
  std::int64_t times(std::int64_t a, std::int64_t b) const;
  std::int64_t product(std::span<const std::int64_t> sizes) const;

  /// The shape that arises from broadcasting two against each other as NumPy does.
  Dims broadcast(const Dims& a, const Dims& b) const;

  // Outputs.
  std::size_t output_count() const { return node_->outputs.size(); }
  bool wants(std::size_t output) const;
  /// Says what the output is; ignored when the node has no such output. Fails on sizes that are
  /// negative or too large.
  void set(std::size_t output, OnnxType type, Dims dims);
  void set_values(std::size_t output, OnnxConstant values);
  /// For outputs whose shape depends on values that are known only at run time: the shape that the
  /// file declares. Fails, naming `input`, when it declares none.
  void set_declared(std::size_t output, OnnxType type, std::size_t input);
  /// The output's values are those of `input`, if they are known.
  void share_values(std::size_t output, std::size_t input);
  std::vector<OnnxValue>& results() { return results_; }
  const std::vector<OnnxValue>& results() const { return results_; }

  /// The output holds the numbers of `input` and nothing else: of weights it stays the same weight.
  void same_numbers_as(std::size_t input) { same_as_ = input; }
  std::optional<std::size_t> same_as() const { return same_as_; }
  /// Stored statistics and scales that no gradient trains: they are no parameters.
  void not_trained(std::size_t input) { not_trained_.push_back(input); }
  bool is_trained(std::size_t input) const;
  /// The outputs are known to be constant.
  void is_constant() { constant_ = true; }
  bool constant() const { return constant_; }

  [[noreturn]] void fail(const std::string& message, const std::string& remedy = {}) const;

 private:
  const OnnxModel* model_;
  const OnnxNode* node_;
  const OnnxOperation* operation_;
  const std::vector<OnnxValue>* values_;
  const std::vector<std::optional<Dims>>* declared_;
  std::int64_t opset_;
  const std::string* file_;
  std::vector<OnnxValue> results_;
  std::optional<std::size_t> same_as_;
  std::vector<std::size_t> not_trained_;
  bool constant_ = false;
};

/// At most 64 sizes, none negative, whose product fits in 59 bits, leaving out zeros.
bool sizes_fit(std::span<const std::int64_t> dims);
/// "[2, 3]".
std::string text_of(std::span<const std::int64_t> dims);

}  // namespace braid
