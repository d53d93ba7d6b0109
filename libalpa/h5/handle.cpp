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

/// 1 sign, `exponent` and 15 - `exponent` mantissa bits.
H5Type float_of_16_bits(std::size_t exponent, std::size_t bias) {
  const char* const doing = "making a type of 16 bits";
  const std::size_t mantissa = 15 - exponent;
  H5Type type(checked(H5Tcopy(H5T_IEEE_F32LE), doing));
  // Fields before precision and precision before size: each step must leave a valid type.
  checked(H5Tset_fields(type, 15, mantissa, exponent, 0, mantissa), doing);
  checked(H5Tset_precision(type, 16), doing);
  checked(H5Tset_size(type, 2), doing);
  checked(H5Tset_ebias(type, bias), doing);
  return type;
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

H5Type bfloat16_type() { return float_of_16_bits(8, 127); }
H5Type float16_type() { return float_of_16_bits(5, 15); }

H5Type element_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return H5Type(checked(H5Tcopy(H5T_IEEE_F32LE), "copying a type"));
    case DType::i32:
      return H5Type(checked(H5Tcopy(H5T_STD_I32LE), "copying a type"));
    case DType::f16:
      return float16_type();
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
