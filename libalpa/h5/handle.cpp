#include "libalpa/h5/handle.h"

#include <bit>
#include <vector>

static_assert(std::endian::native == std::endian::little,
              "files are little endian and are read without conversion");

namespace alpa {
namespace {

herr_t take_innermost(unsigned depth, const H5E_error2_t* error, void* client) {
  auto& message = *static_cast<std::string*>(client);
  if (depth == 0 && error->desc) message = error->desc;
  return 0;
}

}  // namespace

void prepare_hdf5() {
  checked(H5open(), "starting");
  checked(H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr), "silencing its messages");
  checked(H5PLset_loading_state(0), "switching off plug-ins");
}

std::string hdf5_message() {
  std::string message;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_innermost, &message);
  H5Eclear2(H5E_DEFAULT);
  return message;
}

H5Type bfloat16_type() {
  H5Type type(checked(H5Tcopy(H5T_IEEE_F32LE), "making bfloat16"));
  // Fields before precision and precision before size: each step must leave a valid type.
  checked(H5Tset_fields(type, 15, 7, 8, 0, 7), "making bfloat16");
  checked(H5Tset_precision(type, 16), "making bfloat16");
  checked(H5Tset_size(type, 2), "making bfloat16");
  checked(H5Tset_ebias(type, 127), "making bfloat16");
  return type;
}

H5Type element_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return H5Type(checked(H5Tcopy(H5T_IEEE_F32LE), "copying a type"));
    case DType::i32:
      return H5Type(checked(H5Tcopy(H5T_STD_I32LE), "copying a type"));
    case DType::bf16:
      break;
  }
  return bfloat16_type();
}

H5Space simple_space(const Shape& extent) {
  if (extent.empty()) return H5Space(checked(H5Screate(H5S_SCALAR), "making a dataspace"));
  const std::vector<hsize_t> dims(extent.begin(), extent.end());
  return H5Space(
      checked(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr), "making a dataspace"));
}

H5Type string_type(std::size_t bytes, bool ascii) {
  H5Type type(checked(H5Tcopy(H5T_C_S1), "making a string type"));
  checked(H5Tset_size(type, bytes + 1), "making a string type");
  checked(H5Tset_strpad(type, H5T_STR_NULLTERM), "making a string type");
  checked(H5Tset_cset(type, ascii ? H5T_CSET_ASCII : H5T_CSET_UTF8), "making a string type");
  return type;
}

}  // namespace alpa
