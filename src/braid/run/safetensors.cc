#include "braid/run/safetensors.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "braid/base/document.h"
#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/json.h"

namespace braid {
namespace {

constexpr std::pair<ElementType, std::string_view> kTypeNames[] = {
    {ElementType::f64, "F64"},     {ElementType::f32, "F32"}, {ElementType::f16, "F16"},
    {ElementType::bf16, "BF16"},   {ElementType::i64, "I64"}, {ElementType::i32, "I32"},
    {ElementType::i16, "I16"},     {ElementType::i8, "I8"},   {ElementType::u64, "U64"},
    {ElementType::u32, "U32"},     {ElementType::u16, "U16"}, {ElementType::u8, "U8"},
    {ElementType::boolean, "BOOL"}};

constexpr double kMostElements = 0x1p55;  // Their bytes are within 64 bits.

}  // namespace

void write_safetensors(const std::string& file, const std::vector<NamedTensor>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t first = 0;
  for (const NamedTensor& each : tensors) {
    const DenseTensor& tensor = each.tensor;
    const auto type = std::find_if(std::begin(kTypeNames), std::end(kTypeNames),
                                   [&](const auto& known) { return known.first == tensor.type; });
    header[each.name] = {{"dtype", type->second},
                         {"shape", tensor.shape},
                         {"data_offsets", {first, first + tensor.data.size()}}};
    first += tensor.data.size();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::uint64_t length = text.size();
  std::string content;
  content.reserve(8 + text.size() + first);
  for (int i = 0; i < 8; ++i, length >>= 8U) content += static_cast<char>(length & 0xffU);
  content += text;
  for (const NamedTensor& each : tensors) {
    content.append(reinterpret_cast<const char*>(each.tensor.data.data()), each.tensor.data.size());
  }
  write_file(file, content);
}

std::vector<NamedTensor> read_safetensors(const std::string& file,
                                          std::map<std::string, std::string>* metadata) {
  return tensors_of(read_file(file), file, metadata);
}

std::vector<NamedTensor> tensors_of(std::string_view content, const std::string& file,
                                    std::map<std::string, std::string>* metadata) {
  std::uint64_t length = 0;
  for (std::size_t i = 8; content.size() >= 8 && i-- > 0;) {
    length = length << 8U | static_cast<unsigned char>(content[i]);
  }
  if (content.size() < 8 || length > content.size() - 8) {
    throw Error(file + " is no safetensors file: its header is cut off");
  }
  const Document header = Document::parse(content.substr(8, length), Document::Syntax::json, file);
  const std::string_view data = content.substr(8 + length);
  std::vector<NamedTensor> tensors;
  for (const auto& [name, value] : header.root().members()) {
    if (name == "__metadata__") {
      for (const auto& [key, text] : value.members()) {
        if (metadata != nullptr) (*metadata)[std::string(key)] = text.as_string();
      }
      continue;
    }
    const std::string_view type_name = value["dtype"].as_string();
    const auto type = std::find_if(std::begin(kTypeNames), std::end(kTypeNames),
                                   [&](const auto& known) { return known.second == type_name; });
    if (type == std::end(kTypeNames)) value.fail("its type is not known");
    Shape shape;
    double count = 1, of_others = 1;  // Without sizes of zero, so that no product overflows.
    for (const Value& size : value["shape"].elements()) {
      shape.push_back(size.as_int_in(0, std::int64_t{1} << 40));
      count *= static_cast<double>(shape.back());
      if (shape.back() > 0) of_others *= static_cast<double>(shape.back());
    }
    if (of_others > kMostElements) value.fail("its shape is too large");
    const std::int64_t first = value["data_offsets"][0].as_int_in(0, std::ssize(data));
    const std::int64_t last = value["data_offsets"][1].as_int_in(first, std::ssize(data));
    if (count * static_cast<double>(bytes_of(type->first)) != static_cast<double>(last - first)) {
      value.fail("it has other bytes than its shape");
    }
    NamedTensor each{std::string(name), DenseTensor(type->first, std::move(shape))};
    std::transform(data.begin() + first, data.begin() + last, each.tensor.data.begin(),
                   [](char byte) { return static_cast<std::byte>(byte); });
    tensors.push_back(std::move(each));
  }
  return tensors;
}

}  // namespace braid
