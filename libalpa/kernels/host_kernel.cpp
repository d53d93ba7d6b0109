#include "libalpa/kernels/host_kernel.h"

namespace alpa {
namespace {

bool list_matches(const std::vector<TensorType>& types, std::string_view letters, DType own) {
  if (types.size() != letters.size()) return false;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const DType type = types[i].dtype;
    const bool matches = letters[i] == 't'   ? type == own && type != DType::i32
                         : letters[i] == 'f' ? type == DType::f32
                         : letters[i] == 'i' ? type == DType::i32
                                             : type == own || type == DType::f32;
    if (!matches) return false;
  }
  return true;
}

}  // namespace

bool types_match(const KernelShape& shape, std::string_view pattern) {
  const std::size_t arrow = pattern.find("->");
  const std::string_view operands = pattern.substr(0, arrow), results = pattern.substr(arrow + 2);
  DType own = DType::f32;
  const std::size_t first = operands.find('t');
  if (first < shape.operands.size()) own = shape.operands[first].dtype;
  return list_matches(shape.operands, operands, own) && list_matches(shape.results, results, own);
}

std::string types_text(const KernelShape& shape) {
  std::string text;
  for (const TensorType& type : shape.operands) text += " " + type_text(type);
  text += " ->";
  for (const TensorType& type : shape.results) text += " " + type_text(type);
  return text;
}

}  // namespace alpa
