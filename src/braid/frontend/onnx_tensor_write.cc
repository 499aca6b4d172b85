#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>

#include "braid/frontend/onnx_program.h"
#include "braid/frontend/onnx_types.h"

namespace braid {
namespace {

using Format = google::protobuf::internal::WireFormatLite;

// Fields of onnx.TensorProto.
constexpr int dims_field = 1, data_type_field = 2, raw_data_field = 9;

}  // namespace

std::string onnx_of_tensor(const DenseTensor& tensor) {
  std::string bytes;
  google::protobuf::io::StringOutputStream text(&bytes);
  google::protobuf::io::CodedOutputStream out(&text);
  for (const std::int64_t size : tensor.shape) Format::WriteInt64(dims_field, size, &out);
  Format::WriteInt32(data_type_field, static_cast<std::int32_t>(onnx_type_of(tensor.type)), &out);
  Format::WriteBytes(raw_data_field,
                     {reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size()}, &out);
  out.Trim();
  return bytes;
}

}  // namespace braid
