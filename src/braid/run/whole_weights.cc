#include "braid/run/whole_weights.h"

#include <algorithm>

#include "braid/base/error.h"
#include "braid/base/index.h"

namespace braid {

std::string piece_name(std::size_t group, std::size_t piece) {
  return std::to_string(group) + "." + std::to_string(piece);
}

std::vector<NamedTensor> whole_weights(const LayeredProgram& model,
                                       std::span<const ParameterGroup> groups,
                                       const std::vector<NamedTensor>& pieces) {
  std::map<std::string, const DenseTensor*> written;
  for (const NamedTensor& each : pieces) written[each.name] = &each.tensor;
  std::map<ValueId, Shape> shapes;
  for (const MissingWeight& each : model.program.missing) shapes[each.value] = each.shape;
  std::map<ValueId, DenseTensor> whole;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (std::size_t p = 0; p < groups[g].pieces.size(); ++p) {
      const ParameterPiece& piece = groups[g].pieces[p];
      const auto found = written.find(piece_name(g, p));
      if (found == written.end()) {
        throw Error("no rank has written " + model.program.values[at(piece.value)].name);
      }
      DenseTensor& tensor =
          whole.try_emplace(piece.value, ElementType::f64, shapes.at(piece.value)).first->second;
      put_piece(tensor, {piece, *found->second});
    }
  }
  std::vector<NamedTensor> result;
  result.reserve(whole.size());
  for (auto& [value, tensor] : whole) {
    result.push_back({model.program.values[at(value)].name, std::move(tensor)});
  }
  std::sort(result.begin(), result.end(),
            [](const NamedTensor& a, const NamedTensor& b) { return a.name < b.name; });
  return result;
}

}  // namespace braid
