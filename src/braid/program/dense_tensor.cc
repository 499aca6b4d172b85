#include "braid/program/dense_tensor.h"

#include <cassert>
#include <cstring>
#include <utility>

#include "braid/base/index.h"

namespace braid {
namespace {

/// Calls `visit` with a whole number as wide as an element, which is all that moving needs.
template <typename Visit>
void visit_width(ElementType type, Visit&& visit) {
  switch (bytes_of(type)) {
    case 1:
      return visit(std::uint8_t{});
    case 2:
      return visit(std::uint16_t{});
    case 4:
      return visit(std::uint32_t{});
    default:
      return visit(std::uint64_t{});
  }
}

template <typename Word>
Word word_at(const DenseTensor& tensor, std::size_t index) {
  Word word{};
  std::memcpy(&word, tensor.data.data() + index * sizeof(Word), sizeof(Word));
  return word;
}

template <typename Word>
void set_word(DenseTensor& tensor, std::size_t index, Word word) {
  std::memcpy(tensor.data.data() + index * sizeof(Word), &word, sizeof(Word));
}

}  // namespace

DenseTensor reshaped(DenseTensor tensor, Shape shape) {
  assert(element_count(shape) == tensor.count());
  tensor.shape = std::move(shape);
  return tensor;
}

DenseTensor taken(const DenseTensor& tensor, Shape shape, std::span<const std::int64_t> places,
                  const DenseTensor* filler) {
  DenseTensor out(tensor.type, std::move(shape));
  visit_width(tensor.type, [&]<typename Word>(Word fill) {
    if (filler != nullptr) fill = word_at<Word>(*filler, 0);
    for (std::size_t i = 0; i < places.size(); ++i) {
      set_word(out, i, places[i] < 0 ? fill : word_at<Word>(tensor, at(places[i])));
    }
  });
  return out;
}

void put(DenseTensor& target, const DenseTensor& source, std::span<const std::int64_t> places) {
  assert(target.type == source.type);
  visit_width(target.type, [&]<typename Word>(Word) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      set_word(target, at(places[i]), word_at<Word>(source, i));
    }
  });
}

std::string form_text(const DenseTensor& tensor) {
  return std::string(name_of(tensor.type)) + shape_text(tensor.shape);
}

}  // namespace braid
